package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// lot is a store in a bubble whose claims wait, and whose commits are counted.
type lot struct {
	*fixture
	commits int
	fail    func() error // before the next commit, once
}

func inLot(t *testing.T, name string, play func(l *lot)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			n := newNotebook(t)
			l := &lot{fixture: fixtureOn(t, n.db)}
			l.join("w")
			l.db.OnCommit(func(commit func() error) error {
				if fail := l.fail; fail != nil {
					l.fail = nil
					if err := fail(); err != nil {
						return err
					}
				}
				l.commits++
				return commit()
			})
			play(l)
		})
	})
}

// answer is what a claim that waited was told.
type answer struct {
	store.ClaimResult
	err error
	at  time.Time
}

// park asks for work that is not there yet and returns when the claim waits.
func (l *lot) park(ctx context.Context, wait time.Duration, change ...func(*store.ClaimRequest)) <-chan answer {
	l.Helper()
	return l.parkUntil(ctx, wait, nil, change...)
}

// parkUntil is park for a claim that wake ends early.
func (l *lot) parkUntil(ctx context.Context, wait time.Duration, wake <-chan struct{}, change ...func(*store.ClaimRequest)) <-chan answer {
	l.Helper()
	req := fixClaim("w", 10)
	for _, c := range change {
		c(&req)
	}
	ch := make(chan answer, 1)
	go func() {
		res, err := l.db.ClaimOrWait(ctx, fixNS, req, wait, wake)
		ch <- answer{res, err, time.Now()}
	}()
	synctest.Wait()
	l.commits = 0
	return ch
}

func (l *lot) got(a answer, n int) []store.Claimed {
	l.Helper()
	if a.err != nil || len(a.Tasks) != n {
		l.Fatalf("the claim got %d tasks, error %v; want %d", len(a.Tasks), a.err, n)
	}
	return a.Tasks
}

