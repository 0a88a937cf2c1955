package capsule

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Replay is the last attempt of a recorded task, to be made again.
type Replay struct {
	Task    *Task // as recorded
	Attempt task.Attempt
	Failed  map[string]*task.Error // results of steps that failed in it

	// Open reports that the record ends in the middle of the attempt: it was running, or was lost, or something came
	// that it waited for. The first step that is not recorded then ends the replay.
	Open bool

	content Content
	steps   map[string]bool // recorded names
}

// NewReplay prepares the replay of a task. The error names the missing records.
func NewReplay(c *Content, id task.ID) (*Replay, error) {
	of := c.Task(id)
	r := &Replay{Task: of, Failed: map[string]*task.Error{}, steps: map[string]bool{}}
	for i := range of.Attempts {
		if a := &of.Attempts[i]; a.Outcome != task.OutcomeUndone && a.Outcome != task.OutcomeUndoFailed {
			r.Attempt = *a
		}
	}
	switch {
	case r.Attempt.No == 0:
		return nil, fmt.Errorf("task %s has not started: there is nothing to replay", id)
	case of.Task.ValuesDropped:
		return nil, fmt.Errorf("the values of task %s were deleted before the export", id)
	case bytes.Equal(of.Task.Input, leftOut):
		return nil, fmt.Errorf("the input of task %s was left out of the capsule: %s", id, c.reason(id))
	}
	switch r.Attempt.Outcome {
	case task.OutcomeNone, task.OutcomeReleased, task.OutcomeLeaseLost, task.OutcomeCancelled:
		r.Open = true
	case task.OutcomeBlocked:
		r.Open = of.Task.State != task.Blocked
	}
	r.content = *c
	r.content.Tasks = slices.Clone(c.Tasks)
	t := *of
	if err := r.rewind(&t); err != nil {
		return nil, fmt.Errorf("%w: %s", err, c.reason(id))
	}
	for i := range r.content.Tasks {
		if r.content.Tasks[i].Task.ID == id {
			r.content.Tasks[i] = t
		}
	}
	return r, nil
}

// reason says why values of a task were left out.
func (c *Content) reason(id task.ID) string {
	for i := range c.LeftOut {
		if l := &c.LeftOut[i]; l.Task == id || l.Task.IsZero() {
			return l.String()
		}
	}
	return "the reason is not recorded"
}

// rewind makes the task due again, as it was at the start of the attempt, but with the steps that the attempt recorded.
func (r *Replay) rewind(t *Task) error {
	no, ended := r.Attempt.No, r.Attempt.FinishedAt
	of := &t.Task
	if of.AttemptCount > 0 && task.Counts(r.Attempt.Outcome, kindOf(r.Attempt.Error)) {
		of.AttemptCount--
	}
	of.State, of.Waiting, of.Pause, of.Join, of.RemainingDeps, of.ReadyAt = task.Pending, task.WaitNone, "", task.JoinNone, 0, time.Time{}
	of.LeaseID, of.LeasedBy, of.LeaseExpiresAt = task.LeaseID{}, "", time.Time{}
	of.AttemptNo, of.MaxAttempts = no-1, max(of.MaxAttempts, of.AttemptCount+1)
	of.CrashCount, of.QuarantineLosses, of.ConcurrencyKey, of.Expire = 0, 0, "", nil
	of.CancelRequested, of.CancelKind, of.DeadlineAt, of.FinishedAt = false, "", time.Time{}, time.Time{}
	of.Output, of.Error, of.Undo, of.UndoOpen, of.StepCount = nil, nil, nil, 0, 0
	t.Attempts = slices.DeleteFunc(slices.Clone(t.Attempts), func(a task.Attempt) bool { return a.No >= no })
	t.Decisions = slices.DeleteFunc(slices.Clone(t.Decisions), func(d task.Decision) bool { return d.AttemptNo >= no })
	t.Checkpoints = slices.DeleteFunc(slices.Clone(t.Checkpoints), func(k task.Checkpoint) bool { return k.AttemptNo >= no })
	t.Events = nil
	var steps []task.Step
	for _, s := range t.Steps {
		switch {
		case s.Kind == task.KindUndo, s.Kind == task.KindCleanup, s.State == task.StepBegun:
			continue
		case s.State == task.StepFailed:
			if s.AttemptNo == no {
				r.Failed[s.Name] = s.Error
			}
			continue
		case bytes.Equal(s.Value, leftOut):
			return fmt.Errorf("the value of step %q of task %s was left out of the capsule", s.Name, of.ID)
		}
		if s.Undo != task.UndoNone {
			s.Undo = task.UndoOpen
			of.UndoOpen++
		}
		if s.State == task.StepCompleted {
			of.StepCount++
		}
		switch { // the replay has its own time
		case s.State == task.StepWaiting && !s.WakeAt.IsZero(), s.Kind == task.KindSleep && s.AttemptNo == no && (ended.IsZero() || s.WakeAt.After(ended)):
			s.WakeAt = never
		case s.Kind == task.KindSleep:
			s.WakeAt = over
		}
		if (s.Kind == task.KindSignal || s.Kind == task.KindCall) && s.AttemptNo == no && !ended.IsZero() && s.CompletedAt.After(ended) {
			r.Open = true
		}
		r.steps[s.Name] = true
		steps = append(steps, s)
	}
	for name := range r.Failed {
		if r.steps[name] { // a later try of it succeeded
			delete(r.Failed, name)
		}
	}
	t.Steps = steps
	return nil
}

