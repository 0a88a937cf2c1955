package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

func TestStream(t *testing.T) {
	typ := weaver.Define[string, string]("engine.stream.run.v1", weaver.Backoff(time.Second))
	subtest(t, "emits chunks and keeps the value", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			said, err := weaver.Stream(ctx, "tokens", func(_ context.Context, emit func(any) error) (string, error) {
				said := ""
				for _, word := range []string{"a", "b"} {
					said += word
					if err := emit(word); err != nil {
						return "", err
					}
				}
				return said, nil
			})
			if err == nil && weaver.Current(ctx).AttemptNo == 1 {
				err = errors.New("once more")
			}
			return said, err
		})}})
		h := enqueue(fx, typ, "x")
		equal(fx, "output", result(fx, h), "ab")
		got, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		want := []string{
			"task.enqueued", "task.started", "step.started", "stream.chunk tokens a", "stream.chunk tokens b", `step.completed tokens "ab"`, "task.retrying",
			"task.started", `task.succeeded "ab"`,
		}
		if !slices.Equal(got, want) {
			fx.Errorf("got %q\nwant %q", got, want)
		}
	})
}

func ExampleStream() {
	weaver.Define[string, string]("acme.model.answer.v1").Handler(func(ctx context.Context, question string) (string, error) {
		return weaver.Stream(ctx, "tokens", func(ctx context.Context, emit func(any) error) (string, error) {
			answer := ""
			for _, token := range []string{"For", "ty-", "two"} { // of a model
				answer += token
				if err := emit(token); err != nil {
					return "", err
				}
			}
			return answer, nil
		})
	})
}

func ExampleClient_Subscribe() {
	follow := func(ctx context.Context, c *weaver.Client, id weaver.TaskID) error {
		for ev, err := range c.Subscribe(ctx, weaver.EventFilter{TaskID: id}) {
			if err != nil {
				return err
			}
			fmt.Println(ev.Head().Sequence, ev.Type())
		}
		return nil
	}
	_ = follow
}

func ExampleOn() {
	count := func(eng *weaver.Engine) (stop func()) {
		return weaver.On(eng, func(ev event.TaskFailed) { fmt.Println(ev.TaskID, ev.Error.Message) })
	}
	_ = count
}
