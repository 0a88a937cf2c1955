package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var errBadRow = errors.New("a value of this row cannot be stored")

// A finish that the store cannot write does not block the other finishes of its batches.
func TestARefusedFinishStallsNoOther(t *testing.T) {
	inBubble(t, func(f *fixture) {
		ids := f.enqueue(8)
		bad := ids[3]
		var alone atomic.Int32 // refused calls with only the bad finish
		f.refuseFinish = func(fins []store.Finish) error {
			for _, fin := range fins {
				if fin.Lease.Task == bad {
					if len(fins) == 1 {
						alone.Add(1)
					}
					return errBadRow
				}
			}
			return nil
		}
		end := make(chan struct{})
		e := New(f.config(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-end
			return json.RawMessage("1"), nil
		}))
		stop := f.start(e)
		close(end)

		time.Sleep(time.Second) // three tries are 300 ms
		if n := f.states(ids); n[task.Succeeded] != 7 || n[task.Running] != 1 {
			t.Errorf("a second after the handlers returned the tasks are %v, want 7 succeeded and the refused one running", n)
		}
		if got := e.Running(); got != 1 {
			t.Errorf("%d slots are taken, want that of the refused task", got)
		}
		later := f.enqueue(5)
		time.Sleep(100 * time.Millisecond)
		if n := f.states(later); n[task.Succeeded] != 5 {
			t.Errorf("tasks that came later are %v, want 5 succeeded", n)
		}

		time.Sleep(time.Minute)
		if alone.Load() < 12 || f.state(bad) != task.Running {
			t.Errorf("the refused finish was tried %d times by itself, and its task is %s: want one try each 5 s at least, while the lease is kept", alone.Load(), f.state(bad))
		}
		f.accept()
		time.Sleep(5 * time.Second)
		if s := f.state(bad); s != task.Succeeded {
			t.Errorf("when the store accepts it the task is %s, want succeeded", s)
		}
		stop()
	})
}

// A step that the store cannot record does not block the steps of other tasks.
func TestARefusedRecordStallsNoOther(t *testing.T) {
	inBubble(t, func(f *fixture) {
		ids := f.enqueue(8)
		bad := ids[5]
		f.refuseRecord = func(recs []store.Record) error {
			for _, rec := range recs {
				if rec.Lease.Task == bad {
					return errBadRow
				}
			}
			return nil
		}
		e := New(f.config(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			a, err := From(ctx)
			if err != nil {
				return nil, err
			}
			return a.Step(ctx, "one", StepOptions{Tries: 1}, func(context.Context) (json.RawMessage, error) { return json.RawMessage("1"), nil })
		}))
		stop := f.start(e)

		time.Sleep(time.Second) // three tries are 150 ms
		if n := f.states(ids); n[task.Succeeded] != 7 || n[task.Running] != 1 {
			t.Errorf("a second later the tasks are %v, want 7 succeeded and the refused one running", n)
		}
		f.accept()
		time.Sleep(5 * time.Second)
		if s := f.state(bad); s != task.Succeeded {
			t.Errorf("when the store accepts it the task is %s, want succeeded", s)
		}
		stop()
	})
}

func TestCompleterGivesUpWhileDraining(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		c := newCompleter(e)
		a := f.lease(e)
		f.refuseFinish = func([]store.Finish) error { return fmt.Errorf("write: %w", store.ErrUnavailable) }
		c.drain()
		begun := time.Now()
		res, _ := c.finish(a.released(), nil)
		if !errors.Is(res.Err, store.ErrUnavailable) {
			t.Errorf("finish: %v, want the store's error", res.Err)
		}
		if took := time.Since(begun); took < time.Second || took > 3*time.Second {
			t.Errorf("it gave up after %s, want a second or two", took)
		}
	})
}

func TestCompleterGivesUpOnAClosedStore(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		c := newCompleter(e)
		a := f.lease(e)
		f.refuseFinish = func([]store.Finish) error { return store.ErrClosed }
		begun := time.Now()
		if res, _ := c.finish(a.released(), nil); !errors.Is(res.Err, store.ErrClosed) || time.Since(begun) != 0 {
			t.Errorf("finish: %v after %s, want ErrClosed at once", res.Err, time.Since(begun))
		}
	})
}
