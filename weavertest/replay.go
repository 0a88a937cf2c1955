package weavertest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Replay is Run with a worker that dies: it is killed after every step that
// the task completes, and once more after the handler returned but before the
// result was written; each time another worker takes the task over, so that
// the handler replays from its recorded steps. The test fails when the task
// does, and when the last attempt did not ask for a step that earlier ones
// recorded, which shows that step names depend on something that changes
// between attempts.
func Replay[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) Out {
	t.Helper()
	var out Out
	e.bubble(t, func(t *testing.T) {
		h, err := typ.Enqueue(t.Context(), e, in, opts...)
		if err != nil {
			t.Fatalf("weavertest: %v", err)
		}
		dying := *e
		dying.cfg.CrashBudget = -1
		dying.cfg.Logger = slog.New(slog.DiscardHandler)
		finishDropped := false
		for {
			k := &killer{DB: e.db, target: h.ID(), dropFinish: !finishDropped, killed: make(chan struct{})}
			stop := dying.start(t, k)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				select {
				case <-k.killed:
					cancel()
				case <-ctx.Done():
				}
			}()
			out, err = h.Wait(ctx)
			cancel()
			runErr := stop()
			if k.dead() {
				finishDropped = finishDropped || k.atFinish
				continue
			}
			if runErr != nil {
				t.Errorf("weavertest: the engine: %v", runErr)
			}
			break
		}
		if err != nil {
			t.Fatalf("weavertest: replayed: %v", err)
		}
		e.requireAllStepsReached(t, h.ID())
	})
	return out
}

func (e *Env) requireAllStepsReached(t *testing.T, id weaver.TaskID) {
	t.Helper()
	hist, err := e.History(t.Context(), id)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	for _, name := range hist.Attempts[len(hist.Attempts)-1].StepsUnreached {
		t.Errorf("weavertest: step %q was recorded, but the last attempt never asked for it: step names must be the same in every attempt", name)
	}
}

// killer is a store as a worker sees it that dies: after it committed a
// completed step of the target nothing gets through any more, not even the
// answer.
type killer struct {
	*sqlite.DB
	target     task.ID
	dropFinish bool // die before the target's next result is written

	mu       sync.Mutex
	isDead   bool
	atFinish bool
	killed   chan struct{}
}

var errKilled = errors.New("weavertest: this worker was killed")

func (k *killer) dead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isDead
}

func (k *killer) die(atFinish bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isDead {
		k.isDead, k.atFinish = true, atFinish
		close(k.killed)
	}
}

// Claim implements store.Worker.
func (k *killer) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if k.dead() {
		return store.ClaimResult{}, errKilled
	}
	return k.DB.Claim(ctx, ns, req)
}

// Heartbeat implements store.Worker.
func (k *killer) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	if k.dead() {
		return nil, errKilled
	}
	return k.DB.Heartbeat(ctx, ns, req)
}

// Reap implements store.Worker.
func (k *killer) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if k.dead() {
		return store.ReapResult{}, errKilled
	}
	return k.DB.Reap(ctx, ns, req)
}

// Record implements store.Worker.
func (k *killer) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	if k.dead() {
		return lost[store.RecordResult](len(recs), func(r *store.RecordResult) { r.Err = store.ErrLeaseLost }), nil
	}
	res, err := k.DB.Record(ctx, ns, recs...)
	if err != nil {
		return res, err
	}
	for i, rec := range recs {
		if rec.Lease.Task == k.target && rec.Step != nil && rec.Step.State == task.StepCompleted && res[i].Err == nil {
			k.die(false)
			res[i].Err = store.ErrLeaseLost
		}
	}
	return res, nil
}

// StepTx implements store.StepTxer.
func (k *killer) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if k.dead() {
		return store.RecordResult{}, store.ErrLeaseLost
	}
	res, err := k.DB.StepTx(ctx, ns, rec, limit, fn)
	if err == nil && res.Err == nil && rec.Lease.Task == k.target {
		k.die(false)
		return store.RecordResult{}, store.ErrLeaseLost
	}
	return res, err
}

// Finish implements store.Worker.
func (k *killer) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	if !k.dead() && k.dropFinish {
		for _, f := range fins {
			if f.Lease.Task == k.target && f.Outcome == task.OutcomeSuccess {
				k.die(true)
			}
		}
	}
	if k.dead() {
		return lost[store.FinishResult](len(fins), func(r *store.FinishResult) { r.Err = store.ErrLeaseLost }), nil
	}
	return k.DB.Finish(ctx, ns, fins...)
}

// Leave implements store.Worker: a killed worker says no goodbye.
func (k *killer) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	if k.dead() {
		return nil
	}
	return k.DB.Leave(ctx, ns, id)
}

func lost[R any](n int, mark func(*R)) []R {
	rs := make([]R, n)
	for i := range rs {
		mark(&rs[i])
	}
	return rs
}
