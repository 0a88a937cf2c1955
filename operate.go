package weaver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// OperateOption is an option of Cancel, Retry and the other verbs.
type OperateOption interface{ applyOperate(*operateSettings) }

type operateSettings struct {
	audit store.Audit
	seen  store.Seen
	force bool
	ask   string

	abandonUndo bool
	cleanups    bool
	skipUndo    []string

	addAttempts *int
	addCost     *int64
	keepSteps   bool
	rerun       *rerunSettings // with options of Rerun
	many        *manySettings  // with options of RetryMany and the like
	version     *int           // SeenVersion
}

// verbOptions says which options, of those that not all verbs have, a verb has.
type verbOptions struct{ force, abandon, ask, seen, rerun, many, dry, version, add, keep, cleanups, skip bool }

// problem returns the error for options that the verb does not have.
func (s *operateSettings) problem(has verbOptions) error {
	var problems []error
	refuse := func(given, allowed bool, text string) {
		if given && !allowed {
			problems = append(problems, errors.New(text+": leave it out here"))
		}
	}
	refuse(s.force, has.force, "Force is an option of Cancel and CancelMany only")
	refuse(s.abandonUndo, has.abandon, "AbandonUndo is an option of Cancel only")
	refuse(s.cleanups, has.cleanups, "Cleanups is an option of Retry and RetryMany only")
	refuse(s.ask != "", has.ask, "ForAsk is an option of Unblock only")
	refuse(s.seen != (store.Seen{}), has.seen, "SeenEpoch is an option of the verbs of one task only")
	refuse(s.rerun != nil, has.rerun, "RerunInput and RerunWith are options of Rerun and RerunFrom only")
	refuse(s.many != nil && s.many.dryRun, has.many || has.dry, "DryRun is an option of RetryMany, CancelMany, DeleteMany and BackfillSchedule only")
	refuse(s.many != nil && s.many.older != 0, has.many, "OlderThan is an option of RetryMany, CancelMany and DeleteMany only")
	refuse(s.version != nil, has.version, "SeenVersion is an option of PutSchedule only")
	refuse(s.addAttempts != nil || s.addCost != nil, has.add, "AddAttempts and AddCost are options of RetryJob and Retry only")
	refuse(s.keepSteps, has.keep, onlyKeepSteps)
	if has.cleanups && s.cleanups && (s.keepSteps || s.addAttempts != nil || s.addCost != nil) {
		problems = append(problems, errors.New("Cleanups tries the undo of a task again, alone: leave KeepSteps, AddAttempts and AddCost out"))
	}
	refuse(len(s.skipUndo) > 0, has.skip, "SkipUndo is an option of Retry only")
	if len(s.skipUndo) > 0 && s.audit.Reason == "" {
		problems = append(problems, errors.New("SkipUndo needs a Reason: what is not undone stays"))
	}
	if s.addAttempts != nil && *s.addAttempts < 1 {
		problems = append(problems, fmt.Errorf("AddAttempts(%d): want 1 or more", *s.addAttempts))
	}
	if s.addCost != nil && *s.addCost < 1 {
		problems = append(problems, fmt.Errorf("AddCost(%d): want 1 micro-unit or more", *s.addCost))
	}
	problems = append(problems, task.CheckText("By", s.audit.By), task.CheckText("Reason", s.audit.Reason))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	return nil
}

// optionsOf returns the options of the verb of one task or job.
func optionsOf(cmd store.Command) (has verbOptions) {
	switch cmd := cmd.(type) {
	case store.WriteSchedule:
		has.version, has.dry = cmd.Verb == "put_schedule", cmd.Verb == "backfill_schedule"
	case store.CancelTask:
		has.seen, has.force, has.abandon = true, true, true
	case store.ReplaceInput:
		has.seen = true
	case store.UnblockTask:
		has.seen, has.ask = true, true
	case store.RetryTask:
		has.seen, has.add, has.keep, has.cleanups, has.skip = true, true, true, true, true
	case store.RescheduleTask, store.DeleteTask, store.SendSignal, store.PauseTask, store.ResumeTask:
		has.seen = true
	case store.RerunTask:
		has.seen, has.rerun, has.keep = true, true, true
	case store.RaiseBudget:
		has.add, has.keep = true, true
	}
	return has
}

type operateOption func(*operateSettings)

func (o operateOption) applyOperate(s *operateSettings) { o(s) }

// Reason sets the reason, stored with the task and in the audit.
func Reason(text string) OperateOption {
	return operateOption(func(s *operateSettings) { s.audit.Reason = text })
}

// By sets the operator's name, stored with the task and in the audit.
func By(operator string) OperateOption {
	return operateOption(func(s *operateSettings) { s.audit.By = operator })
}

// Force makes Cancel revoke the lease of a running task, so that it ends at once, whatever its handler
// does. A task with effects to undo is undone first: the undo starts when the revoked lease has ended,
// as the handler may run until then, or when its process is proven dead.
//
// In an undo phase the first forced cancel revokes the attempt that runs the undo; another attempt
// follows when that lease has ended. The second forced cancel gives the undo up: see AbandonUndo.
// Verbs other than Cancel and CancelMany refuse it: ErrInvalidOption.
func Force() OperateOption {
	return operateOption(func(s *operateSettings) { s.force = true })
}