// The ends of a sleep that was over when the attempt got to it, and of a wait that is longer than the replay.
var (
	over  = time.Unix(1, 0)
	never = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

func kindOf(e *task.Error) task.ErrorKind {
	if e == nil {
		return task.KindNone
	}
	return e.Kind
}

// Fill writes the content into an empty database in memory, with the task due.
func (r *Replay) Fill(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &r.Task.Task
	if err = Insert(ctx, tx, &r.content); err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, lane_group) VALUES (?, ?, ?, ?, ?, 0, ?)`,
			Namespace, t.ID[:], t.Queue, t.Type, t.Priority, store.LaneGroup(t.Options, t.Labels))
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Compare returns the differences of a replayed attempt from the recorded one, the first first. asked are the names of steps that ran
// and are not recorded.
func (r *Replay) Compare(h *store.History, asked []string) (found []string) {
	i := slices.IndexFunc(h.Attempts, func(a task.Attempt) bool { return a.No == r.Attempt.No && !a.FinishedAt.IsZero() })
	if i < 0 {
		return []string{"the attempt did not end"}
	}
	got := h.Attempts[i]
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	missing := slices.DeleteFunc(slices.Clone(got.StepsUnreached), func(name string) bool { return slices.Contains(r.Attempt.StepsUnreached, name) })
	extra := slices.Clone(asked)
	for i := range h.Steps {
		if s := &h.Steps[i]; !r.steps[s.Name] && r.Failed[s.Name] == nil && !slices.Contains(extra, s.Name) && s.Kind != task.KindUndo {
			extra = append(extra, s.Name)
		}
	}
	if !r.Open {
		for _, name := range extra {
			say("it asks for the step %q, which is not recorded", name)
		}
	}
	for _, s := range r.Task.Steps { // in their order
		if slices.Contains(missing, s.Name) {
			say("it does not ask for the step %q (%d), which is recorded", s.Name, s.Index)
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == s.Name })
		}
	}
	if r.Open || len(extra) > 0 {
		return found
	}
	if got.Outcome != r.Attempt.Outcome {
		say("it ends with %s, recorded is %s", ending(&got), ending(&r.Attempt))
		if got.Outcome == task.OutcomeDecodeFailed && strings.Contains(string(r.Task.Task.Input), redact.Mask) {
			say("the input has masked fields, which are the text %q in a capsule", redact.Mask)
		}
		return found
	}
	if a, b := said(got.Error), said(r.Attempt.Error); a != b {
		say("it ends with the error %q, recorded is %q", a, b)
	}
	if got.Outcome == task.OutcomeSuccess && !bytes.Equal(r.Task.Task.Output, leftOut) && r.Task.Task.State == task.Succeeded {
		masked := h.Task
		redact.Task(&masked)
		if !same(masked.Output, r.Task.Task.Output) {
			say("its output is %s, recorded is %s", masked.Output, r.Task.Task.Output)
		}
	}
	return found
}

// ending describes the end of an attempt.
func ending(a *task.Attempt) string {
	if a.Error == nil {
		return string(a.Outcome)
	}
	return fmt.Sprintf("%s (%s)", a.Outcome, said(a.Error))
}

func said(e *task.Error) string {
	if e == nil {
		return ""
	}
	if e.Code != "" {
		return e.Message + " (" + e.Code + ")"
	}
	return e.Message
}

// same compares two JSON values.
func same(a, b json.RawMessage) bool {
	var x, y any
	if jsonnumber.Unmarshal(a, &x) != nil || jsonnumber.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}
