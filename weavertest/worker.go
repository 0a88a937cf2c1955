package weavertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// worker is an engine of one bubble.
type worker struct {
	*weaver.Engine
	handlers sync.WaitGroup // calls in progress

	mu          sync.Mutex
	stop        context.CancelCauseFunc // ends the test's wait
	awaited     weaver.TaskID           // the task that the test waits for, or
	job         weaver.JobID            // the job
	undosFailed map[weaver.TaskID]int
}

func newWorker(s store.Store, cfg weaver.Config) (*worker, error) {
	w := new(worker)
	cfg.Middleware = slices.Concat([]func(weaver.HandlerFunc) weaver.HandlerFunc{w.count}, cfg.Middleware)
	var err error
	if w.Engine, err = weaver.New(s, cfg); err == nil {
		weaver.On(w.Engine, w.onSuspended)
	}
	return w, err
}

// undoTries is the number of failed undos after which a test that waits for the task is told. The engine would retry
// for a day, and nobody would fix the cause meanwhile.
const undoTries = 10

// undoError reports that the undo of a task fails repeatedly. It matches weaver.ErrUndoing.
type undoError struct {
	ev event.TaskSuspended
}

// Error implements error.
func (e *undoError) Error() string {
	return fmt.Sprintf("the undo of task %s (%s) failed %d times and is tried again for 24 h: %s; fix the cause and call Continue, or Advance by a day to give it up",
		e.ev.TaskID, e.ev.TaskType, undoTries, e.ev.Error.Message)
}

// Is makes the error match weaver.ErrUndoing.
func (*undoError) Is(target error) bool { return target == weaver.ErrUndoing }

// await sets the task or job that the test waits for.
func (w *worker) await(id weaver.TaskID, job weaver.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited, w.job = id, job
}

// onSuspended counts failed undos of the awaited task or job.
func (w *worker) onSuspended(ev event.TaskSuspended) {
	if ev.Waiting != task.WaitUndo || ev.Error == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.undosFailed == nil {
		w.undosFailed = make(map[weaver.TaskID]int)
	}
	if w.undosFailed[ev.TaskID]++; w.undosFailed[ev.TaskID] == undoTries && w.stop != nil && w.concerns(ev) {
		w.stop(&undoError{ev})
	}
}

// concerns reports whether an event is about the awaited task or job, or about its children.
func (w *worker) concerns(ev event.TaskSuspended) bool {
	if !w.job.IsZero() && ev.JobID == w.job {
		return true
	}
	for id := ev.TaskID; !id.IsZero(); {
		if id == w.awaited {
			return true
		}
		info, err := w.Get(context.Background(), id)
		if err != nil {
			return false
		}
		id = info.ParentID
	}
	return false
}

// count counts the calls of a handler in progress.
func (w *worker) count(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		w.handlers.Add(1)
		defer w.handlers.Done()
		return next(ctx, input)
	}
}

// beside runs f while the worker runs, stops the worker when f has returned, and returns the worker's error. f's
// context ends after forever, and when the worker stops by itself. It waits for handlers that outlive the worker,
// because the bubble could not end otherwise.
func (w *worker) beside(ctx context.Context, f func(ctx context.Context)) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	limited, cancel := context.WithTimeoutCause(ctx, forever, errForever)
	defer cancel()
	limited, w.stop = context.WithCancelCause(limited)
	defer w.stop(nil)
	done := make(chan error, 1)
	go func() {
		done <- w.Run(run)
		cancel()
	}()
	f(limited)
	stop()
	err := <-done
	w.handlers.Wait()
	return err
}

// untilIdle runs the worker until nothing is due or running.
func (w *worker) untilIdle(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, forever, errForever)
	defer cancel()
	err := w.RunUntilIdle(limited)
	w.handlers.Wait()
	if limited.Err() != nil {
		return &endlessError{"a handler"}
	}
	return err
}

// engineStore is the store of engines here, whose claims do not wait. A waiting claim is repeated at least once per lease,
// and each claim in an idle month would cost time. An immediate claim returns the time of the next due task, and this
// store notifies of every change, so an idle engine sleeps until then. It also has no feed of events, which an engine
// would check every hour, and no statistics.
type engineStore struct{ store.Store }

func (e *Env) engineStore() engineStore { return engineStore{e.db} }

// Capabilities implements store.Core.
func (engineStore) Capabilities() store.Capabilities {
	return store.CanNotify | store.CanStepTx | store.CanKeepEvents | store.CanSchedule
}

// Orders returns the orders of the store for order.Of.
func (s engineStore) Orders() (order.Store, bool) { return order.Of(s.Store) }

// Warnings implements store.Ops: that the clock jumps is no news here.
func (engineStore) Warnings(context.Context) []store.Warning { return nil }
