package commit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
	"github.com/goweaver/weaver/task"
)

// The tests of package sqlite show the group commit on a real schema. These tests cover this
// package's contract with its callers.

const (
	ns   = "acme-test"
	busy = time.Second
)

var errOwn = errors.New("own error")

// suite is a writer on a table of notes.
type suite struct {
	*testing.T
	w       *commit.Writer
	faults  commit.Faults
	notices []store.Notice
}

func inSuite(t *testing.T, fn func(s *suite)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := conn.Open(conn.Config{Name: ":memory:", Synchronous: "OFF"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Script("CREATE TABLE notes (text TEXT NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		s := &suite{T: t}
		s.w, err = commit.New(commit.Config{
			Conn: c, Busy: busy, Lanes: new(lane.Cache), Faults: &s.faults, NotifyAll: func(store.Notice) {},
			Notify: func(_ string, n store.Notice) { s.notices = append(s.notices, n) },
		})
		if err != nil {
			t.Fatal(err)
		}
		fn(s)
		if err := s.w.Close(func() {}); err != nil {
			t.Error(err)
		}
	})
}

func add(text string) func(*commit.Tx) error {
	return func(tx *commit.Tx) error { return tx.Conn.Stmt("INSERT INTO notes VALUES (?1)").Text(1, text).Run() }
}

func (s *suite) do(fn func(*commit.Tx) error) error {
	return s.w.Do(s.Context(), &commit.Op{NS: ns, Run: fn})
}

func (s *suite) notes() string {
	s.Helper()
	var list []string
	err := s.w.Exclusive(s.Context(), func(c *conn.Conn) {
		st := c.Stmt("SELECT text FROM notes")
		for st.Next() {
			list = append(list, st.ColText(0))
		}
		if err := st.Done(); err != nil {
			s.Error(err)
		}
	})
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Effects are applied after the commit, and never after a failed commit.
func TestEffects(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		due := func(tx *commit.Tx) error {
			tx.Effects.Notice.Due = true
			if len(s.notices) > 0 {
				s.Error("a listener was notified before the commit")
			}
			return nil
		}
		s.faults.OnCommit = func(func() error) error { return errOwn }
		if err := s.do(due); !errors.Is(err, errOwn) || len(s.notices) != 0 {
			s.Errorf("a commit that failed: %v, %d notices", err, len(s.notices))
		}
		s.faults.OnCommit = nil
		if err := s.do(due); err != nil || len(s.notices) != 1 {
			s.Errorf("a commit: %v, %d notices; want one", err, len(s.notices))
		}
	})
}

// The last task of a claim is recognized as the last one, and only after commits.
func TestClaims(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		lease := task.NewLeaseID()
		claimed := func(tx *commit.Tx) error {
			tx.Effects.Claimed(lease, sqlstore.Claim{Tasks: 2, Worker: "w"})
			return nil
		}
		var last bool
		ended := func(fail error) func(tx *commit.Tx) error {
			return func(tx *commit.Tx) error { last = tx.Effects.Ended(lease); return fail }
		}
		if err := s.do(claimed); err != nil {
			s.Fatal(err)
		}
		if err := s.do(ended(errOwn)); !errors.Is(err, errOwn) || last {
			s.Errorf("the first of two, undone: last %v, %v", last, err)
		}
		if err := s.do(ended(nil)); err != nil || last {
			s.Errorf("the first of two: last %v, %v", last, err)
		}
		if err := s.do(ended(nil)); err != nil || !last {
			s.Errorf("the second of two: last %v, %v", last, err)
		}
		if err := s.do(ended(nil)); err != nil || last {
			s.Errorf("one of a claim that is not known: last %v, %v", last, err)
		}
	})
}

// A generation changed by an operation is not cached from before, nor while its transaction is
// open.
func TestGenerations(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		var seen string
		remember := func(tx *commit.Tx) error { tx.Effects.RememberGeneration("one"); return nil }
		look := func(tx *commit.Tx) error { seen = tx.Effects.Generation(); return nil }
		change := func(tx *commit.Tx) error {
			tx.Effects.ChangeGeneration()
			tx.Effects.RememberGeneration("two")
			return errOwn // it is rolled back
		}
		for _, step := range []struct {
			fn   func(*commit.Tx) error
			want string
		}{{remember, ""}, {look, "one"}, {change, ""}, {look, ""}} {
			seen = ""
			if err := s.do(step.fn); err != nil && !errors.Is(err, errOwn) {
				s.Fatal(err)
			}
			if seen != step.want {
				s.Errorf("generation %q, want %q", seen, step.want)
			}
		}
	})
}

// While the turn is taken no group is committed. The wait for it ends with the context.
func TestTurn(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		giveBack, err := s.w.Turn(s.Context(), commit.NewHolder("a test", true))
		if err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(s.Context(), time.Second, errOwn)
		defer cancel()
		if _, err := s.w.Turn(ctx, commit.NewHolder("another", true)); !errors.Is(err, errOwn) {
			s.Errorf("a second turn: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- s.do(add("later")) }()
		synctest.Wait()
		if len(done) > 0 {
			s.Error("a group was committed during the turn")
		}
		giveBack()
		if err := <-done; err != nil {
			s.Error(err)
		}
		if got := s.notes(); got != "later" {
			s.Errorf("notes %q", got)
		}
	})
}

