package engine

import (
	"context"
	"encoding/json"
	"runtime"
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

// Ends that come while others are being written are written together, when these are.
func TestEndsAreWrittenTogether(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var sizes []int // of the calls, which come one after the other
		f.refuseFinish = func(fins []store.Finish) error {
			sizes = append(sizes, len(fins))
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
		}
		stop()
	})
}

// Whatever a call to the store ends with, the ends in it are written, and their slots are
// free then.
func TestEndsOutliveTheCall(t *testing.T) {
	for name, fail := range map[string]func(*fixture, *atomic.Int32){
		"a panic": func(f *fixture, calls *atomic.Int32) {
			f.refuseFinish = func([]store.Finish) error {
				if calls.Add(1) <= 2 {
					panic("the store is broken")
				}
				return nil
			}
		},
		"an end of the goroutine": func(f *fixture, calls *atomic.Int32) {
			f.refuseFinish = func([]store.Finish) error {
				if calls.Add(1) <= 2 {
					runtime.Goexit()
				}
				return nil
			}
		},
		"an answer that is too short": func(f *fixture, calls *atomic.Int32) {
			f.answerFinish = func(res []store.FinishResult) []store.FinishResult {
				if calls.Add(1) <= 2 {
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

// A listener that takes its time holds up the attempt of its event, and no other end.
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
