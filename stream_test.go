package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
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

// A subscriber in another process, on a store without notices, still sees a stream soon, and polls
// rarely without events.
func TestStream_FollowedWithoutNotices(t *testing.T) {
	typ := weaver.Define[int, int]("engine.stream.far.v1")
	subtest(t, "it", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			return weaver.Stream(ctx, "tokens", func(ctx context.Context, emit func(any) error) (int, error) {
				for i := range n {
					if i == n/2 {
						time.Sleep(time.Hour)
					}
					time.Sleep(130 * time.Millisecond)
					if err := emit(time.Now().UnixMicro()); err != nil {
						return 0, err
					}
				}
				return n, nil
			})
		})}})
		looks := 0
		s := storehook.New(fx.store, &storehook.Hooks{
			Hide: store.CanNotify,
			History: func(_ context.Context, _ task.ID, next func() (store.History, error)) (store.History, error) {
				looks++
				return next()
			},
		})
		c, err := weaver.NewClient(s, weaver.ClientConfig{})
		fx.must(err)
		h, err := typ.Enqueue(fx.Context(), c, 40)
		fx.must(err)
		var took []time.Duration
		for ev, err := range c.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID()}) {
			fx.must(err)
			if ev, ok := ev.(event.StreamChunk); ok {
				took = append(took, time.Since(time.UnixMicro(int64(ev.Data.(float64)))))
			}
		}
		slices.Sort(took)
		if n := len(took); n != 40 || took[n/2] > 60*time.Millisecond || took[n-8] > 250*time.Millisecond {
			fx.Errorf("%d chunks came after %v", n, took)
		}
		if looks > 4200 { // one a second, in the hour
			fx.Errorf("%d looks", looks)
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