// The leader is next after each other transaction, the others come in their order, and no
// transaction waits for the leader twice.
func TestTurnsAlternate(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		giveBack, err := s.w.Turn(s.Context(), commit.NewHolder("the first", false))
		if err != nil {
			s.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			all.Go(func() {
				giveBack, err := s.w.Turn(s.Context(), commit.NewHolder(name, false))
				if err != nil {
					s.Error(err)
					return
				}
				order = append(order, name) // the turn is the lock
				time.Sleep(busy / 2)
				giveBack()
				giveBack() // again: it does not release another's turn
			})
			synctest.Wait()
		}
		for range 2 {
			all.Go(func() {
				err := s.do(func(*commit.Tx) error { order = append(order, "group"); return nil })
				if err == nil {
					err = s.do(func(*commit.Tx) error { order = append(order, "group"); return nil })
				}
				if err != nil {
					s.Error(err)
				}
			})
		}
		synctest.Wait()
		giveBack()
		all.Wait()
		if got := strings.Join(order, " "); got != "group group a group group b c" {
			s.Errorf("the order was: %s", got)
		}
	})
}

// The error of a waiter names a holder that keeps the turn, with its line and its age. A
// bounded holder is waited for.
func TestTurnHeldForLong(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		for _, bounded := range []bool{false, true} {
			giveBack, err := s.w.Turn(s.Context(), commit.NewHolder("a report", bounded))
			if err != nil {
				s.Fatal(err)
			}
			time.AfterFunc(5*busy, giveBack)
			time.Sleep(busy / 2)
			another := make(chan error, 1)
			go func() {
				giveBack, err := s.w.Turn(s.Context(), commit.NewHolder("another", false))
				if err == nil {
					giveBack()
				}
				another <- err
			}()
			group := s.do(add("group"))
			for who, err := range map[string]error{"the group": group, "another": <-another} {
				if bounded {
					if err != nil {
						s.Errorf("%s behind a bounded holder: %v", who, err)
					}
					continue
				}
				var held *commit.HeldError
				if !errors.As(err, &held) || !strings.Contains(held.Holder, "a report, open for 1.5s, begun at ") || !strings.Contains(held.Holder, "commit_test.go:") {
					s.Errorf("%s behind a holder that does not end: %v", who, err)
				}
			}
			time.Sleep(5 * busy)
		}
		if got := s.notes(); got != "group" {
			s.Errorf("notes %q", got)
		}
	})
}

// A waiting claim runs in the transaction that makes a task due, once. A claim that gets
// nothing continues to wait.
func TestWait(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		ran, gets := 0, false
		claim := commit.NewWaitingClaim(ns, func(tx *commit.Tx) error {
			ran++
			if gets {
				tx.Effects.Claimed(task.NewLeaseID(), sqlstore.Claim{Tasks: 1})
			}
			return add("claimed")(tx)
		})
		if err := s.do(func(tx *commit.Tx) error { tx.Wait(claim); return nil }); err != nil {
			s.Fatal(err)
		}
		answered := make(chan bool, 1)
		go func() {
			ok, err := s.w.Wait(s.Context(), claim, time.Hour, nil)
			if err != nil {
				s.Error(err)
			}
			answered <- ok
		}()
		synctest.Wait()
		due := func(tx *commit.Tx) error { tx.Effects.Notice.Due = true; return nil }
		for _, gets = range []bool{false, true} {
			if err := s.do(due); err != nil {
				s.Fatal(err)
			}
			synctest.Wait()
			if (len(answered) == 1) != gets {
				s.Errorf("a claim that gets something: %v; answered: %v", gets, !gets)
			}
		}
		if ok := <-answered; !ok || ran != 2 || claim.TakenAt().IsZero() {
			s.Errorf("answered %v after %d runs, taken at %v", ok, ran, claim.TakenAt())
		}
	})
}

// A claim that is woken while a transaction runs it, and gets nothing from the transaction or
// loses it, is answered: its caller claims again.
func TestWakeWhileTaken(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]error{"it gets nothing": nil, "the transaction is lost": errOwn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inSuite(t, func(s *suite) {
				wake := make(chan struct{}, 1)
				claim := commit.NewWaitingClaim(ns, func(tx *commit.Tx) error {
					wake <- struct{}{}
					time.Sleep(time.Second) // meanwhile the waiting goroutine receives the wake-up
					if commits != nil {
						tx.Effects.Claimed(task.NewLeaseID(), sqlstore.Claim{Tasks: 1})
					}
					return nil
				})
				if err := s.do(func(tx *commit.Tx) error { tx.Wait(claim); return nil }); err != nil {
					s.Fatal(err)
				}
				answered := make(chan bool, 1)
				go func() {
					ok, err := s.w.Wait(s.Context(), claim, time.Hour, wake)
					if err != nil {
						s.Error(err)
					}
					answered <- ok
				}()
				synctest.Wait()
				if commits != nil {
					s.faults.OnCommit = func(func() error) error { return commits }
				}
				err := s.do(func(tx *commit.Tx) error { tx.Effects.Notice.Due = true; return nil })
				if !errors.Is(err, commits) {
					s.Fatal(err)
				}
				synctest.Wait()
				select {
				case ok := <-answered:
					if ok {
						s.Error("it was answered as if it got something")
					}
				default:
					s.Error("it still waits")
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	inSuite(t, func(s *suite) {
		claim := commit.NewWaitingClaim(ns, func(*commit.Tx) error { return nil })
		if err := s.do(func(tx *commit.Tx) error { tx.Wait(claim); return nil }); err != nil {
			s.Fatal(err)
		}
		if err := s.w.Close(func() {}); err != nil {
			s.Error(err)
		}
		if ok, err := s.w.Wait(s.Context(), claim, time.Hour, nil); !ok || !errors.Is(err, batch.ErrClosed) {
			s.Errorf("a claim that waited: %v, %v; want ErrClosed", ok, err)
		}
		if err := s.do(add("late")); !errors.Is(err, batch.ErrClosed) {
			s.Errorf("a write after Close: %v", err)
		}
	})
}
