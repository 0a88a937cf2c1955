package weaver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// What drafts, jobs and options say, as plain values: for clients that carry them to
// another program, as that of package httpapi does. Programs that use a Client need
// none of it.

// Task returns the task that the draft stands for, without an ID, with all options: those
// of its type, and those that it was given. Errors: Err, and ErrInvalidInput for a draft
// that is empty.
func (d Draft) Task() (task.New, error) {
	n, err := d.task()
	if err == nil {
		n.Labels, n.Metadata = maps.Clone(n.Labels), maps.Clone(n.Metadata)
		n.Redact, n.Expire = slices.Clone(n.Redact), slices.Clone(n.Expire)
	}
	return n, err
}

// task is Task with maps and lists that are the draft's own.
func (d *Draft) task() (task.New, error) {
	switch {
	case d.err != nil:
		return task.New{}, d.err
	case d.typeName == "":
		return task.New{}, fmt.Errorf("%w: the draft is empty: make drafts with a task type's With", ErrInvalidInput)
	}
	n := d.set.Task
	n.Type, n.Input = d.typeName, d.input
	return n, nil
}

// Plain returns the job and its tasks. Their IDs are made here, for their Needs to name
// each other. All mistakes are reported at once: ErrInvalidJob.
func (j *Job) Plain(opts ...SubmitOption) (task.NewJob, []task.New, error) {
	ids := task.NewIDs(nil)
	set := readSubmitOptions(opts)
	sub, err := j.submission(ids, func(d Draft) (task.New, error) {
		n, err := d.Task()
		n.ID = ids.New()
		return n, err
	}, &set)
	if err != nil {
		return task.NewJob{}, nil, err
	}
	return *sub.Job, sub.Tasks, nil
}

// Operation is what OperateOptions say.
type Operation struct {
	By, Reason string
	Force      bool
	Ask        string // ForAsk

	SeenEpoch     int64     // 0: whatever it is
	SeenUpdatedAt time.Time // zero: SeenEpoch alone

	AddAttempts int   // 0: none
	AddCost     int64 // micro-units; 0: none
	KeepSteps   bool
	Cleanups    bool
	AbandonUndo bool
	SkipUndo    []string

	RerunInput json.RawMessage // nil: that of the task that is repeated
	RerunWith  []EnqueueOption
}

// ReadOperateOptions reads the options of a verb, which the type of the command names.
// Those that the verb does not have are ErrInvalidOption.
func ReadOperateOptions(verb store.Command, opts ...OperateOption) (Operation, error) {
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return Operation{}, err
	}
	if err := s.problem(optionsOf(verb)); err != nil {
		return Operation{}, err
	}
	o := Operation{By: s.audit.By, Reason: s.audit.Reason, Force: s.force, Ask: s.ask, SeenEpoch: s.seen.Epoch, SeenUpdatedAt: s.seen.UpdatedAt}
	o.AddAttempts, o.AddCost = s.added()
	o.KeepSteps, o.Cleanups, o.AbandonUndo = s.keepSteps, s.cleanups, s.abandonUndo
	o.SkipUndo = s.skipUndo
	if s.rerun != nil {
		if s.rerun.err != nil {
			return Operation{}, fmt.Errorf("%w: %w", ErrInvalidInput, s.rerun.err)
		}
		o.RerunInput, o.RerunWith = s.rerun.input, s.rerun.enqueue
	}
	return o, nil
}

// WaitSettings is what WaitOptions say.
type WaitSettings struct {
	ThroughBlocked bool // WaitThroughBlocked
}

// ReadWaitOptions reads options of Wait. One that is nil is ErrInvalidOption.
func ReadWaitOptions(opts ...WaitOption) (s WaitSettings, err error) {
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("wait: %w: an option is nil", ErrInvalidOption)
		}
		o.applyWait(&s)
	}
	return s, nil
}

// Task reports whether a wait for a task is over, and what Wait returns then: nil, a
// *TaskError, or an error that is ErrBlocked.
func (s WaitSettings) Task(t *TaskInfo) (over bool, err error) {
	switch t.State {
	case task.Succeeded:
		return true, nil
	case task.Failed, task.Cancelled:
		return true, taskError(t)
	case task.Blocked:
		if s.ThroughBlocked {
			return false, nil
		}
		text := string(t.Waiting)
		if t.Error != nil {
			text = t.Error.Message
		}
		return true, fmt.Errorf("task %s (%s): %w: %s", t.ID, t.Type, ErrBlocked, text)
	}
	return false, nil
}

// Job reports whether a wait for a job is over, and what WaitJob returns then: nil, or
// an error that is ErrBlocked.
func (s WaitSettings) Job(r *JobResult) (over bool, err error) {
	if r.State == task.JobBlocked && !s.ThroughBlocked {
		return true, fmt.Errorf("job %s (%s): %w: %s", r.ID, r.Name, ErrBlocked, r.firstReason())
	}
	return r.State.Terminal(), nil
}
