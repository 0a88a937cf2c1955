package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task/event"
)

func TestOn(t *testing.T) {
	typ := weaver.Define[string, string]("engine.on.run.v1")
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		return weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return in, nil })
	})

	subtest(t, "gets the events of its type, after the sink, in the order of the listeners", func(fx *fixture) {
		var mu sync.Mutex
		var got []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf(format, args...))
		}
		e := fx.runConfig(fx.store, weaver.Config{
			Sink: event.SinkFunc(func(ev event.Event) { note("sink %s", ev.Type()) }),
			Plugins: []weaver.Plugin{weaver.PluginFunc(func(s *weaver.Setup) error {
				s.OnEvent(func(ev event.Event) { note("plug-in %s", ev.Type()) })
				return nil
			})},
			Handlers: []weaver.Handler{handler},
		})
		weaver.On(e.Engine, func(ev event.StepCompleted) { note("step %s", ev.Output) })
		weaver.On(e.Engine, func(ev event.Event) { note("all %s", ev.Type()) })
		result(fx, enqueue(fx, typ, "x"))
		synctest.Wait()
		var want []string
		for _, name := range []string{"task.started", "step.started", "step.completed", "task.succeeded"} {
			want = append(want, "sink "+name, "plug-in "+name)
			if name == "step.completed" {
				want = append(want, `step "x"`)
			}
			want = append(want, "all "+name)
		}
		if !slices.Equal(got, want) {
			fx.Errorf("got %q\nwant %q", got, want)
		}
	})

	subtest(t, "ends with stop, also inside the listener, and gets nothing then", func(fx *fixture) {
		e := fx.run(handler)
		var calls, later int
		var stop, other func()
		stop = weaver.On(e.Engine, func(event.TaskStarted) {
			calls++
			stop()
			other()
			weaver.On(e.Engine, func(event.TaskSucceeded) { later++ })
		})
		other = weaver.On(e.Engine, func(event.Event) { fx.Error("a listener was called after its stop") })
		result(fx, enqueue(fx, typ, "x"))
		synctest.Wait()
		result(fx, enqueue(fx, typ, "y"))
		synctest.Wait()
		stop()
		equal(fx, "calls", calls, 1)
		equal(fx, "calls of the listener that was added inside", later, 2)
	})

	subtest(t, "that panics keeps no event from the others, nor touches the task", func(fx *fixture) {
		e := fx.run(handler)
		var calls int
		weaver.On(e.Engine, func(event.Event) { panic("boom") })
		weaver.On(e.Engine, func(event.TaskSucceeded) { calls++ })
		equal(fx, "output", result(fx, enqueue(fx, typ, "x")), "x")
		synctest.Wait()
		equal(fx, "calls", calls, 1)
		equal(fx, "panics in the log", len(fx.log.lines(fx, "an event listener panicked")), 4)
	})

	subtest(t, "gets the lines of a logger that was made before", func(fx *fixture) {
		ready, on := make(chan struct{}), make(chan struct{})
		e := fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			l := weaver.Log(ctx)
			close(ready)
			<-on
			l.Info("a line")
			return in, nil
		}))
		h := enqueue(fx, typ, "x")
		<-ready
		var lines int
		weaver.On(e.Engine, func(event.LogWritten) { lines++ })
		close(on)
		result(fx, h)
		equal(fx, "lines", lines, 1)
	})
}

