package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// together runs tasks whose handlers all return at once, and returns their IDs.
func (f *fixture) together(n int, change func(*Config)) (e *Engine, ids []task.ID, stop func()) {
	ids = f.enqueue(n)
	end := make(chan struct{})
	cfg := f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		<-end
		return json.RawMessage("1"), nil
	})
	if change != nil {
		change(&cfg)
	}
	e = New(cfg)
	stop = f.start(e)
	close(end)
	return e, ids, stop
}

// Ends that arrive during a write are written together afterwards.
func TestEndsAreWrittenTogether(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var sizes []int     // of the sequential calls
		var handlers []bool // whether each call was made by a handler's goroutine
		f.refuseFinish = func(fins []store.Finish) error {
			sizes = append(sizes, len(fins))
			handlers = append(handlers, bytes.Contains(debug.Stack(), []byte("(*executor).execute")))
			time.Sleep(time.Second)
			return nil
		}
		e, ids, stop := f.together(8, nil)
		time.Sleep(time.Minute)
		if n := f.states(ids); n[task.Succeeded] != 8 || e.Running() != 0 {
			t.Errorf("the tasks are %v, %d slots are taken", n, e.Running())
		}
		if len(sizes) != 2 || sizes[0]+sizes[1] != 8 {
			t.Errorf("calls with %v ends, want that of the first ones, and then the others", sizes)
		} else if !handlers[0] || handlers[1] {
			t.Errorf("goroutines of handlers made the calls: %v, want the first one alone", handlers)
		}
		stop()
	})
}

// The ends in a failed call are still written, and their slots are then free.
func TestEndsOutliveTheCall(t *testing.T) {
	for name, fail := range map[string]func(*fixture, *atomic.Int32){
		"a panic": func(f *fixture, calls *atomic.Int32) {
			f.refuseFinish = func([]store.Finish) error {
				if calls.Add(1) == 1 {
					panic("the store is broken")
				}
				return nil
			}
		},
		"an end of the goroutine": func(f *fixture, calls *atomic.Int32) {
			f.refuseFinish = func([]store.Finish) error {
				if calls.Add(1) == 1 {
					runtime.Goexit()
				}
				return nil
			}
		},
		"an answer that is too short": func(f *fixture, calls *atomic.Int32) {
			f.answerFinish = func(res []store.FinishResult) []store.FinishResult {
				if calls.Add(1) == 1 {
					return res[1:]
				}
				return res
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				fail(f, new(atomic.Int32))
				e, ids, stop := f.together(8, nil)
				time.Sleep(5 * time.Second)
				if n := f.states(ids); n[task.Succeeded] != 8 || e.Running() != 0 {
					t.Errorf("the tasks are %v, %d slots are taken", n, e.Running())
				}
				stop()
			})
		})
	}
}

// An error whose text panics is a panic of the handler.
func TestAnErrorThatPanics(t *testing.T) {
	inBubble(t, func(f *fixture) {
		ids := f.enqueue(1)
		e := New(f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, (*brokenError)(nil) }))
		stop := f.start(e)
		got, err := f.Tasks(f.Context(), testNS, ids...)
		if err != nil || len(got) != 1 || got[0].Error == nil || got[0].Error.Kind != task.KindPanic || e.Running() != 0 {
			t.Errorf("the task is %+v, %v; %d slots are taken", got, err, e.Running())
		}
		stop()
	})
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// A log that panics at the end of an attempt does not leak a slot.
func TestAPanicBeforeTheEnd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.enqueue(1)
		cfg := f.config(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			a, err := From(ctx)
			if err == nil {
				a.end(store.ErrLeaseLost)
			}
			return nil, err
		})
		logged := new(panicking)
		cfg.Log = slog.New(logged)
		e := New(cfg)
		stop := f.start(e)
		if e.Running() != 0 || !logged.Load() {
			t.Errorf("%d slots are taken; it logged: %v", e.Running(), logged.Load())
		}
		stop()
	})
}

// panicking is a log that panics when a result is dropped.
type panicking struct{ atomic.Bool }

func (p *panicking) Enabled(context.Context, slog.Level) bool { return true }
func (p *panicking) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *panicking) WithGroup(string) slog.Handler            { return p }
func (p *panicking) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "dropped") {
		p.Store(true)
		panic("the log is broken")
	}
	return nil
}

// A slow listener delays only the attempt of its event.
func TestAListenerHoldsUpNoOtherEnd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var told atomic.Int32
		goOn := make(chan struct{})
		e, ids, stop := f.together(8, func(c *Config) {
			c.Listeners = new(Listeners)
			c.Listeners.Add(func(ev event.Event) {
				if _, ok := ev.(event.TaskSucceeded); ok && told.Add(1) == 1 {
					<-goOn
				}
			})
		})
		time.Sleep(time.Second)
		if n := f.states(ids); n[task.Succeeded] != 8 || told.Load() != 8 || e.Running() != 1 {
			t.Errorf("the tasks are %v, the listener heard of %d, %d slots are taken; want all but the slot of the first", n, told.Load(), e.Running())
		}
		close(goOn)
		stop()
		if e.Running() != 0 {
			t.Error("the slot is still taken")
		}
	})
}
