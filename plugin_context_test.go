package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

type userKey struct{}

// carries gives each task the value from its enqueuer's context.
func carries(s *weaver.Setup) error {
	s.WrapHandler(func(next weaver.HandlerFunc) weaver.HandlerFunc {
		return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			return next(context.WithValue(ctx, userKey{}, weaver.Current(ctx).Metadata["user"]+"'"), in)
		}
	})
	s.InjectMetadata(func(ctx context.Context) map[string]string {
		user, _ := ctx.Value(userKey{}).(string)
		return map[string]string{"user": user}
	})
	s.LogAttrs(func(ctx context.Context) []slog.Attr {
		return []slog.Attr{slog.Any("user", ctx.Value(userKey{}))}
	})
	return nil
}

func TestInjectMetadata(t *testing.T) {
	child := weaver.Define[string, string]("engine.inject.child.v1")
	parent := weaver.Define[string, string]("engine.inject.parent.v1", weaver.Metadata("own", "kept"))
	echo := child.Handler(func(ctx context.Context, _ string) (string, error) { return weaver.Current(ctx).Metadata["user"], nil })

	for _, tc := range []struct {
		how, want string
		handler   func(ctx context.Context, in string) (string, error)
	}{
		{"Start", "ann'", func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Start(ctx, "s", child, "")
			return "", err
		}},
		{"Call", "ann'", func(ctx context.Context, _ string) (string, error) { return weaver.Call(ctx, "s", child, "") }},
		{"Decompose", "ann'", func(context.Context, string) (string, error) {
			return "", weaver.Decompose(weaver.JoinComplete, child.With(""))
		}},
		{"StartJob", "ann'", func(ctx context.Context, _ string) (string, error) {
			j := weaver.NewJob("j", weaver.Budget{})
			j.Add("n", child.With(""))
			_, err := weaver.StartJob(ctx, "s", j)
			return "", err
		}},
		{"the Decider", "ann'", func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "", nil
			}
			return "", errors.New("split me")
		}},
		{"a draft that has it", "bob", func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Start(ctx, "s", child, "", weaver.Metadata("user", "bob"))
			return "", err
		}},
	} {
		subtest(t, "is given to what is stored by "+tc.how, func(fx *fixture) {
			var mu sync.Mutex
			stored := make(map[string]int)
			counts := weaver.PluginFunc(func(s *weaver.Setup) error {
				s.OnStored(func(context.Context, string, string) { panic("boom") })
				s.OnStored(func(_ context.Context, typ, queue string) {
					mu.Lock()
					defer mu.Unlock()
					stored[typ+" in "+queue]++
				})
				return nil
			})
			e := fx.runConfig(fx.store, weaver.Config{
				Plugins:  []weaver.Plugin{weaver.PluginFunc(carries), counts},
				Handlers: []weaver.Handler{echo, parent.Handler(tc.handler)},
				Decider: decide.Func(func(in decide.Input) decide.Decision {
					d, err := child.With("").Plain()
					fx.must(err)
					return decide.Decision{Kind: task.DecideDecompose, Children: []task.Draft{d}}
				}),
			})
			h, err := parent.Enqueue(context.WithValue(fx.Context(), userKey{}, "ann"), e, "")
			fx.must(err)
			result(fx, h)
			if got, want := fx.get(h.ID()).Metadata, (map[string]string{"user": "ann", "own": "kept"}); !maps.Equal(got, want) {
				fx.Errorf("metadata of the parent = %v, want %v", got, want)
			}
			time.Sleep(time.Minute)
			children, _, err := child.List(fx.Context(), fx.client, weaver.Filter{})
			fx.must(err)
			equal(fx, "children", len(children), 1)
			equal(fx, "user", children[0].Metadata["user"], tc.want)
			if want := map[string]int{parent.Name() + " in default": 1, child.Name() + " in default": 1}; !maps.Equal(stored, want) {
				fx.Errorf("stored %v, want %v", stored, want)
			}
		})
	}

	subtest(t, "is given by a client without an engine, also in a job", func(fx *fixture) {
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Plugins: []weaver.Plugin{weaver.PluginFunc(carries)}})
		fx.must(err)
		ctx := context.WithValue(fx.Context(), userKey{}, "ann")
		j := weaver.NewJob("j", weaver.Budget{})
		j.Add("n", child.With(""))
		_, err = c.Submit(ctx, j)
		fx.must(err)
		_, err = child.Enqueue(ctx, c, "")
		fx.must(err)
		all, _, err := child.List(ctx, c, weaver.Filter{})
		fx.must(err)
		equal(fx, "tasks", len(all), 2)
		for _, info := range all {
			equal(fx, "user", info.Metadata["user"], "ann")
		}
	})

	subtest(t, "that panics or cannot be stored touches no task", func(fx *fixture) {
		bad := weaver.PluginFunc(func(s *weaver.Setup) error {
			s.InjectMetadata(func(context.Context) map[string]string { panic("boom") })
			s.InjectMetadata(func(context.Context) map[string]string {
				return map[string]string{"nul": "a\x00b", strings.Repeat("x", 256): "", "good": "yes"}
			})
			s.LogAttrs(func(context.Context) []slog.Attr { panic("bang") })
			return nil
		})
		e := fx.runConfig(fx.store, weaver.Config{Plugins: []weaver.Plugin{bad}, Handlers: []weaver.Handler{child.Handler(func(ctx context.Context, _ string) (string, error) {
			weaver.Log(ctx).Info("a line")
			return fmt.Sprint(len(weaver.Current(ctx).Metadata), weaver.Current(ctx).Metadata["good"]), nil
		})}})
		h, err := child.Enqueue(fx.Context(), e, "")
		fx.must(err)
		equal(fx, "metadata", result(fx, h), "1yes")
		equal(fx, "panics in the log", len(fx.log.lines(fx, "a plug-in panicked")), 2)
		equal(fx, "metadata left out", len(fx.log.lines(fx, "metadata of a plug-in is left out")), 2)
		equal(fx, "lines", len(fx.log.lines(fx, "a line")), 1)
	})

	t.Run("of a client is refused with its problem", func(t *testing.T) {
		_, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{Plugins: []weaver.Plugin{weaver.PluginFunc(func(s *weaver.Setup) error {
			s.InjectMetadata(nil)
			s.LogAttrs(nil)
			s.OnStored(nil)
			return errors.New("no licence")
		})}})
		wantError(t, err, weaver.ErrConfig, "Plugins[0]", "InjectMetadata: the function is nil", "LogAttrs: the function is nil", "OnStored: the function is nil", "no licence")
		_, err = weaver.NewClient(memstore.New(), weaver.ClientConfig{Handlers: []weaver.Handler{{}}})
		wantError(t, err, weaver.ErrConfig, "Handlers[0] is empty")
		_, err = weaver.NewClient(memstore.New(), weaver.ClientConfig{Plugins: []weaver.Plugin{nil}})
		wantError(t, err, weaver.ErrConfig, "Plugins[0] is nil")
	})
}

