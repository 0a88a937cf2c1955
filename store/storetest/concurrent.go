package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var concurrentCases = []testCase{
	{"R3 every task is claimed by one worker", func(e *env) {
		both := e.stores()
		ids := e.many(e.h.Repeat)
		var mu sync.Mutex
		owner := map[task.ID]int{}
		e.race(4, func(i int) {
			for range 2 * e.h.Repeat {
				got := e.claimOn(both[i%2], limit(3))
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, c := range got {
					owner[c.Task.ID]++
				}
				mu.Unlock()
			}
		})
		// A claim skips tasks locked by other claims, so all claims may be empty although a task is left.
		for got := e.claimOn(both[0], limit(3)); len(got) > 0; got = e.claimOn(both[0], limit(3)) {
			for _, c := range got {
				owner[c.Task.ID]++
			}
		}
		for _, id := range ids {
			e.check(owner[id] == 1, "task %v was claimed %d times", id, owner[id])
		}
		for _, t := range e.tasks(ids...) {
			e.check(t.AttemptNo == 1, "task %v has attempt number %d", t.ID, t.AttemptNo)
		}
	}},
	{"R-07 the same finish by two goroutines succeeds once", func(e *env) {
		both := e.stores()
		for range e.batches(20) {
			var parents, children []task.ID
			for range 10 {
				g := e.job("a", "b: a")
				parents, children = append(parents, g.id("a")), append(children, g.id("b"))
			}
			fs := finishes(e.a.takeAll(parents...), success)
			var got [2][]store.FinishResult
			e.together(
				func() { got[0] = e.finishEach(both[0], fs) },
				func() { got[1] = e.finishEach(both[1], fs) },
			)
			for i := range fs {
				for _, half := range got {
					e.equal("the answer", half[i], store.FinishResult{State: task.Succeeded})
				}
			}
			for _, id := range children {
				e.dueAt(id, e.now())
			}
			e.finishOK(finishes(e.a.takeAll(children...), success)...)
		}
	}},
	{"R-10 a finish and a reap at the same instant do not contradict", func(e *env) {
		both := e.stores()
		for range e.batches(20) {
			ids := e.many(20)
			fs := finishes(e.a.takeAll(ids...), success)
			e.pass(ttl + ttl/3)
			var got []store.FinishResult
			var reaped store.ReapResult
			e.together(
				func() { got = e.finishEach(both[0], fs) },
				func() { reaped = e.reapOn(both[1]) },
			)
			taken := map[task.ID]bool{}
			for _, r := range reaped.Reaped {
				taken[r.Task] = true
			}
			for i, id := range ids {
				t := e.task(id)
				switch {
				case taken[id] && errors.Is(got[i].Err, store.ErrLeaseLost) && t.State == task.Ready:
				case !taken[id] && got[i].Err == nil && t.State == task.Succeeded:
				default:
					e.Errorf("reaped: %v, finish: %v, the task is %s", taken[id], got[i].Err, t.State)
				}
				e.equal("the attempts", len(e.history(id).Attempts), 1)
			}
		}
	}},
	{"R8 a finish and a forced cancel at the same instant do not contradict", func(e *env) {
		both := e.stores()
		for range e.batches(20) {
			ids := e.many(20, key("k", 100))
			fs := finishes(e.a.takeAll(ids...), success)
			var got []store.FinishResult
			forced := make([]store.CommandResult, len(ids))
			e.together(
				func() { got = e.finishEach(both[0], fs) },
				func() {
					for i, id := range ids {
						r, err := both[1].Operate(e.Context(), e.ns, forceOf(id))
						if err != nil {
							e.Errorf("Operate: %v", err)
							return
						}
						forced[i] = r[0]
					}
				},
			)
			for i, id := range ids {
				switch t := e.task(id); {
				case got[i].Err == nil && errors.Is(forced[i].Err, store.ErrState) && t.State == task.Succeeded:
				case errors.Is(got[i].Err, store.ErrLeaseLost) && forced[i].Err == nil && t.State == task.Cancelled:
				default:
					e.Errorf("finish: %v, force: %v, the task is %s", got[i].Err, forced[i].Err, t.State)
				}
			}
			e.keyHeld("k", 0, 100)
		}
	}},
	{"R-14 two reapers at once have one effect each", func(e *env) {
		both := e.stores()
		for range e.batches(50) {
			ids := e.many(30)
			late := e.many(10, expires(time.Second))
			e.worker("doomed").takeAll(ids...)
			e.pass(ttl + ttl/3)
			var got [3]store.ReapResult
			e.race(len(got), func(i int) { got[i] = e.reapOn(both[i%2]) })
			reaped, expired := map[task.ID]int{}, map[task.ID]int{}
			for _, r := range got {
				for _, x := range r.Reaped {
					reaped[x.Task]++
				}
				for _, id := range r.Expired {
					expired[id]++
				}
			}
			for _, id := range ids {
				t := e.task(id)
				e.check(reaped[id] == 1 && t.CrashCount == 1 && t.State == task.Ready, "a lease was reaped %d times: the task is %s with %d crashes", reaped[id], t.State, t.CrashCount)
				e.dueAt(id, t.CreatedAt)
			}
			for _, id := range late {
				e.check(expired[id] == 1, "a task was ended by its deadline %d times", expired[id])
			}
			e.finishOK(finishes(e.a.takeAll(ids...), success)...)
		}
	}},
	{"R-22 a key never has more holders than its cap", func(e *env) {
		const most = 2
		both := e.stores()
		ids := e.many(e.h.Repeat/2, key("k", most))
		var running atomic.Int64
		e.race(4, func(i int) {
			for n := range e.h.Repeat / 4 {
				got := e.claimOn(both[i%2], limit(1))
				now := running.Add(int64(len(got)))
				e.check(now <= most, "%d tasks with the key run, at most %d may", now, most)
				for _, c := range got {
					f := success(c)
					if n%3 == 0 {
						f = retry(c, 0)
					}
					running.Add(-1) // before the store can pass the key on
					e.finishEach(both[i%2], []store.Finish{f})
				}
			}
		})
		for range len(ids) {
			e.finishOK(finishes(e.a.claim().Tasks, success)...)
		}
		for _, t := range e.tasks(ids...) {
			e.check(t.State == task.Succeeded, "a task with a key is %s/%s at the end", t.State, t.Waiting)
		}
	}},
	{"heartbeats, claims and finishes run at once", func(e *env) {
		both := e.stores()
		e.many(e.h.Repeat)
		var finished atomic.Int64
		e.race(3, func(i int) {
			s := both[i%2]
			for range 2 * e.h.Repeat {
				got := e.claimOn(s, limit(10))
				if len(got) == 0 {
					return
				}
				beats, err := s.Heartbeat(e.Context(), e.ns, store.HeartbeatRequest{Worker: e.a.id, TTL: ttl, Leases: leasesOf(got)})
				e.check(err == nil, "Heartbeat: %v", err)
				for _, b := range beats {
					e.check(b == (store.Beat{}), "the heartbeat of a fresh lease answered %+v", b)
				}
				for _, c := range got {
					_, err := s.Record(e.Context(), e.ns, store.Record{Lease: c.Lease, Progress: &task.Progress{Current: 1}})
					e.check(err == nil, "Record: %v", err)
				}
				for _, r := range e.finishEach(s, finishes(got, success)) {
					e.check(r.Err == nil, "Finish: %v", r.Err)
					finished.Add(1)
				}
			}
		})
		e.equal("the tasks finished", finished.Load(), int64(e.h.Repeat))
	}},
}

