package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// scripted is a store of which a test answers some calls itself.
type scripted struct {
	*faults
	heartbeat func(ctx context.Context, req store.HeartbeatRequest, real func() ([]store.Beat, error)) ([]store.Beat, error)
	reap      func(real func() (store.ReapResult, error)) (store.ReapResult, error)
	record    func(real func() ([]store.RecordResult, error)) ([]store.RecordResult, error)
	finish    func(ctx context.Context, real func() ([]store.FinishResult, error)) ([]store.FinishResult, error)
	stepTx    func(limit time.Duration) error
	history   func() error
}

func newScripted(w *world) *scripted { return &scripted{faults: newFaults(w, w.store)} }

// Heartbeat implements store.Worker.
func (s *scripted) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	call := func() ([]store.Beat, error) { return s.faults.Heartbeat(ctx, ns, req) }
	if s.heartbeat == nil {
		return call()
	}
	return s.heartbeat(ctx, req, call)
}

// Reap implements store.Worker.
func (s *scripted) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	call := func() (store.ReapResult, error) { return s.faults.Reap(ctx, ns, req) }
	if s.reap == nil {
		return call()
	}
	return s.reap(call)
}

// Record implements store.Worker.
func (s *scripted) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	call := func() ([]store.RecordResult, error) { return s.faults.Record(ctx, ns, recs...) }
	if s.record == nil {
		return call()
	}
	return s.record(call)
}

// Finish implements store.Worker.
func (s *scripted) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	call := func() ([]store.FinishResult, error) { return s.faults.Finish(ctx, ns, fins...) }
	if s.finish == nil {
		return call()
	}
	return s.finish(ctx, call)
}

// StepTx implements store.StepTxer.
func (s *scripted) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if s.stepTx != nil {
		if err := s.stepTx(limit); err != nil {
			return store.RecordResult{}, err
		}
	}
	return s.faults.StepTx(ctx, ns, rec, limit, fn)
}

// History implements store.Reader.
func (s *scripted) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	if s.history != nil {
		if err := s.history(); err != nil {
			return store.History{}, err
		}
	}
	return s.faults.Store.History(ctx, ns, id)
}

func TestRenewal(t *testing.T) {
	typ := weaver.Define[string, string]("engine.renewal.run.v1")
	// trusting returns a handler that ends with its context, or after two leases.
	trusting := func(cause *error, ended *time.Duration) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(2 * weaver.DefaultLease):
				return "ok", nil
			}
			*cause, *ended = context.Cause(ctx), time.Since(began)
			return "", ctx.Err()
		})
	}
	// untold answers that nothing could be told about any lease.
	untold := func(req store.HeartbeatRequest) ([]store.Beat, error) {
		beats := make([]store.Beat, len(req.Leases))
		for i := range beats {
			beats[i].Retry = true
		}
		return beats, nil
	}

	scene(t, "that could not be told is asked for again within a second", func(w *world) {
		began := time.Now()
		s := newScripted(w)
		s.heartbeat = func(_ context.Context, req store.HeartbeatRequest, real func() ([]store.Beat, error)) ([]store.Beat, error) {
			if time.Since(began) < 23*time.Second {
				return untold(req)
			}
			return real()
		}
		var cause error
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		if got := result(w, enqueue(w, typ, "")); got != "ok" {
			w.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	scene(t, "that can not be told does not count as one", func(w *world) {
		s := newScripted(w)
		s.heartbeat = func(_ context.Context, req store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			return untold(req)
		}
		var cause error
		var ended time.Duration
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, &ended)}})
		equal(w, "output", result(w, enqueue(w, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for", ended, 25*time.Second)
	})

	scene(t, "that failed is tried again within a second", func(w *world) {
		f := newFaults(w, w.store)
		var cause error
		w.runConfig(f, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		h := enqueue(w, typ, "")
		time.Sleep(5 * time.Second)
		f.cut()
		time.Sleep(18 * time.Second)
		f.mend()
		if got := result(w, h); got != "ok" {
			w.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	scene(t, "that hangs since before the lease keeps nobody from seeing its end", func(w *world) {
		s := newScripted(w)
		s.heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		var ended time.Duration
		w.runConfig(quiet{s}, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, &ended)}})
		time.Sleep(11 * time.Second) // the first heartbeat hangs, with nothing to renew
		equal(w, "output", result(w, enqueue(w, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for", ended, 25*time.Second)
	})

	scene(t, "is not asked for when the lease is lost", func(w *world) {
		s := newScripted(w)
		var mu sync.Mutex
		var asked []task.Lease
		s.heartbeat = func(_ context.Context, req store.HeartbeatRequest, real func() ([]store.Beat, error)) ([]store.Beat, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, req.Leases...)
			return real()
		}
		release := make(chan struct{})
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
			<-release // whatever its context says
			return "", nil
		})}})
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		mu.Lock()
		equal(w, "the lease that is lost was asked for", len(asked), 1)
		asked = nil
		mu.Unlock()
		time.Sleep(2 * weaver.DefaultLease)
		mu.Lock()
		equal(w, "leases asked for since", len(asked), 0)
		mu.Unlock()
		close(release)
	})
}

