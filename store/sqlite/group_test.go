package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// noteStore is a store with a table of notes and observable commits.
type noteStore struct {
	*testing.T
	db      *sqlite.DB
	commits atomic.Int32
	fail    func(n int32) error // called with the number of the COMMIT
}

func newNoteStore(t *testing.T) *noteStore {
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := errors.Join(db.Migrate(t.Context()), db.Exec(t.Context(), "CREATE TABLE notes (text TEXT NOT NULL)")); err != nil {
		t.Fatal(err)
	}
	s := &noteStore{T: t, db: db}
	db.OnCommit(func(commit func() error) error {
		n := s.commits.Add(1)
		if s.fail != nil {
			if err := s.fail(n); err != nil {
				return err
			}
		}
		return commit()
	})
	return s
}

type execSQL = func(sql string) error

func note(text string) string { return fmt.Sprintf("INSERT INTO notes VALUES ('%s')", text) }

// together runs operations that share one group: the first one keeps the lead until all others
// wait.
func (s *noteStore) together(ops ...func(execSQL) error) []error {
	s.Helper()
	release := make(chan struct{})
	errs := make([]error, len(ops))
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.db.Write(context.Background(), func(execSQL) error { <-release; return nil })
	})
	synctest.Wait()
	for i, op := range ops {
		wg.Go(func() { errs[i] = s.db.Write(context.Background(), op) })
		synctest.Wait() // in this order
	}
	s.commits.Store(0)
	close(release)
	wg.Wait()
	return errs
}

// No two operations that may move many rows share a group, so that a heartbeat waits for at
// most one of them.
func TestNoGroupHasTwoHeavyOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = s.db.Write(context.Background(), func(execSQL) error { <-release; return nil })
		})
		synctest.Wait()
		reap := func() error {
			_, err := s.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "reaper", TTL: fixTTL})
			return err
		}
		operate := func() error {
			_, err := s.db.Operate(t.Context(), fixNS, store.PauseQueue{Queue: "q", Audit: store.Audit{By: "ann"}})
			return err
		}
		for _, op := range []func() error{reap, operate, reap, operate} {
			wg.Go(func() {
				if err := op(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		s.commits.Store(0)
		close(release)
		wg.Wait()
		if got := s.commits.Load(); got != 5 {
			t.Errorf("%d groups, want one for each of the four beside the first", got)
		}
	})
}

func (s *noteStore) notes() string {
	s.Helper()
	rows, err := s.db.DB().QueryContext(s.Context(), "SELECT text FROM notes ORDER BY text")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return strings.Join(all, " ")
}

var errOwn = errors.New("own error")

func TestGroupIsolatesFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		errs := s.together(
			func(x execSQL) error { return x(note("a")) },
			func(x execSQL) error { return errors.Join(x(note("lost")), errOwn) },
			func(x execSQL) error { return x(note("b")) },
			func(x execSQL) error { return errors.Join(x(note("lost too")), x("INSERT INTO notes VALUES (NULL)")) },
			func(x execSQL) error { _ = x(note("never")); panic("boom") },
			func(x execSQL) error { return x(note("c")) },
		)
		for i, want := range []bool{true, false, true, false, false, true} {
			if (errs[i] == nil) != want {
				t.Errorf("operation %d: %v", i, errs[i])
			}
		}
		if !errors.Is(errs[1], errOwn) || !strings.Contains(fmt.Sprint(errs[4]), "boom") {
			t.Errorf("errors %v, %v", errs[1], errs[4])
		}
		if got := s.notes(); got != "a b c" {
			t.Errorf("notes %q, want a b c", got)
		}
		if n := s.commits.Load(); n != 2 { // the commit that kept the lead, and the group
			t.Errorf("%d commits, want 2: the operations did not share one", n)
		}
	})
}

// An operation that loses the whole transaction must neither make its neighbours' statements
// commit by themselves nor run them twice.
func TestGroupLosesItsTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		runs := 0
		errs := s.together(
			func(x execSQL) error { return x(note("a")) },
			func(x execSQL) error {
				runs++
				return errors.Join(x(note("lost")), x("ROLLBACK")) // as an interrupt or a full disk would
			},
			func(x execSQL) error { return x(note("b")) },
		)
		if errs[0] != nil || errs[2] != nil || errs[1] == nil {
			t.Errorf("errors %v", errs)
		}
		if runs != 2 {
			t.Errorf("the operation at fault ran %d times, want 2: in the group and by itself", runs)
		}
		if got := s.notes(); got != "a b" {
			t.Errorf("notes %q, want a b, each once", got)
		}
	})
}

func TestGroupCommitFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		// 1: the leader. 2: the group. 3, 4, 5: its operations one by one.
		s.fail = func(n int32) error {
			if n == 2 || n == 4 {
				return errOwn
			}
			return nil
		}
		errs := s.together(
			func(x execSQL) error { return x(note("a")) },
			func(x execSQL) error { return x(note("b")) },
			func(x execSQL) error { return x(note("c")) },
		)
		if errs[0] != nil || !errors.Is(errs[1], errOwn) || errs[2] != nil {
			t.Errorf("errors %v, want only the second to fail", errs)
		}
		if got := s.notes(); got != "a c" {
			t.Errorf("notes %q, want a c", got)
		}
	})
}

func TestGroupCallerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		release := make(chan struct{})
		hold := func(x execSQL) error { <-release; return x(note("held")) }
		give := func(op func(execSQL) error) (context.CancelCauseFunc, chan error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.db.Write(ctx, op) }()
			synctest.Wait()
			return cancel, done
		}
		_, first := give(hold)
		cancelQueued, queued := give(func(x execSQL) error { return x(note("never")) })
		cancelQueued(errOwn)
		if err := <-queued; !errors.Is(err, errOwn) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("a caller that gave up in the queue got %v", err)
		}
		// A third operation leads the next group; a fourth is in it and gives up.
		again := make(chan struct{})
		_, third := give(func(x execSQL) error { <-again; return nil })
		cancelTaken, taken := give(func(x execSQL) error { return x(note("taken")) })
		close(release)
		synctest.Wait()
		cancelTaken(errOwn)
		if err := <-taken; !errors.Is(err, store.ErrUnknown) || !errors.Is(err, errOwn) {
			t.Errorf("a caller that gave up while its write was committed got %v", err)
		}
		close(again)
		for _, done := range []chan error{first, third} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := s.notes(); got != "held taken" {
			t.Errorf("notes %q, want held taken", got)
		}
	})
}

// A heartbeat that comes while the writer waits for the lock is written before operations that
// waited longer.
func TestHeartbeatsGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newNoteStore(t)
		if err := s.db.Join(t.Context(), "test", store.WorkerInfo{ID: "w", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		tx, err := s.db.DB().BeginTx(t.Context(), nil) // holds the write lock
		if err != nil {
			t.Fatal(err)
		}
		before := s.commits.Load()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := s.db.Write(t.Context(), func(x execSQL) error {
				return x("INSERT INTO notes SELECT 'beat' FROM weaver_workers WHERE last_seen > 1000000 * unixepoch('2000-01-01 00:00:00')")
			})
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		wg.Go(func() {
			if _, err := s.db.Heartbeat(t.Context(), "test", store.HeartbeatRequest{Worker: "w", TTL: time.Second}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if got := s.notes(); got != "beat" {
			t.Errorf("notes %q: the write that waited longer went before the heartbeat", got)
		}
		if n := s.commits.Load() - before; n != 1 {
			t.Errorf("%d commits, want 1: the heartbeat joins the group that waits for the lock", n)
		}
	})
}

// crashImage copies the files of a database as a crash would leave them.
func crashImage(t *testing.T, path string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "crashed.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(image+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

// Acknowledged writes survive a crash at any moment of the next commit. Unacknowledged writes
// are stored completely or not at all.
func TestCrashAroundCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openFile(t, path, sqlite.Synchronous(sqlite.Full))
	ids := task.NewIDs(nil)
	kept := newTasks(ids, 3)
	if _, err := db.Enqueue(t.Context(), "ns", nil, kept); err != nil {
		t.Fatal(err)
	}
	var before, after string
	db.OnCommit(func(commit func() error) error {
		before = crashImage(t, path)
		err := commit()
		after = crashImage(t, path)
		return err
	})
	torn := newTasks(ids, 200)
	if _, err := db.Enqueue(t.Context(), "ns", nil, torn); err != nil {
		t.Fatal(err)
	}
	db.OnCommit(nil)
	for image, want := range map[string]int{before: 3, after: 203} {
		crashed := openFile(t, image)
		list, _, err := crashed.List(t.Context(), "ns", store.Filter{Limit: store.MaxLimit})
		if err != nil || len(list) != want {
			t.Errorf("after the crash there are %d tasks, %v, want %d", len(list), err, want)
		}
		again, err := crashed.Enqueue(t.Context(), "ns", nil, torn)
		if err != nil || len(again) != 200 || again[0].Disposition != store.DispositionCreated {
			t.Errorf("the same call after the crash: %v", err)
		}
		snap, err := crashed.Snapshot(t.Context(), "ns")
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Tasks) != 203 {
			t.Errorf("%d tasks after the call was made again, want 203", len(snap.Tasks))
		}
		if found := store.Check(snap); len(found) > 0 {
			t.Errorf("store.Check: %v", found)
		}
	}
}

// grouped makes calls that share one group, in this order.
func grouped(t *testing.T, db *sqlite.DB, calls ...func()) {
	t.Helper()
	release := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = db.Write(context.Background(), func(func(string) error) error { <-release; return nil })
	})
	synctest.Wait()
	for _, call := range calls {
		wg.Go(call)
		synctest.Wait()
	}
	close(release)
	wg.Wait()
}