func TestPlugins(t *testing.T) {
	typ := weaver.Define[string, string]("engine.plugin.run.v1")

	subtest(t, "wrap handlers, steps and enqueues; the first is the outermost", func(fx *fixture) {
		var mu sync.Mutex
		var got []string
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, text)
		}
		plugin := func(name string) weaver.Plugin {
			return weaver.PluginFunc(func(s *weaver.Setup) error {
				s.WrapHandler(func(next weaver.HandlerFunc) weaver.HandlerFunc {
					return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
						note(name + " handler")
						return next(ctx, in)
					}
				})
				s.WrapStep(func(next weaver.StepFunc) weaver.StepFunc {
					return func(ctx context.Context, step string) (json.RawMessage, error) {
						note(name + " step " + step)
						return next(ctx, step)
					}
				})
				s.WrapEnqueue(func(next weaver.EnqueueFunc) weaver.EnqueueFunc {
					return func(ctx context.Context, drafts ...weaver.Draft) ([]weaver.Enqueued, error) {
						note(name + " enqueue")
						for i := range drafts {
							drafts[i] = drafts[i].And(weaver.Metadata(name, "was here"))
						}
						return next(ctx, drafts...)
					}
				})
				return nil
			})
		}
		e := fx.runConfig(fx.store, weaver.Config{
			Plugins: []weaver.Plugin{plugin("a"), plugin("b")},
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(next weaver.HandlerFunc) weaver.HandlerFunc {
				return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
					note("middleware")
					return next(ctx, in)
				}
			}},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				return weaver.Step(ctx, "fetch", func(ctx context.Context) (string, error) {
					return in + weaver.Current(ctx).Metadata["a"] + weaver.Current(ctx).Metadata["b"], weaver.Spend(ctx, 1)
				})
			})},
		})
		h, err := typ.Enqueue(fx.Context(), e, "x ")
		fx.must(err)
		equal(fx, "output", result(fx, h), "x was herewas here")
		want := []string{"a enqueue", "b enqueue", "a handler", "b handler", "middleware", "a step fetch", "b step fetch"}
		if !slices.Equal(got, want) {
			fx.Errorf("got %q\nwant %q", got, want)
		}
	})

	subtest(t, "hear how attempts begin and end, and nothing else is made for them", func(fx *fixture) {
		var got []string
		hears := weaver.PluginFunc(func(s *weaver.Setup) error {
			s.OnAttempt(func(ev event.Event) { got = append(got, ev.Type()) })
			return nil
		})
		e := fx.runConfig(fx.store, weaver.Config{
			Plugins: []weaver.Plugin{hears},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				weaver.Log(ctx).Info("a line")
				return weaver.Step(ctx, "fetch", func(ctx context.Context) (string, error) { return in, weaver.Emit(ctx, "s", 1) })
			})},
		})
		var all int
		run := func() {
			got = nil
			j := weaver.NewJob("j", weaver.Budget{})
			j.Add("n", typ.With("x"))
			h, err := fx.client.Submit(fx.Context(), j)
			fx.must(err)
			_, err = h.Wait(fx.Context())
			fx.must(err)
			synctest.Wait()
			equal(fx, "events", fmt.Sprint(got), "[task.started task.succeeded]")
		}
		run()
		defer weaver.On(e.Engine, func(event.Event) { all++ })()
		run()
		equal(fx, "events of the other listener", all, 7) // with those of the step, the line, the chunk and the job
	})

	subtest(t, "that change what a step gives are checked", func(fx *fixture) {
		bad := weaver.PluginFunc(func(s *weaver.Setup) error {
			s.WrapStep(func(weaver.StepFunc) weaver.StepFunc {
				return func(context.Context, string) (json.RawMessage, error) { return json.RawMessage(`{"a":1,"a":2}`), nil }
			})
			return nil
		})
		fx.runConfig(fx.store, weaver.Config{Plugins: []weaver.Plugin{bad}, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return in, nil })
		})}})
		te := failure(fx, enqueue(fx, typ, "x"))
		equal(fx, "kind", te.Kind, "validation_error")
	})

	t.Run("are refused with all problems at once", func(t *testing.T) {
		_, err := weaver.New(memstore.New(), weaver.Config{Plugins: []weaver.Plugin{
			weaver.PluginFunc(func(s *weaver.Setup) error {
				s.OnEvent(nil)
				s.WrapHandler(nil)
				return errors.New("no licence")
			}),
			weaver.PluginFunc(func(s *weaver.Setup) error {
				s.WrapStep(func(weaver.StepFunc) weaver.StepFunc { return nil })
				s.WrapEnqueue(func(weaver.EnqueueFunc) weaver.EnqueueFunc { return nil })
				s.WrapHandler(func(weaver.HandlerFunc) weaver.HandlerFunc { return nil })
				return nil
			}),
		}, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}})
		wantError(t, err, weaver.ErrConfig, "Plugins[0]", "OnEvent: the function is nil", "WrapHandler: the function is nil", "no licence",
			"a WrapStep of Plugins returned nil", "a WrapEnqueue of Plugins returned nil", "a WrapHandler of Plugins returned nil")
		_, err = weaver.New(memstore.New(), weaver.Config{Plugins: []weaver.Plugin{nil}})
		wantError(t, err, weaver.ErrConfig, "Plugins[0] is nil")
	})
}