func TestReaperOfAnEngine(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reaper.run.v1")
	nobody := weaver.Define[string, string]("engine.reaper.nobody.v1")
	ok := typ.Handler(func(context.Context, string) (string, error) { return "ok", nil })

	scene(t, "asks again when it has to pause", func(w *world) {
		s := newScripted(w)
		began := time.Now()
		s.reap = func(real func() (store.ReapResult, error)) (store.ReapResult, error) {
			if time.Since(began) < time.Second {
				return store.ReapResult{Paused: true, Next: -1}, nil
			}
			return real()
		}
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{ok}})
		h := enqueue(w, nobody, "", weaver.ExpireAfter(time.Minute))
		time.Sleep(time.Minute + weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateCancelled)
	})

	scene(t, "goes on until nothing is left", func(w *world) {
		s := newScripted(w)
		var mu sync.Mutex
		calls := 0
		s.reap = func(real func() (store.ReapResult, error)) (store.ReapResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 1 {
				return store.ReapResult{Reaped: make([]store.Reaped, 1000), Next: time.Hour}, nil
			}
			return real()
		}
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{ok}})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		equal(w, "calls, of which the first found as much as it may", calls, 2)
	})

	scene(t, "wakes the claimer", func(w *world) {
		h := enqueue(w, typ, "")
		dead := store.WorkerID("dead")
		w.must(w.store.Join(w.Context(), weaver.DefaultNamespace, store.WorkerInfo{ID: dead, Name: "dead", TTL: time.Second}))
		got, err := w.store.Claim(w.Context(), weaver.DefaultNamespace, store.ClaimRequest{
			Worker: dead, Name: "dead", LeaseID: task.NewLeaseID(), TTL: time.Second, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
		})
		w.must(err)
		equal(w, "tasks claimed", len(got.Tasks), 1)
		w.runConfig(quiet{w.store}, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{ok}})
		time.Sleep(weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})
}

// The second return of a handler that was given up must not free the slot of
// another attempt.
func TestSlotsAfterAHandlerThatWasGivenUp(t *testing.T) {
	typ := weaver.Define[string, string]("engine.slots.given.v1", weaver.Queue("narrow"))
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		running, most := 0, 0
		release := make(chan struct{})
		eng := w.newEngine(w.store, weaver.Config{
			Queues: map[string]int{"narrow": 1}, DrainTimeout: time.Second,
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "stuck" && weaver.Current(ctx).AttemptNo == 1 {
					<-release
					return in, nil
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return in, nil
			})},
		})
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() { done <- eng.Run(ctx) }()
		stuck := enqueue(w, typ, "stuck")
		synctest.Wait()
		cancel()
		var names *weaver.RunningError
		if err := <-done; !errors.As(err, &names) {
			w.Errorf("Run = %v, want a *RunningError", err)
		}
		close(release)
		synctest.Wait()

		ctx, cancel = context.WithCancel(w.Context())
		go func() { done <- eng.Run(ctx) }()
		hs := []*weaver.Handle[string]{stuck, enqueue(w, typ, "a"), enqueue(w, typ, "b")}
		for _, h := range hs {
			result(w, h)
		}
		cancel()
		w.must(<-done)
		mu.Lock()
		defer mu.Unlock()
		equal(w, "handlers of the queue at once", most, 1)
	})
}