// AbandonUndo makes Cancel give up the undo of a task: the task fails at once with
// [github.com/goweaver/weaver/task.KindUndoFailed], and the remaining effects stay. If the undo was
// already given up, it confirms that a person has dealt with the effects: the task may then be
// deleted, and retention rules apply to it. The audit names the operator. A task without an undo to
// abandon is ErrState; other verbs refuse it: ErrInvalidOption.
func AbandonUndo() OperateOption {
	return operateOption(func(s *operateSettings) { s.abandonUndo = true })
}

// Cleanups makes Retry retry only the undo of a task: one that was given up, is blocked, or waits for
// its next try, which is due now. The undo is retried for another 24 h, then the task ends as before.
// Its unstarted dependents wait for that. A task without effects to undo, or with a running undo, is
// ErrState; verbs other than Retry and RetryMany refuse it: ErrInvalidOption.
func Cleanups() OperateOption {
	return operateOption(func(s *operateSettings) { s.cleanups = true })
}

// SkipUndo is [Cleanups] that gives up the undo of some steps: their effects stay, and they count as
// never run. Earlier steps are undone. It needs a [Reason]; the audit names the steps. A step without
// a pending undo is ErrState.
func SkipUndo(steps ...string) OperateOption {
	return operateOption(func(s *operateSettings) {
		s.cleanups = true
		s.skipUndo = append(s.skipUndo, steps...)
	})
}

const onlyKeepSteps = "KeepSteps is an option of Retry, RetryJob, RetryMany and RerunFrom only"

// KeepSteps retries a task, or reruns it from a step, although its cleanup ran ([Cleanup]): its
// completed steps count as done. Use it only if their effects still hold, for instance if the cleanup
// did not undo them. The audit records it. After a retry the cleanup is a past step ([StepInfo.Past])
// and runs again in turn. Other verbs refuse it: ErrInvalidOption.
func KeepSteps() OperateOption {
	return operateOption(func(s *operateSettings) { s.keepSteps = true })
}

// SeenEpoch makes a verb of one task act only on the task that was seen: when its epoch
// (TaskInfo.Epoch) is another one by now, which it is after every claim and every
// operator's verb that moved it, nothing changes and the answer is [store.ErrChanged].
//
// With updatedAt, the TaskInfo.UpdatedAt seen, it also returns the error if the task's state, input or
// due time has changed since. Steps, progress, logs, unawaited signals, a cancel request, a pause and
// a resume do not count as changes.
func SeenEpoch(epoch int64, updatedAt ...time.Time) OperateOption {
	return operateOption(func(s *operateSettings) {
		s.seen = store.Seen{Epoch: epoch}
		for _, at := range updatedAt {
			s.seen.UpdatedAt = at
		}
	})
}

// added returns the values of AddAttempts and AddCost.
func (s *operateSettings) added() (attempts int, cost int64) {
	if s.addAttempts != nil {
		attempts = *s.addAttempts
	}
	if s.addCost != nil {
		cost = *s.addCost
	}
	return attempts, cost
}

// apply applies options.
func (s *operateSettings) apply(opts []OperateOption) error {
	for _, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: an option is nil", ErrInvalidOption)
		}
		o.applyOperate(s)
	}
	return nil
}

// operate applies an operator's verb.
func (c *Client) operate(ctx context.Context, what string, opts []OperateOption, verb func(operateSettings) store.Command) (store.CommandResult, error) {
	if engine.StepTxOf(ctx) != nil {
		return store.CommandResult{}, fmt.Errorf("%s: %w", what, ErrNestedTx)
	}
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return store.CommandResult{}, fmt.Errorf("%s: %w", what, err)
	}
	cmd := verb(s)
	if err := s.problem(optionsOf(cmd)); err != nil {
		return store.CommandResult{}, fmt.Errorf("%s: %w", what, err)
	}
	res, err := c.store.Operate(ctx, c.ns, withRepairs(cmd)...)
	if err != nil {
		return store.CommandResult{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := res[0].Err; err != nil {
		// The error names the task or job itself.
		verb, _, _ := strings.Cut(what, " ")
		return store.CommandResult{}, fmt.Errorf("%s: %w", verb, err)
	}
	return res[0], nil
}

// withRepairs adds to a pause of a type the pause of its repair queue.
func withRepairs(cmd store.Command) []store.Command {
	switch cmd := cmd.(type) {
	case store.PauseType:
		return []store.Command{cmd, store.PauseQueue{Audit: cmd.Audit, Queue: task.RepairQueue(cmd.Type)}}
	case store.ResumeType:
		return []store.Command{cmd, store.ResumeQueue{Audit: cmd.Audit, Queue: task.RepairQueue(cmd.Type)}}
	}
	return []store.Command{cmd}
}
