package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestReschedule(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reschedule.run.v1", weaver.Backoff(24*time.Hour), weaver.BackoffMax(24*time.Hour))
	handler := typ.Handler(func(ctx context.Context, how string) (string, error) {
		switch {
		case how == "sleep":
			if err := weaver.Sleep(ctx, "nap", 24*time.Hour); err != nil {
				return "", err
			}
		case how == "retry" && weaver.Current(ctx).AttemptNo == 1:
			return "", errors.New("not yet")
		}
		return how, nil
	})
	for how, opts := range map[string][]weaver.EnqueueOption{"delay": {weaver.Delay(24 * time.Hour)}, "retry": nil, "sleep": nil} {
		subtest(t, how+": it runs now, earlier, or later", func(fx *fixture) {
			fx.run(handler)
			for _, c := range []struct {
				move func(id weaver.TaskID) error
				want time.Duration
			}{
				{func(id weaver.TaskID) error { return fx.client.RunNow(fx.Context(), id) }, time.Minute},
				{func(id weaver.TaskID) error { return fx.client.Reschedule(fx.Context(), id, time.Now().Add(time.Hour)) }, time.Hour},
				{func(id weaver.TaskID) error {
					return fx.client.Reschedule(fx.Context(), id, time.Now().Add(48*time.Hour), weaver.By("ops"), weaver.Reason("not in the night"))
				}, 48 * time.Hour},
			} {
				began := time.Now()
				h := enqueue(fx, typ, how, opts...)
				time.Sleep(time.Minute)
				synctest.Wait()
				fx.must(c.move(h.ID()))
				equal(fx, "output", result(fx, h), how)
				near(fx, "it took", time.Since(began), c.want)
				audit := fx.history(h.ID()).Audit
				equal(fx, "the audited verbs", len(audit) == 1 && audit[0].Verb == "reschedule" && strings.HasPrefix(audit[0].Reason, "to "), true)
			}
		})
	}
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, typ, "delay", weaver.Delay(time.Hour))
		wantError(fx, fx.client.Reschedule(fx.Context(), h.ID(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), weaver.ErrInvalidOption, "before the year 10000")
		wantError(fx, fx.client.Reschedule(fx.Context(), h.ID(), time.Time{}), weaver.ErrInvalidOption, "RunNow")
		wantError(fx, fx.client.RunNow(fx.Context(), h.ID(), weaver.SeenEpoch(7)), store.ErrChanged)
		wantError(fx, fx.client.RunNow(fx.Context(), h.ID(), weaver.Force()), weaver.ErrInvalidOption)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		wantError(fx, fx.client.RunNow(fx.Context(), h.ID()), weaver.ErrState, "is cancelled", "only tasks that wait for a time")
		equal(fx, "state", fx.get(h.ID()).State, task.Cancelled)
	})
}