func TestOutcomesOnTheirWay(t *testing.T) {
	typ := weaver.Define[string, string]("engine.outcomes.run.v1", weaver.NoRetry())

	scene(t, "arrive although the drain has given up", func(w *world) {
		s := newScripted(w)
		s.finish = func(ctx context.Context, real func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
			select {
			case <-time.After(10 * time.Second):
				return real()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		e := w.start(s, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "ok", nil }),
		}})
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(e.stop())
		time.Sleep(10 * time.Second)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "of a lease that was lost are no trouble of the engine", func(w *world) {
		g := newGate()
		w.runConfig(quiet{w.store}, weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { return "ok", g.pass(ctx) }),
		}})
		h := enqueue(w, typ, "")
		<-g.in
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		g.open()
		synctest.Wait()
		equal(w, "lines that it was lost", len(w.log.lines(w, "the lease was lost before the result was written")), 1)
		equal(w, "lines that it could not be written", len(w.log.lines(w, "the result of an attempt could not be written")), 0)
	})

	scene(t, "of a deadline that the store has not seen are cancelled, and what was in flight is not kept", func(w *world) {
		s := newScripted(w)
		s.reap = func(func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{Next: -1}, nil // nobody judges deadlines
		}
		w.runConfig(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "late", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "late", nil
			})
		})}})
		h := enqueue(w, typ, "", weaver.ExpireAfter(time.Second))
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindDeadline)
		w.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})

	scene(t, "of a suspended attempt suspend it, whatever a middleware answers", func(w *world) {
		w.runConfig(w.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(next weaver.HandlerFunc) weaver.HandlerFunc {
				return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
					out, err := next(ctx, input)
					if weaver.Suspended(err) {
						return json.RawMessage(`"swallowed"`), nil
					}
					return out, err
				}
			}},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return "rested", weaver.Sleep(ctx, "nap", time.Hour)
			})},
		})
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "rested")
		w.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
	})

	// wait is result with a limit: without an outcome the clock would run on.
	wait := func(w *world, h *weaver.Handle[string]) error {
		ctx, cancel := context.WithTimeout(w.Context(), 30*24*time.Hour)
		defer cancel()
		_, err := h.Wait(ctx)
		return err
	}

	scene(t, "are written although the decider panics", func(w *world) {
		w.runConfig(w.store, weaver.Config{
			Decider:  decide.Func(func(decide.Input) decide.Decision { panic("no idea") }),
			Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) { return "", errors.New("no") })},
		})
		h := enqueue(w, typ, "")
		if err := wait(w, h); errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("the task did not end: %v", err)
		}
		w.wantOutcomes(h.ID(), task.OutcomeFailure)
	})

	scene(t, "of the engine's own errors end the task at last", func(w *world) {
		s := newScripted(w)
		attempts := 0
		s.record = func(real func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			if attempts <= 12 {
				return nil, store.ErrFull
			}
			return real()
		}
		w.runConfig(s, weaver.Config{Lease: 3 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			return "ok", weaver.Progress(ctx, 1, 2)
		})}})
		h := enqueue(w, typ, "")
		if err := wait(w, h); err == nil {
			w.Errorf("the task was tried %d times and succeeded", attempts)
		}
		if n := len(slices.Compact(w.outcomes(h.ID()))); n != 1 || attempts != 10 {
			w.Errorf("%d attempts, want 10 failures", attempts)
		}
	})
}
