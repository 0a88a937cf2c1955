package weavertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

var bookingType = weaver.Define[string, weaver.None]("weavertest.shop.booking.v1", weaver.CleanupWhenCancelled())

// A booking that is cancelled while its task waits, asleep or for an answer, is
// given back.
func TestCleanupOfATaskThatWaits(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"asleep": func(ctx context.Context) error { return weaver.Sleep(ctx, "until the flight", 90*24*time.Hour) },
		"asking": func(ctx context.Context) error {
			_, err := weaver.Ask[bool](ctx, "insurance", "with an insurance?")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			note := func(what string) func(context.Context) error {
				return func(context.Context) error { done = append(done, what); return nil }
			}
			e := weavertest.New(t, bookingType.Handler(func(ctx context.Context, _ string) (weaver.None, error) {
				err := weaver.Do(ctx, "book", note("booked"))
				if err == nil {
					err = wait(ctx)
				}
				if err == nil || weaver.Suspended(err) {
					return weaver.None{}, err
				}
				return weaver.None{}, errors.Join(err, weaver.Cleanup(ctx, "give back", note("given back")))
			}))
			h, err := bookingType.Enqueue(t.Context(), e, "LH 400")
			if err != nil {
				t.Fatal(err)
			}
			weavertest.Advance(t, e, 24*time.Hour)
			if err := e.Cancel(t.Context(), h.ID(), weaver.By("ann")); err != nil {
				t.Fatal(err)
			}
			weavertest.RunUntilIdle(t, e)
			got, err := h.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.State != weaver.StateCancelled || len(done) != 2 || done[1] != "given back" || got.StepCount != map[string]int{"asleep": 3, "asking": 2}[name] {
				t.Errorf("the task is %s with %d steps, and the booking was %v", got.State, got.StepCount, done)
			}
		})
	}
}
