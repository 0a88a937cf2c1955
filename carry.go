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

// Drafts, jobs and options as plain values, for clients that send them to another program, as package
// httpapi does. Programs that use a Client do not need them.

// Task returns the task of the draft, without an ID, with the options of its type and its own. Errors:
// Err, and ErrInvalidInput for an empty draft.
func (d Draft) Task() (task.New, error) {
	n, err := d.task()
	if err == nil {
		n.Labels, n.Metadata = maps.Clone(n.Labels), maps.Clone(n.Metadata)
		n.Redact, n.Expire = slices.Clone(n.Redact), slices.Clone(n.Expire)
	}
	return n, err
}

// task is Task with maps and slices owned by the draft.
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

// Plain returns the job and its tasks, with new IDs that their Needs refer to. It reports all mistakes
// at once: ErrInvalidJob.
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

// Operation holds OperateOptions as plain values.
type Operation struct {
	By, Reason string
	Force      bool
	Ask        string // ForAsk

	SeenEpoch     int64     // 0 matches any
	SeenUpdatedAt time.Time // zero: compare only SeenEpoch

	AddAttempts int   // 0: no change
	AddCost     int64 // micro-units; 0: no change
	KeepSteps   bool
	Cleanups    bool
	AbandonUndo bool
	SkipUndo    []string

	DryRun      bool
	SeenVersion *int // nil matches any

	RerunInput json.RawMessage // nil: the input of the repeated task
	RerunWith  []EnqueueOption
}

// ReadOperateOptions reads the options of a verb, identified by the type of its command. Options that
// the verb does not have are ErrInvalidOption.
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
	o.SkipUndo, o.SeenVersion, o.DryRun = s.skipUndo, s.version, s.many != nil && s.many.dryRun
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

// ReadWaitOptions reads options of Wait. A nil option is ErrInvalidOption.
func ReadWaitOptions(opts ...WaitOption) (s WaitSettings, err error) {
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("wait: %w: an option is nil", ErrInvalidOption)
		}
		o.applyWait(&s)
	}
	return s, nil
}

// Task reports whether a wait for a task is over, and the error of Wait: nil, a *TaskError, or
// ErrBlocked.
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

// Job reports whether a wait for a job is over, and the error of WaitJob: nil or ErrBlocked.
func (s WaitSettings) Job(r *JobResult) (over bool, err error) {
	if r.State == task.JobBlocked && !s.ThroughBlocked {
		return true, fmt.Errorf("job %s (%s): %w: %s", r.ID, r.Name, ErrBlocked, r.firstReason())
	}
	return r.State.Terminal(), nil
}
