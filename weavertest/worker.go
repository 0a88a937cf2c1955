package weavertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// worker is an engine of one bubble.
type worker struct {
	*weaver.Engine
	handlers sync.WaitGroup // calls that have not returned

	mu          sync.Mutex
	stop        context.CancelCauseFunc // ends what the test waits for
	awaited     weaver.TaskID           // the task that the test waits for, or
	job         weaver.JobID            // the job
	undosFailed map[weaver.TaskID]int
}

func newWorker(s weaver.Store, cfg weaver.Config) (*worker, error) {
	w := new(worker)
	cfg.Middleware = slices.Concat([]func(weaver.HandlerFunc) weaver.HandlerFunc{w.count}, cfg.Middleware)
	var err error
	if w.Engine, err = weaver.New(s, cfg); err == nil {
		weaver.On(w.Engine, w.onSuspended)
	}
	return w, err
}

// undoTries is how often the undo of a task may fail before a test that waits for the task
// is told: the engine goes on for a day, in which nobody would mend what fails.
const undoTries = 10

// undoError says that the undo of a task fails over and over. It is weaver.ErrUndoing.
type undoError struct {
	ev event.TaskSuspended
}

// Error implements error.
func (e *undoError) Error() string {
	return fmt.Sprintf("the undo of task %s (%s) failed %d times and is tried again for 24 h: %s; mend what fails and call Continue, or Advance by a day to have it given up",
		e.ev.TaskID, e.ev.TaskType, undoTries, e.ev.Error.Message)
}

// Is makes it weaver.ErrUndoing.
func (*undoError) Is(target error) bool { return target == weaver.ErrUndoing }

// await says what the test waits for: a task or a job.
func (w *worker) await(id weaver.TaskID, job weaver.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited, w.job = id, job
}

// onSuspended counts undos that fail, of what the test waits for.
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

// concerns reports whether an event is of what the test waits for, or of its children.
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

// count counts the calls of a handler.
func (w *worker) count(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		w.handlers.Add(1)
		defer w.handlers.Done()
		return next(ctx, input)
	}
}

// beside runs f while the worker runs, stops it when f has returned, and
// returns its error. f's context ends after forever, and when the worker stops
// by itself. Handlers that outlive the worker are waited for: the bubble could
// not end.
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

// engineStore is the store as engines use it here, without ClaimOrWait: an
// engine looks again at least once per lease for what such a claim waits for,
// and each look of an idle month would cost a claim. A claim that is answered
// at once says when the next task is due, and this store notifies of every
// change: an idle engine sleeps until then. Nor has it a feed of events, for which an
// engine looks every hour.
type engineStore struct {
	store.Store
	store.Notifier
	store.StepTxer
	store.EventReader
}

func (e *Env) engineStore() engineStore { return engineStore{e.db, e.db, e.db, e.db} }
