package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

const (
	testNS   = "test"
	testTTL  = 30 * time.Second
	testType = "test.engine.role.v1"
)

// fixture is a store in memory, in a bubble of fake time. It counts the calls of some methods and lets a test refuse
// batches.
type fixture struct {
	*testing.T
	*memstore.Store
	ids *task.IDs

	mu           sync.Mutex
	calls        map[string]int
	refuseFinish func([]store.Finish) error                      // nil: refuses nothing
	refuseRecord func([]store.Record) error                      // nil: refuses nothing
	answerFinish func([]store.FinishResult) []store.FinishResult // nil: unchanged
}

// inBubble runs a test of roles.
func inBubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&fixture{T: t, Store: memstore.New(), ids: task.NewIDs(nil), calls: make(map[string]int)})
	})
}

func (f *fixture) count(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
}

// called returns the number of calls of a method since the last question.
func (f *fixture) called(method string) int {
	f.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls[method]
	f.calls[method] = 0
	return n
}

// wantCalls checks the number of calls of a method since the last question.
func (f *fixture) wantCalls(method string, want int, when string) {
	f.Helper()
	if got := f.called(method); got != want {
		f.Errorf("%d calls of %s %s, want %d", got, method, when, want)
	}
}

// Claim implements store.Core.
func (f *fixture) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	f.count("Claim")
	return f.Store.Claim(ctx, ns, req)
}

// Join implements store.Core.
func (f *fixture) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	f.count("Join")
	return f.Store.Join(ctx, ns, w)
}

// Heartbeat implements store.Core.
func (f *fixture) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	f.count("Heartbeat")
	return f.Store.Heartbeat(ctx, ns, req)
}

// Reap implements store.Core.
func (f *fixture) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	f.count("Reap")
	return f.Store.Reap(ctx, ns, req)
}

// Finish implements store.Core.
func (f *fixture) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	f.mu.Lock()
	refuse, answer := f.refuseFinish, f.answerFinish
	f.mu.Unlock()
	if refuse != nil {
		if err := refuse(fins); err != nil {
			return nil, err
		}
	}
	res, err := f.Store.Finish(ctx, ns, fins...)
	if err == nil && answer != nil {
		res = answer(res)
	}
	return res, err
}

// Record implements store.Core.
func (f *fixture) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	f.mu.Lock()
	refuse := f.refuseRecord
	f.mu.Unlock()
	if refuse != nil {
		if err := refuse(recs); err != nil {
			return nil, err
		}
	}
	return f.Store.Record(ctx, ns, recs...)
}

// accept ends all refusals.
func (f *fixture) accept() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuseFinish, f.refuseRecord = nil, nil
}

func (f *fixture) config(run HandlerFunc) Config {
	return Config{
		Store: f, Namespace: testNS, Handlers: []Handler{{Type: testType, CodeVersion: 1, Run: run}},
		Slots: 10, TTL: testTTL, SessionGrace: testTTL / 3, Poll: time.Second, DrainTimeout: time.Second,
		Log: slog.New(slog.DiscardHandler), Decider: decide.Default{}, Router: decide.Direct{},
		InlineLimit: 1 << 10, CrashBudget: 3, IDs: f.ids,
	}
}

// expireAfter gives a task a deadline.
func expireAfter(d time.Duration) func(*task.New) { return func(n *task.New) { n.ExpireAfter = d } }

// enqueue stores n tasks of the test's type.
func (f *fixture) enqueue(n int, change ...func(*task.New)) []task.ID {
	f.Helper()
	sub := store.Submission{}
	ids := make([]task.ID, n)
	for i := range n {
		ids[i] = f.ids.New()
		sub.Tasks = append(sub.Tasks, task.New{
			ID: ids[i], Type: testType, Queue: task.DefaultQueue, Input: json.RawMessage("0"), SchemaVersion: 1,
			Priority: task.DefaultPriority, MaxAttempts: 1, Backoff: time.Second, BackoffMax: time.Second,
		})
		for _, c := range change {
			c(&sub.Tasks[i])
		}
	}
	if _, err := f.Enqueue(f.Context(), testNS, nil, sub); err != nil {
		f.Fatal(err)
	}
	return ids
}

// states counts the tasks by state.
func (f *fixture) states(ids []task.ID) map[task.State]int {
	f.Helper()
	got, err := f.Tasks(f.Context(), testNS, ids...)
	if err != nil {
		f.Fatal(err)
	}
	n := make(map[task.State]int)
	for _, t := range got {
		n[t.State]++
	}
	return n
}

func (f *fixture) state(id task.ID) task.State {
	f.Helper()
	for s := range f.states([]task.ID{id}) {
		return s
	}
	return ""
}

// start runs an engine until the test ends it.
func (f *fixture) start(e *Engine) (stop func()) {
	f.Helper()
	return f.background(e.Run)
}

// background runs a role until the test ends it.
func (f *fixture) background(run func(context.Context) error) (stop func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	synctest.Wait()
	return func() {
		f.Helper()
		cancel()
		if err := <-done; err != nil {
			f.Errorf("run: %v", err)
		}
	}
}

// env returns the environment of single roles, without an engine. complete: the store's notices are complete.
func (f *fixture) env(complete bool) *env {
	f.Helper()
	cfg := f.config(nil)
	e := &env{
		Config: cfg, worker: store.WorkerID(f.ids.New().String()), name: "here:1",
		origin: time.Now(), work: f.Context(), complete: complete, slots: newSlots(cfg.Slots, cfg.Queues),
	}
	e.troubles, e.questions = newTroubles(e), newQuestions(e)
	if err := e.join(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.called("Join")
	return e
}

// lease enqueues a task and returns its attempt, which holds a slot and whose handler does not run.
func (f *fixture) lease(e *env) *Attempt {
	f.Helper()
	f.enqueue(1)
	before := time.Now()
	res, err := f.Store.Claim(f.Context(), testNS, store.ClaimRequest{
		Worker: e.worker, Name: e.name, LeaseID: task.NewLeaseID(), TTL: e.TTL, Limit: 1, Types: map[string]int{testType: 1}, Slots: e.Slots,
	})
	if err != nil || len(res.Tasks) != 1 {
		f.Fatalf("claim: %d tasks, %v", len(res.Tasks), err)
	}
	a := newAttempt(e, newRecorder(e), res.Tasks[0], before)
	e.slots.take(a, false)
	return a
}

// taskIDs returns the IDs of all tasks.
func (f *fixture) taskIDs() []task.ID {
	f.Helper()
	ts, _, err := f.List(f.Context(), testNS, store.Filter{})
	if err != nil {
		f.Fatal(err)
	}
	ids := make([]task.ID, len(ts))
	for i, t := range ts {
		ids[i] = t.ID
	}
	return ids
}