var concurrentSubmitCases = []testCase{
	{"R-13 one of many submissions of a key creates the task", func(e *env) {
		const racers = 4
		both := e.stores()
		for range e.h.Repeat / racers {
			drafts, answers := e.drafts(racers, once(e.newID().String())), make([]store.Enqueued, racers)
			e.race(racers, func(i int) {
				got, err := both[i%2].Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: drafts[i : i+1]})
				if e.check(err == nil, "Enqueue: %v", err); err == nil {
					answers[i] = got[0]
				}
			})
			created := 0
			for _, a := range answers {
				if a.Disposition == store.DispositionCreated {
					created++
				}
				e.require(a.ID == answers[0].ID, "one key stands for two tasks: %v", answers)
			}
			e.require(created == 1, "%d submissions of one key created a task: %v", created, answers)
		}
	}},
	{"no snapshot shows half a submission", func(e *env) {
		const size, times = 20, 10
		other := e.second()
		look := func() {
			for range times {
				snap, err := other.Snapshot(e.Context(), e.ns)
				if err != nil {
					e.Errorf("Snapshot: %v", err)
					return
				}
				e.check(len(snap.Tasks)%size == 0 && len(snap.Dispatch) == len(snap.Tasks), "a snapshot shows %d tasks and %d dispatch rows of submissions of %d", len(snap.Tasks), len(snap.Dispatch), size)
			}
		}
		put := func() {
			for range times {
				_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: e.drafts(size)})
				e.check(err == nil, "Enqueue: %v", err)
			}
		}
		e.together(put, put, look)
	}},
	{"R-24 an enqueue whose context ends inside the group is all or nothing", func(e *env) {
		const callers = 8
		both := e.stores()
		for range e.batches(callers) {
			var race []func()
			for i := range callers {
				drafts := e.drafts(3)
				ctx, cancel := context.WithCancel(e.Context())
				give := i%2 == 1
				race = append(race, func() {
					defer cancel()
					got, err := both[i%2].Enqueue(ctx, e.ns, nil, store.Submission{Tasks: drafts})
					e.check(err == nil || give, "an enqueue whose context lives: %v", err)
					e.allOrNothing(drafts, got, err)
				})
				if give {
					race = append(race, cancel)
				}
			}
			e.together(race...)
		}
	}},
	{"R-24 a finish whose context ends inside the group may be made again", func(e *env) {
		both := e.stores()
		for range e.batches(20) {
			ids := e.many(20)
			fs := finishes(e.a.takeAll(ids...), success)
			errs := make([]error, len(fs))
			var race []func()
			for i, f := range fs {
				ctx, cancel := context.WithCancel(e.Context())
				give := i%2 == 1
				race = append(race, func() {
					defer cancel()
					got, err := both[i%2].Finish(ctx, e.ns, f)
					if err == nil {
						err = got[0].Err
					}
					e.check(err == nil || give, "a finish whose context lives: %v", err)
					errs[i] = err
				})
				if give {
					race = append(race, cancel)
				}
			}
			e.together(race...)
			for i, id := range ids {
				t := e.task(id)
				e.check(isUnknown(errs[i]) || (t.State == task.Succeeded) == (errs[i] == nil), "Finish answered %v and the task is %s", errs[i], t.State)
				e.finish(fs[i]) // right in every interleaving
				e.is(id, task.Succeeded, task.WaitNone)
			}
		}
	}},
}

