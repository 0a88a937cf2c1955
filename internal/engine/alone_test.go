package engine

import (
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
)

func TestDrainForAlone(t *testing.T) {
	t.Parallel()
	var d drainForAlone
	now := time.Now()
	wantLeft := func(when string, idle bool, want time.Duration) {
		t.Helper()
		if got := d.left(idle, now); got != want {
			t.Errorf("%s: nothing is claimed for another %v, want %v", when, got, want)
		}
	}
	wantLeft("before a task was passed over", false, 0)
	for _, limit := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		d.begin(time.Second, now)
		d.begin(time.Second, now)
		wantLeft("at the start of a drain", false, limit)
		now = now.Add(limit - 1)
		d.begin(time.Second, now)
		wantLeft("before its limit", false, 1)
		now = now.Add(1)
		wantLeft("at its limit", false, 0)
		now = now.Add(limit - 1)
		d.begin(time.Second, now)
		wantLeft("before the worker claimed for as long", false, 0)
		now = now.Add(1)
	}
	d.begin(time.Second, now)
	wantLeft("when nothing runs any more", true, 0)
	d.begin(time.Second, now)
	wantLeft("at the start of a later drain", false, time.Second)
}

func TestSlotsWithATaskThatRunsAlone(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(true)
		e.slots = newSlots(16, nil)
		fill := func() (req store.ClaimRequest) {
			e.slots.fill(&req)
			return req
		}
		healthy, alone := &Attempt{}, &Attempt{quarantineLimit: 1, alone: true}
		healthy.task.ID, alone.task.ID = f.ids.New(), f.ids.New()
		e.slots.take(healthy, false)
		if req := fill(); req.Running != 1 || req.Limit != 15 {
			t.Errorf("beside one attempt: %+v", req)
		}
		e.slots.release(healthy)
		e.slots.take(alone, true)
		if req := fill(); req.Running != 1 || req.Limit != 0 {
			t.Errorf("beside one that runs alone: %+v", req)
		}
	})
}
