package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// fakeSession is the session of the only worker.
type fakeSession struct {
	mu      sync.Mutex
	silent  time.Time // start of its silence; zero: it answers
	since   time.Time
	granted []time.Duration // SessionGrace as workers announced it
}

// sessions returns a view of the fixture's store whose worker has a session.
func sessions(fx *fixture) (*faults, *fakeSession) {
	f, s := newFaults(fx), new(fakeSession)
	f.hooks.Session = func(store.WorkerID) (store.Session, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		last := time.Now()
		if !s.silent.IsZero() {
			last = s.silent
		}
		return store.Session{Last: last, Since: s.since}, true
	}
	f.hooks.Join = func(_ context.Context, w store.WorkerInfo, next func() (storehook.None, error)) (storehook.None, error) {
		s.mu.Lock()
		s.granted = append(s.granted, w.SessionGrace)
		s.mu.Unlock()
		return next()
	}
	return f, s
}

// cut makes the session silent; mend makes it answer again, and lapsed tells whether it was silent for
// too long.
func (s *fakeSession) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = time.Now()
}

func (s *fakeSession) mend(lapsed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = time.Time{}
	if lapsed {
		s.since = time.Now()
	}
}

func (s *fakeSession) announced() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.granted)
}

// A lease of 30 s is relied on for at most 10 s after the last answer of its worker's session, if it
// has one.
func TestSessionGrace(t *testing.T) {
	typ := weaver.Define[string, string]("engine.session.run.v1")

	// run starts a handler that ends with its context or after a minute, and returns once it runs.
	// When the task has ended, why returns the cause and the time of the end of its context.
	run := func(fx *fixture, f *faults, cfg weaver.Config) (h *weaver.Handle[string], why func() (time.Duration, error)) {
		running := make(chan struct{}, 2)
		var cause error
		var ended time.Duration
		cfg.Handlers = []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			began := time.Now()
			running <- struct{}{}
			select {
			case <-time.After(time.Minute):
				return "ok", nil
			case <-ctx.Done():
			}
			cause, ended = context.Cause(ctx), time.Since(began)
			return "", weaver.Do(ctx, "late", func(context.Context) error { fx.Error("a step began without an answer of the session"); return nil })
		})}
		fx.runConfig(f.store, cfg)
		h = enqueue(fx, typ, "")
		<-running
		return h, func() (time.Duration, error) { return ended, cause }
	}

	subtest(t, "a shorter outage ends no handler", func(fx *fixture) {
		f, s := sessions(fx)
		h, why := run(fx, f, weaver.Config{})
		time.Sleep(15 * time.Second)
		for range 3 {
			s.cut()
			time.Sleep(10*time.Second - time.Millisecond)
			s.mend(false)
		}
		if got := result(fx, h); got != "ok" {
			_, cause := why()
			fx.Errorf("the handler was ended for %v", cause)
		}
		equal(fx, "the announced grace", fmt.Sprint(s.announced()[0]), "10s")
	})

	for name, c := range map[string]struct {
		cfg  weaver.Config
		want time.Duration
	}{
		"a longer one ends it":                        {weaver.Config{}, 10 * time.Second},
		"one that is longer than SessionGrace does":   {weaver.Config{SessionGrace: 3 * time.Second}, 3 * time.Second},
		"SessionGrace does not make leases last":      {weaver.Config{Lease: 6 * time.Second, SessionGrace: 6 * time.Second}, 5 * time.Second},
		"a third of a short lease is the grace of it": {weaver.Config{Lease: 3 * time.Second}, time.Second},
	} {
		subtest(t, name, func(fx *fixture) {
			f, s := sessions(fx)
			h, why := run(fx, f, c.cfg)
			s.cut()
			f.cut()
			time.AfterFunc(c.want+time.Second, func() { s.mend(true); f.mend() })
			equal(fx, "output", result(fx, h), "again")
			ended, cause := why()
			if !errors.Is(cause, weaver.ErrLeaseUncertain) {
				fx.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
			}
			equal(fx, "the lease was relied on for", ended, c.want)
			fx.wantOutcomes(h.ID(), task.OutcomeReleased, task.OutcomeSuccess)
		})
	}

	// A process that was frozen sees the new session before the silence of the old one.
	subtest(t, "an answer after a longer one makes no lease valid again", func(fx *fixture) {
		f, s := sessions(fx)
		checked := make(chan struct{})
		f.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-checked // no renewal meanwhile
			return next()
		}
		began := make(chan struct{}, 1)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			began <- struct{}{}
			time.Sleep(2 * time.Second)
			s.mend(true)
			err := weaver.Do(ctx, "late", func(context.Context) error { fx.Error("a step began under a lease of before"); return nil })
			if !errors.Is(err, weaver.ErrLeaseUncertain) {
				fx.Errorf("a step under a lease of before returned %v, want ErrLeaseUncertain", err)
			}
			close(checked)
			return "", err
		})}})
		h := enqueue(fx, typ, "")
		<-began
		equal(fx, "output", result(fx, h), "again")
	})

	subtest(t, "a lease that is renewed after a longer one is relied on", func(fx *fixture) {
		f, s := sessions(fx)
		s.mend(true) // before the claim
		h, why := run(fx, f, weaver.Config{})
		time.Sleep(15 * time.Second) // renewed
		synctest.Wait()
		if got := result(fx, h); got != "ok" {
			ended, cause := why()
			fx.Errorf("the handler was ended for %v after %s", cause, ended)
		}
	})
}

func TestSessionGraceIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   weaver.Config
		words []string
	}{
		"too short":             {weaver.Config{SessionGrace: 999 * time.Millisecond}, []string{"SessionGrace is 999ms: want from 1s to the Lease, 30s"}},
		"negative":              {weaver.Config{SessionGrace: -time.Second}, []string{"SessionGrace is -1s"}},
		"longer than the lease": {weaver.Config{Lease: 5 * time.Second, SessionGrace: 6 * time.Second}, []string{"SessionGrace is 6s: want from 1s to the Lease, 5s", "0 for a third"}},
	} {
		subtest(t, name, func(fx *fixture) {
			_, err := weaver.New(fx.store, c.cfg)
			wantError(fx, err, weaver.ErrConfig, c.words...)
		})
	}
	subtest(t, "from 1s to the lease", func(fx *fixture) {
		for _, cfg := range []weaver.Config{{Lease: time.Second}, {Lease: time.Second, SessionGrace: time.Second}, {SessionGrace: 30 * time.Second}} {
			_, err := weaver.New(fx.store, cfg)
			fx.must(err)
		}
	})
}