// batches returns the number of batches of size n for Repeat tasks.
func (e *env) batches(n int) int { return max(1, e.h.Repeat/n) }

// race runs a function n times concurrently. It must not call Fatal.
func (e *env) race(n int, fn func(i int)) {
	var fns []func()
	for i := range n {
		fns = append(fns, func() { fn(i) })
	}
	e.together(fns...)
}

// claimOn claims through a handle, on any goroutine.
func (e *env) claimOn(s store.Store, asks ...ask) []store.Claimed {
	got, err := s.Claim(e.Context(), e.ns, e.a.request(asks...))
	e.check(err == nil, "Claim: %v", err)
	return got.Tasks
}

// reapOn reaps through a handle, on any goroutine.
func (e *env) reapOn(s store.Store) store.ReapResult {
	got, err := s.Reap(e.Context(), e.ns, store.ReapRequest{Worker: e.reaper.id, TTL: ttl, CrashBudget: 3})
	e.check(err == nil, "Reap: %v", err)
	return got
}

// finishEach calls Finish once per element, concurrently, and returns the results.
func (e *env) finishEach(s store.Store, fs []store.Finish) []store.FinishResult {
	out := make([]store.FinishResult, len(fs))
	for i, f := range fs {
		got, err := s.Finish(e.Context(), e.ns, f)
		if err != nil {
			e.Errorf("Finish: %v", err)
			return out
		}
		out[i] = got[0]
	}
	return out
}

// allOrNothing compares the answer of a submit with the stored tasks.
func (e *env) allOrNothing(drafts []task.New, got []store.Enqueued, err error) {
	e.Helper()
	ids := mapped(drafts, draftID)
	stored, readErr := e.s.Tasks(e.Context(), e.ns, ids...)
	switch {
	case readErr != nil:
		e.Errorf("Tasks: %v", readErr)
	case err == nil && (len(got) != len(ids) || len(stored) != len(ids)):
		e.Errorf("Enqueue of %d tasks was acknowledged with %d answers and stored %d", len(ids), len(got), len(stored))
	case err != nil && !isUnknown(err) && len(stored) != 0:
		e.Errorf("Enqueue failed with %v and stored %d tasks", err, len(stored))
	case len(stored) != 0 && len(stored) != len(ids):
		e.Errorf("Enqueue of %d tasks stored %d", len(ids), len(stored))
	}
}