func TestLogAttrs(t *testing.T) {
	typ := weaver.Define[string, string]("engine.logattrs.run.v1")
	subtest(t, "are on the lines and in their events", func(fx *fixture) {
		e := fx.runConfig(fx.store, weaver.Config{
			Plugins: []weaver.Plugin{weaver.PluginFunc(carries), weaver.PersistLogs()},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				weaver.Log(ctx).Info("a line")
				return "", nil
			})},
		})
		h, err := typ.Enqueue(context.WithValue(fx.Context(), userKey{}, "ann"), e, "")
		fx.must(err)
		result(fx, h)
		equal(fx, "user", fmt.Sprint(fx.log.lines(fx, "a line")[0]["user"]), "ann'")
		for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID()}) {
			fx.must(err)
			if line, ok := ev.(event.LogWritten); ok {
				equal(fx, "user of the event", fmt.Sprint(line.Data["user"]), "ann'")
				return
			}
		}
		fx.Error("no event of the line")
	})
}

func TestNote(t *testing.T) {
	typ := weaver.Define[string, string]("engine.note.run.v1")

	subtest(t, "is kept with the attempt, whatever it ends with", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			cur := weaver.Current(ctx)
			earlier, err := weaver.EarlierAttempts(ctx)
			fx.must(err)
			equal(fx, "earlier attempts", len(earlier), cur.AttemptNo-1)
			for i, a := range earlier {
				equal(fx, "earlier note", a.Notes["no"], fmt.Sprint(i+1))
			}
			fx.must(weaver.Note(ctx, "no", "0"))
			fx.must(weaver.Note(ctx, "no", fmt.Sprint(cur.AttemptNo)))
			if cur.AttemptNo == 1 {
				return "", errors.New("no")
			}
			return "", weaver.Sleep(ctx, "s", time.Hour)
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		for i, a := range fx.history(h.ID()).Attempts {
			equal(fx, "note", a.Notes["no"], fmt.Sprint(i+1))
		}
		equal(fx, "attempts", len(fx.history(h.ID()).Attempts), 3)
	})

	subtest(t, "is refused with what is wrong", func(fx *fixture) {
		var outside context.Context
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			outside = ctx
			wantError(fx, weaver.Note(ctx, "", ""), weaver.ErrInvalidOption, "the name is empty")
			wantError(fx, weaver.Note(ctx, "a", "\x00"), weaver.ErrInvalidOption, "NUL")
			wantError(fx, weaver.Note(ctx, "a", strings.Repeat("x", 1025)), weaver.ErrInvalidOption, "1025", "1024")
			for i := range 16 {
				fx.must(weaver.Note(ctx, fmt.Sprint(i), ""))
			}
			wantError(fx, weaver.Note(ctx, "one more", ""), weaver.ErrInvalidOption, "at most 16")
			fx.must(weaver.Note(ctx, "3", "again"))
			return "", nil
		}))
		result(fx, enqueue(fx, typ, ""))
		wantError(fx, weaver.Note(outside, "a", ""), weaver.ErrAttemptOver)
		wantError(fx, weaver.Note(fx.Context(), "a", ""), weaver.ErrNoTask)
		_, err := weaver.EarlierAttempts(fx.Context())
		wantError(fx, err, weaver.ErrNoTask)
	})
}

