package linearizability_test

import (
	"context"
	"errors"
	"sync"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// leaseLiar is a store that does not answer as it should.
type leaseLiar struct {
	store.Store
	claimed   func(store.ClaimRequest, store.ClaimResult) store.ClaimResult
	beaten    func([]store.Beat)
	finished  func([]store.Finish, []store.FinishResult)
	reaped    func(*store.ReapResult)
	commanded func([]store.CommandResult)
	seen      func([]task.Task) []task.Task
}

// Claim implements store.Worker.
func (l *leaseLiar) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	res, err := l.Store.Claim(ctx, ns, req)
	if l.claimed != nil {
		res = l.claimed(req, res)
	}
	return res, err
}

// Heartbeat implements store.Worker.
func (l *leaseLiar) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	beats, err := l.Store.Heartbeat(ctx, ns, req)
	if l.beaten != nil {
		l.beaten(beats)
	}
	return beats, err
}

// Finish implements store.Worker.
func (l *leaseLiar) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	res, err := l.Store.Finish(ctx, ns, fins...)
	if l.finished != nil {
		l.finished(fins, res)
	}
	return res, err
}

// Reap implements store.Worker.
func (l *leaseLiar) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	res, err := l.Store.Reap(ctx, ns, req)
	if l.reaped != nil {
		l.reaped(&res)
	}
	return res, err
}

// Operate implements store.Producer.
func (l *leaseLiar) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	res, err := l.Store.Operate(ctx, ns, cmds...)
	if l.commanded != nil {
		l.commanded(res)
	}
	return res, err
}

// Tasks implements store.Reader.
func (l *leaseLiar) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	tasks, err := l.Store.Tasks(ctx, ns, ids...)
	if l.seen != nil {
		tasks = l.seen(tasks)
	}
	return tasks, err
}

// leaseLies are the guards whose loss must show in a history.
var leaseLies = []struct {
	name string
	tell func(s store.Store) store.Store
}{
	{"a finish under a lost lease succeeds", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, finished: func(fins []store.Finish, res []store.FinishResult) {
			for i := range res {
				if errors.Is(res[i].Err, store.ErrLeaseLost) {
					res[i] = store.FinishResult{State: task.Ready}
				}
			}
		}}
	}},
	{"a finish that contradicts the first succeeds", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, finished: func(fins []store.Finish, res []store.FinishResult) {
			for i := range res {
				if errors.Is(res[i].Err, store.ErrConflict) {
					res[i] = store.FinishResult{State: task.Ready}
				}
			}
		}}
	}},
	{"the same finish again is refused", func(s store.Store) store.Store {
		var mu sync.Mutex
		done := map[task.Lease]bool{}
		return &leaseLiar{Store: s, finished: func(fins []store.Finish, res []store.FinishResult) {
			mu.Lock()
			defer mu.Unlock()
			for i, f := range fins {
				if done[f.Lease] && res[i].Err == nil {
					res[i].Err = store.ErrLeaseLost
				}
				done[f.Lease] = done[f.Lease] || res[i].Err == nil
			}
		}}
	}},
	{"a lease is handed out twice", func(s store.Store) store.Store {
		var mu sync.Mutex
		last := map[task.ID]store.Claimed{}
		return &leaseLiar{Store: s, claimed: func(req store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
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
		}}
	}},
	{"a claim does not find what is claimable", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, claimed: func(req store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
			// As if a dispatch row was deleted by a claim that gave up: the lease
			// stands, and nobody was told.
			if len(req.IDs) == 1 {
				res.Tasks = nil
			}
			return res
		}}
	}},
	{"a claim tells the epoch of before", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, claimed: func(_ store.ClaimRequest, res store.ClaimResult) store.ClaimResult {
			for i := range res.Tasks {
				res.Tasks[i].Lease.Epoch--
			}
			return res
		}}
	}},
	{"a heartbeat does not tell that the lease is lost", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, beaten: func(beats []store.Beat) {
			for i := range beats {
				beats[i].Lost = false
			}
		}}
	}},
	{"a reap does not tell what it took", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, reaped: func(res *store.ReapResult) { res.Reaped = nil }}
	}},
	{"a command that was refused succeeds", func(s store.Store) store.Store {
		return &leaseLiar{Store: s, commanded: func(res []store.CommandResult) {
			for i := range res {
				if res[i].Err != nil {
					res[i] = store.CommandResult{State: task.Cancelled}
				}
			}
		}}
	}},
	{"a read shows what was", func(s store.Store) store.Store {
		var mu sync.Mutex
		var before []task.Task
		return &leaseLiar{Store: s, seen: func(now []task.Task) []task.Task {
			mu.Lock()
			defer mu.Unlock()
			old := before
			before = now
			if old == nil {
				return now
			}
			return old
		}}
	}},
}
