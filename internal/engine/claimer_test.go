package engine

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// With complete notices an idle claimer claims once and sleeps.
func TestClaimerSleepsUntilItIsWoken(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := New(f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil }))
		stop := f.start(e)
		defer stop()
		time.Sleep(time.Hour)
		f.wantCalls("Claim", 1, "in an idle hour")
		e.Wake()
		f.wantCalls("Claim", 1, "when it is woken")
		ids := f.enqueue(1)
		synctest.Wait()
		if s := f.state(ids[0]); s != task.Succeeded {
			t.Errorf("at the notice of a task it was not run at once: it is %s", s)
		}
	})
}

// bare is a store without capabilities, as notices.
type bare struct{ store.Store }

func (bare) Capabilities() store.Capabilities { return 0 }

func TestClaimerPolls(t *testing.T) {
	inBubble(t, func(f *fixture) {
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		cfg.Store = bare{f}
		e := New(cfg)
		stop := f.start(e)
		defer stop()
		f.called("Claim")
		time.Sleep(100 * time.Second)
		if n := f.called("Claim"); n < 90 || n > 112 {
			t.Errorf("%d claims in 100 s, want one a second, give or take a tenth", n)
		}
		e.Wake()
		f.wantCalls("Claim", 1, "when it is woken")
	})
}

func TestClaimerWaitsForAFreeSlot(t *testing.T) {
	inBubble(t, func(f *fixture) {
		release := make(chan struct{})
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-release
			return json.RawMessage("1"), nil
		})
		cfg.Slots = 2
		e := New(cfg)
		f.enqueue(3)
		stop := f.start(e)
		defer stop()
		f.called("Claim")
		time.Sleep(time.Minute)
		f.wantCalls("Claim", 0, "while no slot is free")
		if n := e.Running(); n != 2 {
			t.Errorf("%d slots are taken, want 2", n)
		}
		release <- struct{}{}
		f.wantCalls("Claim", 1, "when a slot became free")
		if n := e.Running(); n != 2 {
			t.Errorf("%d slots are taken, want 2 again", n)
		}
		close(release)
	})
}

func TestSlotsFillAClaimWithWhatIsFree(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		e.slots = newSlots(5, map[string]int{"a": 2, "b": 9})
		attempt := func(queue string, limit int) *Attempt {
			return &Attempt{task: task.Task{ID: f.ids.New(), Queue: queue}, quarantineLimit: limit}
		}
		request := func() (store.ClaimRequest, bool) {
			var req store.ClaimRequest
			idle := e.slots.fill(&req)
			return req, idle
		}
		if req, idle := request(); !idle || req.Limit != 5 || req.Slots != 5 || req.Queues["a"] != 2 || req.Queues["b"] != 9 {
			t.Errorf("idle %v, %+v", idle, req)
		}
		one, two := attempt("a", 0), attempt("a", 3)
		e.slots.take(one, false)
		e.slots.take(two, true)
		e.slots.take(attempt("b", 2), true)
		req, idle := request()
		if _, full := req.Queues["a"]; full || idle || req.Limit != 2 || req.Queues["b"] != 8 || req.Quarantined != 2 || req.QuarantineLimit != 2 {
			t.Errorf("idle %v, %+v", idle, req)
		}
		if !e.slots.release(two) || e.slots.release(two) {
			t.Error("release must report true once")
		}
		if req, _ := request(); req.Limit != 3 || req.Queues["a"] != 1 || req.Quarantined != 1 {
			t.Errorf("%+v", req)
		}
		if !e.slots.runsAny([]task.ID{two.task.ID, one.task.ID}) || e.slots.runsAny([]task.ID{two.task.ID}) {
			t.Error("runsAny is not about the attempts that hold slots")
		}
	})
}

// losesAnswer is a store whose first waiting claim consumes a wake-up and loses its answer. The lookup knows of no
// future task.
type losesAnswer struct {
	*fixture
	lost bool
}

func (*losesAnswer) Capabilities() store.Capabilities { return store.CanWait | store.CanNotify }

func (s *losesAnswer) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if req.Again {
		return store.ClaimResult{Next: -1}, nil
	}
	if req.Wait > 0 && !s.lost {
		<-req.Wake
		s.lost = true
		return store.ClaimResult{}, store.ErrUnavailable
	}
	return s.fixture.Claim(ctx, ns, req)
}

// A wake-up consumed by a claim is not lost with the claim's answer.
func TestClaimerClaimsAgainAfterALostAnswer(t *testing.T) {
	inBubble(t, func(f *fixture) {
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		cfg.Store = &losesAnswer{fixture: f}
		e := New(cfg)
		stop := f.start(e)
		defer stop()
		synctest.Wait()
		ids := f.enqueue(1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := f.state(ids[0]); s != task.Succeeded {
			t.Errorf("a minute after the answer was lost the task is %s", s)
		}
	})
}

// stops is a store whose first claims read their maximum number of rows.
type stops struct {
	*fixture
	behind []store.ClaimPlace // as requested
}

func (s *stops) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	s.behind = append(s.behind, req.Behind)
	if n := len(s.behind); n <= 3 {
		return store.ClaimResult{Stopped: true, Behind: store.ClaimPlace{Priority: n}}, nil
	}
	return s.fixture.Claim(ctx, ns, req)
}

// After a claim that stopped early, the next claim follows at once and continues there.
func TestClaimerGoesOnWhereAClaimStopped(t *testing.T) {
	inBubble(t, func(f *fixture) {
		cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		s := &stops{fixture: f}
		cfg.Store = s
		e := New(cfg)
		ids := f.enqueue(1)
		stop := f.start(e)
		defer stop()
		synctest.Wait()
		if got := f.state(ids[0]); got != task.Succeeded {
			t.Errorf("after three claims that stopped the task is %s", got)
		}
		for n, got := range s.behind {
			want := store.ClaimPlace{}
			if n <= 3 {
				want.Priority = n
			}
			if got != want {
				t.Errorf("claim %d goes on behind %v, want %v", n, got, want)
			}
		}
	})
}
