package weavertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// Each minute that passes lets one more task of the rate start.
func TestAdvance_OpensRateLimits(t *testing.T) {
	t.Parallel()
	call := weaver.Define[int, weaver.None]("acme.partner.call.v1", weaver.RateLimit("partner", 1, time.Minute, 1))
	calls := 0
	e := weavertest.New(t, call.Handler(func(context.Context, int) (weaver.None, error) {
		calls++
		return weaver.None{}, nil
	}))
	if _, err := call.EnqueueMany(t.Context(), e, make([]int, 10)); err != nil {
		t.Fatal(err)
	}
	weavertest.Advance(t, e, 0)
	for minute := range 10 {
		if calls != minute+1 {
			t.Fatalf("%d calls after %d minutes, want %d", calls, minute, minute+1)
		}
		weavertest.Advance(t, e, 59*time.Second)
		if calls != minute+1 {
			t.Fatalf("%d calls a second before the next is allowed, want %d", calls, minute+1)
		}
		weavertest.Advance(t, e, time.Second)
	}
	if calls != 10 {
		t.Errorf("%d calls of 10 tasks", calls)
	}
}
