package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// The engine, Subscribe and the feed report the end of an attempt by the same event.
func TestEndsReadAlike(t *testing.T) {
	typ := weaver.Define[string, string]("engine.ending.alike.v1", weaver.Backoff(time.Hour))
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		first := weaver.Current(ctx).AttemptNo == 1
		if strings.Contains(in, "unclean") || !first {
			err := weaver.Cleanup(ctx, "refund", func(context.Context) error {
				if first {
					return errors.New("psp 503")
				}
				return nil
			})
			if err == nil {
				return "", weaver.Permanent(errors.New("over"))
			}
		}
		switch {
		case strings.Contains(in, "asks"):
			return "", weaver.AddDependency(weaver.TaskID{1})
		case strings.Contains(in, "permanent"):
			return "", weaver.Permanent(errors.New("no"))
		case strings.Contains(in, "blocks"):
			return "", weaver.Blocked("look at it")
		}
		return "", errors.New("not yet")
	})
	for in, c := range map[string]struct {
		decision decide.Decision
		cancel   bool // after the first attempt
		want     string
	}{
		"permanent, unclean":         {want: "1 task.undoing, 2 task.failed"},
		"blocks, unclean, decided":   {decision: decide.Decision{Kind: task.DecideMarkDead}, want: "1 task.undoing, 2 task.failed"},
		"blocks, decided":            {decision: decide.Decision{Kind: task.DecideRetry, Delay: time.Minute}, want: "1 task.retrying, 2 task.failed"},
		"cancelled between":          {cancel: true, want: "1 task.retrying, 2 task.cancelled"},
		"asks for what is not there": {want: "1 task.failed"},
	} {
		subtest(t, in, func(fx *fixture) {
			keepEvents(fx)
			live := &recorder{}
			fx.runConfig(fx.store, weaver.Config{Sink: live, Handlers: []weaver.Handler{handler}, Decider: decide.Func(func(in decide.Input) decide.Decision {
				if c.decision.Kind == "" || in.Task.AttemptNo > 1 {
					return decide.Decision{}
				}
				d := c.decision
				d.Reason = task.Reason{Policy: "test", Version: 1, Text: "the test says so"}
				return d
			})})
			h := enqueue(fx, typ, in, weaver.CleanupWhenCancelled())
			if c.cancel {
				time.Sleep(time.Minute)
				fx.must(fx.client.Cancel(fx.Context(), h.ID()))
			}
			_, _ = h.Wait(fx.Context())
			synctest.Wait()

			var types []string
			said := func(ev event.Event, list *[]string) {
				if end, ok := event.EndingOf(ev); ok && ev.Head().TaskID == h.ID() {
					failure := task.Error{}
					if end.Error != nil {
						failure = *end.Error
					}
					if list == &types {
						*list = append(*list, fmt.Sprint(ev.Head().AttemptNo, " ", ev.Type()))
						return
					}
					*list = append(*list, fmt.Sprint(ev.Head().AttemptNo, ev.Head().Sequence, ev.Type(), end.Waiting, failure.Kind, failure.Message))
				}
			}
			var engine, reader, feed []string
			for _, ev := range live.all() {
				said(ev, &types)
				said(ev, &engine)
			}
			for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID(), NoWait: true}) {
				fx.must(err)
				said(ev, &reader)
			}
			for _, ev := range fx.page(event.FeedRequest{After: event.FeedOldest, Task: h.ID()}).Events {
				said(ev.Event, &feed)
			}
			equal(fx, "the events", strings.Join(types, ", "), c.want)
			equal(fx, "what Subscribe says", strings.Join(reader, "\n"), strings.Join(engine, "\n"))
			equal(fx, "what the feed says", strings.Join(feed, "\n"), strings.Join(engine, "\n"))
		})
	}
}