func TestClaimsThatWait(t *testing.T) {
	t.Parallel()

	inLot(t, "ride with the enqueue", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		time.Sleep(time.Minute)
		ids := l.enqueue(2)
		a := <-ch
		tasks := l.got(a, 2)
		if l.commits != 1 {
			l.Errorf("%d commits for an enqueue and its claim, want 1", l.commits)
		}
		if a.Waited != time.Minute {
			l.Errorf("held for %s, want 1m: a lease must not be trusted from before", a.Waited)
		}
		l.finish(tasks...)
		l.sound(ids...)
	})

	inLot(t, "ride with the finish that releases a dependent", func(l *lot) {
		first, second := l.draft(), l.draft()
		second.Needs = []task.Edge{{Needs: first.ID, Kind: task.OnSuccess}}
		if err := l.submit(l.Context(), store.Submission{Tasks: []task.New{first, second}}); err != nil {
			l.Fatal(err)
		}
		running := l.claim("w", 1)
		ch := l.park(l.Context(), time.Hour)
		l.finish(running...)
		l.finish(l.got(<-ch, 1)...)
		if l.commits != 2 {
			l.Errorf("%d commits for two finishes and a claim, want 2", l.commits)
		}
		l.sound(first.ID, second.ID)
	})

	inLot(t, "take what they may, and leave the rest to others", func(l *lot) {
		one := func(r *store.ClaimRequest) { r.Limit, r.Queues = 1, map[string]int{"billing": 1} }
		billing := l.park(l.Context(), time.Hour, one)
		other := l.park(l.Context(), time.Hour)
		ids := l.enqueue(2)
		l.got(<-other, 2)
		ids = append(ids, l.enqueue(2, func(n *task.New) { n.Queue = "billing" })...)
		l.got(<-billing, 1)
		l.sound(ids...)
	})

	inLot(t, "end with nothing when their time is over, and then get nothing", func(l *lot) {
		began := time.Now()
		ch := l.park(l.Context(), time.Minute)
		a := <-ch
		if l.got(a, 0); a.at.Sub(began) != time.Minute || a.Waited != time.Minute {
			l.Errorf("it waited %s and says %s, want 1m", a.at.Sub(began), a.Waited)
		}
		ids := l.enqueue(1)
		if got := l.claim("w", 1); len(got) != 1 {
			l.Errorf("the task was given to a claim that nobody waits for")
		}
		l.sound(ids...)
	})

	inLot(t, "end in time for a row that is due later", func(l *lot) {
		ids := l.enqueue(1, func(n *task.New) { n.Delay = time.Minute })
		began := time.Now()
		a := <-l.park(l.Context(), time.Hour)
		if l.got(a, 0); a.at.Sub(began) != time.Minute {
			l.Errorf("it ended after %s, want 1m", a.at.Sub(began))
		}
		l.sound(ids...)
	})

	inLot(t, "are not kept when something is due that they may not take", func(l *lot) {
		ids := l.enqueue(1)
		began := time.Now()
		a := <-l.park(l.Context(), time.Hour, func(r *store.ClaimRequest) { r.Limit = 0 })
		if l.got(a, 0); !a.at.Equal(began) || a.Next != 0 || a.Waited != 0 {
			l.Errorf("answered after %s, next %s, held %s; want at once", a.at.Sub(began), a.Next, a.Waited)
		}
		l.sound(ids...)
	})

	inLot(t, "end when they are woken, and say that they waited", func(l *lot) {
		wake := make(chan struct{}, 1)
		ch := l.parkUntil(l.Context(), time.Hour, wake)
		wake <- struct{}{}
		a := <-ch
		if l.got(a, 0); a.Waited == 0 {
			l.Error("the claim does not say that it waited: its caller would wait once more")
		}
	})

	inLot(t, "end with their context, with nothing and without an error", func(l *lot) {
		ctx, cancel := context.WithCancel(l.Context())
		ch := l.park(ctx, time.Hour)
		cancel()
		l.got(<-ch, 0)
		ids := l.enqueue(1)
		l.got(answer{ClaimResult: store.ClaimResult{Tasks: l.claim("w", 1)}}, 1)
		l.sound(ids...)
	})

	inLot(t, "are unknown when their context ends during the commit", func(l *lot) {
		ctx, cancel := context.WithCancel(l.Context())
		req := fixClaim("w", 1)
		ch := l.park(ctx, time.Hour, func(r *store.ClaimRequest) { r.LeaseID = req.LeaseID })
		release := make(chan struct{})
		l.fail = func() error { cancel(); <-release; return nil }
		enqueued := make(chan error, 1)
		sub := l.drafts(1)
		go func() { enqueued <- l.submit(l.Context(), sub) }()
		a := <-ch
		says(l.T, a.err, store.ErrUnknown)
		close(release)
		if err := <-enqueued; err != nil {
			l.Fatal(err)
		}
		req.Again = true
		res, err := l.db.Claim(l.Context(), fixNS, req)
		l.finish(l.got(answer{ClaimResult: res, err: err}, 1)...)
		l.sound(idsOf(sub)...)
	})

	inLot(t, "stay parked when the commit fails, and get nothing of it", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		full := errors.New("disk full")
		l.fail = func() error { return full }
		sub := l.drafts(1)
		says(l.T, l.submit(l.Context(), sub), full)
		select {
		case a := <-ch:
			l.Fatalf("answered with %d tasks, error %v", len(a.Tasks), a.err)
		case <-time.After(time.Minute):
		}
		ids := l.enqueue(1)
		l.got(<-ch, 1)
		l.sound(ids...)
	})

	inLot(t, "are told when the commit ended in a panic", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		l.fail = func() error { panic("boom") }
		if err := l.submit(l.Context(), l.drafts(1)); err == nil {
			l.Fatal("the enqueue succeeded")
		}
		a := <-ch
		says(l.T, a.err, store.ErrUnknown)
		l.sound()
	})

	inLot(t, "do not keep others' work from being stored", func(l *lot) {
		// A claim that cannot write its row, because its lease id is known.
		ids := l.enqueue(1)
		claimed := l.claim("w", 1)
		ch := l.park(l.Context(), time.Minute, func(r *store.ClaimRequest) { r.LeaseID = claimed[0].Lease.ID })
		ids = append(ids, l.enqueue(1)...)
		l.got(<-ch, 0)
		l.finish(claimed...)
		if got := l.claim("w", 1); len(got) != 1 {
			l.Error("the claim that failed left its task leased")
		}
		l.sound(ids...)
	})

	inLot(t, "are answered when the store is closed", func(l *lot) {
		ch := l.park(l.Context(), time.Hour)
		if err := l.db.Close(); err != nil {
			l.Fatal(err)
		}
		says(l.T, (<-ch).err, store.ErrClosed)
	})
}