func TestWaited(t *testing.T) {
	typ := weaver.Define[string, string]("engine.waited.run.v1", weaver.Queue("q"))
	subtest(t, "is how long the task was due", func(fx *fixture) {
		h := enqueue(fx, typ, "", weaver.Delay(time.Minute))
		time.Sleep(3 * time.Minute)
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			cur := weaver.Current(ctx)
			return fmt.Sprint(cur.Queue, cur.Waited.Round(time.Minute)), nil
		}))
		equal(fx, "waited", result(fx, h), "q2m0s")
	})
}

// The value returned with Decompose is the output of its task, also if the handler is wrapped.
func TestMiddlewareKeepsTheOutputBesideDecompose(t *testing.T) {
	typ := weaver.Define[string, string]("engine.wrapped.parent.v1")
	child := weaver.Define[string, string]("engine.wrapped.child.v1")
	inBubble(t, func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(next weaver.HandlerFunc) weaver.HandlerFunc { return next }},
			Handlers: []weaver.Handler{
				child.Handler(func(context.Context, string) (string, error) { return "", nil }),
				typ.Handler(func(_ context.Context, in string) (string, error) {
					return in, weaver.Decompose(weaver.JoinComplete, child.With(""))
				}),
			},
		})
		equal(fx, "output", result(fx, enqueue(fx, typ, "kept")), "kept")
	})
}
