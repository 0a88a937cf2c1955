package storetest

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

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
				e.finish(fs[i]) // right, whatever happened
				e.is(id, task.Succeeded, task.WaitNone)
			}
		}
	}},
}

// allOrNothing compares what a submit answered with what is stored.
func (e *env) allOrNothing(drafts []task.New, got []store.Enqueued, err error) {
	e.Helper()
	var ids []task.ID
	for _, n := range drafts {
		ids = append(ids, n.ID)
	}
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
