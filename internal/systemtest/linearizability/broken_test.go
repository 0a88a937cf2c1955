package linearizability_test

import (
	"context"
	"errors"
	"sync"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// broken returns a store over s with hooks.
func broken(s store.Store, h storehook.Hooks) store.Store { return storehook.New(s, &h) }

// changed returns a hook that changes the answer of a method.
func changed[A, R any](change func(args A, answer R) R) storehook.Hook[A, R] {
	return func(_ context.Context, args A, next func() (R, error)) (R, error) {
		answer, err := next()
		return change(args, answer), err
	}
}

// finished returns a hook that changes every element of a Finish.
func finished(change func(f store.Finish, r *store.FinishResult)) storehook.Hook[[]store.Finish, []store.FinishResult] {
	return changed(func(fins []store.Finish, res []store.FinishResult) []store.FinishResult {
		for i := range res {
			change(fins[i], &res[i])
		}
		return res
	})
}

// brokenStores lists stores that each break one rule, which a history must show.
var brokenStores = []struct {
	name string
	make func(s store.Store) store.Store
}{
	{"a finish under a lost lease succeeds", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Finish: finished(func(_ store.Finish, r *store.FinishResult) {
			if errors.Is(r.Err, store.ErrLeaseLost) {
				*r = store.FinishResult{State: task.Ready}
			}
		})})
	}},
	{"a finish that contradicts the first succeeds", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Finish: finished(func(_ store.Finish, r *store.FinishResult) {
			if errors.Is(r.Err, store.ErrConflict) {
				*r = store.FinishResult{State: task.Ready}
			}
		})})
	}},
	{"the same finish again is refused", func(s store.Store) store.Store {
		var mu sync.Mutex
		done := map[task.Lease]bool{}
		return broken(s, storehook.Hooks{Finish: finished(func(f store.Finish, r *store.FinishResult) {
			mu.Lock()
			defer mu.Unlock()
			if done[f.Lease] && r.Err == nil {
				r.Err = store.ErrLeaseLost
			}
			done[f.Lease] = done[f.Lease] || r.Err == nil
		})})
	}},
	{"a lease is handed out twice", func(s store.Store) store.Store {
		var mu sync.Mutex
		last := map[task.ID]store.Claimed{}
		return broken(s, storehook.Hooks{Claim: changed(func(req store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range res.Tasks {
				last[c.Task.ID] = c
			}
			if len(req.IDs) == 1 && len(res.Tasks) == 0 {
				if c, ok := last[req.IDs[0]]; ok {
					res.Tasks = []store.Claimed{c}
				}
			}
			return res
		})})
	}},
	{"a claim does not find what is claimable", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Claim: changed(func(req store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
			// Simulates a dispatch row deleted by a claim that gave up: the lease is stored, and no worker holds it.
			if len(req.IDs) == 1 {
				res.Tasks = nil
			}
			return res
		})})
	}},
	{"a claim returns the previous epoch", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Claim: changed(func(_ store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
			for i := range res.Tasks {
				res.Tasks[i].Lease.Epoch--
			}
			return res
		})})
	}},
	{"a heartbeat does not report that the lease is lost", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Heartbeat: changed(func(_ store.HeartbeatRequest, beats []store.Beat) []store.Beat {
			for i := range beats {
				beats[i].Lost = false
			}
			return beats
		})})
	}},
	{"a reap does not report what it took", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Reap: changed(func(_ store.ReapRequest, res store.ReapResult) store.ReapResult {
			res.Reaped = nil
			return res
		})})
	}},
	{"a command that was refused succeeds", func(s store.Store) store.Store {
		return broken(s, storehook.Hooks{Operate: changed(func(_ []store.Command, res []store.CommandResult) []store.CommandResult {
			for i := range res {
				if res[i].Err != nil {
					res[i] = store.CommandResult{State: task.Cancelled}
				}
			}
			return res
		})})
	}},
	{"a read returns what was before", func(s store.Store) store.Store {
		var mu sync.Mutex
		var before []task.Task
		return broken(s, storehook.Hooks{Tasks: changed(func(_ []task.ID, now []task.Task) []task.Task {
			mu.Lock()
			defer mu.Unlock()
			old := before
			before = now
			if old == nil {
				return now
			}
			return old
		})})
	}},
}
