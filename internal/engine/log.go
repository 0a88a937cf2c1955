package engine

import (
	"log/slog"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// logger is the engine's logger with the attempt's identity on every line.
func (a *Attempt) logger() *slog.Logger {
	return a.env.Log.With("task_id", a.task.ID, "task_type", a.task.Type, "attempt_no", a.task.AttemptNo)
}

// logEnd logs an attempt that ended badly, once that is durable: a warning or, for a panic, an error with its stack.
// Success, suspension, release and cancel are not failures.
func logEnd(a *Attempt, fin *store.Finish, res store.FinishResult) {
	switch fin.Outcome {
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed, task.OutcomeUndoFailed:
	default:
		return
	}
	if fin.Error == nil || res.State == task.Cancelled {
		return
	}
	attrs := []any{"error", fin.Error.Message, "error_kind", fin.Error.Kind}
	if fin.Error.Code != "" {
		attrs = append(attrs, "error_code", fin.Error.Code)
	}
	if fin.Error.Step != "" {
		attrs = append(attrs, "step", fin.Error.Step)
	}
	log := a.logger()
	if res.State == task.Blocked && fin.Error.Kind != task.KindPanic {
		log.Warn("task blocked", attrs...)
		return
	}
	attrs = append(attrs, "state", res.State)
	if decidesToWait(fin) {
		attrs = append(attrs, "decision", fin.Decision.Kind)
	} else if !res.State.Terminal() && res.State != task.Blocked {
		attrs = append(attrs, "retry_in", fin.Delay.Truncate(time.Microsecond))
	}
	if fin.Error.Kind == task.KindPanic {
		log.Error("attempt panicked", append(attrs, "stack", fin.Error.Stack)...)
		return
	}
	if fin.EndsAs != "" && res.State == task.Failed {
		log.Error("undo given up", attrs...)
		return
	}
	log.Warn("attempt failed", attrs...)
}

// overdueEvery is the time for which a handler may ignore the end of its context before the engine logs it, and the
// interval of further log lines.
const overdueEvery = time.Minute

// overdue watches the handler of an attempt whose context has ended. Until the handler returns it keeps its slot and
// its concurrency key.
type overdue struct {
	mu       sync.Mutex
	running  bool        // the handler was called and has not returned
	ended    time.Time   // end of the context; zero: it has not ended
	reminder *time.Timer // runs while the handler is overdue
	cause    error
}

// begin records the start of the handler. The caller calls returned when the handler has returned.
func (o *overdue) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = true
}

// returned records that the handler returned or was abandoned.
func (o *overdue) returned() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = false
	if o.reminder != nil {
		o.reminder.Stop()
	}
}

// contextEnded records the end of the handler's context. Only the first call counts.
func (a *Attempt) contextEnded(cause error) {
	o := &a.overdue
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.running || !o.ended.IsZero() {
		return
	}
	o.ended, o.cause = time.Now(), cause
	o.reminder = time.AfterFunc(overdueEvery, a.remind)
}

// remind logs that the handler still ignores the end of its context.
func (a *Attempt) remind() {
	o := &a.overdue
	o.mu.Lock()
	running, since, cause := o.running, time.Since(o.ended), o.cause
	if running {
		o.reminder.Reset(overdueEvery)
	}
	o.mu.Unlock()
	if running {
		a.logger().Warn("a handler ignores the end of its context", "cause", cause, "since", since.Round(time.Second))
	}
}
