package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Forever is an age for Retain that is never reached.
const Forever time.Duration = -1

// Retention is one rule of Config.Retain; Retain makes it.
type Retention struct {
	rule store.Retention
	made bool
	none []string // options that were given nothing
	bad  []string // what else is wrong with them
}

// some notes an option that names nothing: a rule without a filter speaks of all there
// is, which an empty list may not.
func (r *Retention) some(option string, n int) {
	if n == 0 {
		r.none = append(slices.Clip(r.none), option)
	}
}

// Retain makes a rule of retention: how long after its end a task outside jobs, or a
// whole job, is kept. Then it goes with everything recorded about it, its audit
// among it; children go with their parents, and what another task needs, or a later job
// is based on (BasedOn), stays until that is gone. Unfinished tasks and jobs stay.
//
//	Config{Retain: []weaver.Retention{
//		weaver.Retain(weaver.Forever).States(weaver.StateFailed),
//		weaver.Retain(7*24*time.Hour).Types(Mail),
//		weaver.Retain(90*24*time.Hour),
//		weaver.Retain(24*time.Hour).Values(),
//	}}
//
// Of the rules that speak of a task or job the first one decides. What none speaks of
// is kept for ever. An engine that runs looks once a minute for what is due to go.
func Retain(age time.Duration) Retention {
	return Retention{rule: store.Retention{Age: age}, made: true}
}

// States has the rule speak of tasks and jobs that ended so: StateSucceeded,
// StateFailed, StateCancelled.
func (r Retention) States(states ...State) Retention {
	r.some("States", len(states))
	r.rule.States = append(slices.Clip(r.rule.States), states...)
	return r
}

// Types has the rule speak of tasks of these types, and not of jobs.
func (r Retention) Types(types ...AnyType) Retention {
	r.some("Types", len(types))
	for i, t := range types {
		if t == nil {
			r.bad = append(slices.Clip(r.bad), fmt.Sprintf("Types: type %d is nil", i+1))
			continue
		}
		r.rule.Types = append(slices.Clip(r.rule.Types), t.Name())
	}
	return r
}

// TypeNames is Types by name.
func (r Retention) TypeNames(names ...string) Retention {
	r.some("TypeNames", len(names))
	r.rule.Types = append(slices.Clip(r.rule.Types), names...)
	return r
}

// Values has the rule speak of what tasks hold: input, output, progress, and the
// values of steps and signals. These go, and the rest of the task stays
// (TaskInfo.ValuesDropped): its attempts, the names of its steps, its audit. Only
// tasks that succeeded lose them, when no task is left that may run again and read
// them; those of a job when the job succeeded, that long after its end. Such a task
// cannot be rerun.
func (r Retention) Values() Retention {
	r.rule.Values = true
	return r
}

// problem says what is wrong with a rule.
func (r *Retention) problem() error {
	var problems []error
	if !r.made {
		problems = append(problems, errors.New("an empty rule, which would speak of everything: make it with Retain"))
	}
	for _, bad := range r.bad {
		problems = append(problems, errors.New(bad))
	}
	for _, option := range r.none {
		problems = append(problems, fmt.Errorf("%s() names nothing: leave it out for all, or the rule for none", option))
	}
	if r.rule.Age < 0 && r.rule.Age != Forever {
		problems = append(problems, fmt.Errorf("an age of %v: want 0 or more, or Forever", r.rule.Age))
	}
	for _, s := range r.rule.States {
		switch {
		case !s.Terminal():
			problems = append(problems, fmt.Errorf("the state %q: only what has ended goes: succeeded, failed, cancelled", s))
		case r.rule.Values && s != StateSucceeded:
			problems = append(problems, fmt.Errorf("values of tasks that %s: only tasks that succeeded lose their values, the others may be retried", s))
		}
	}
	for _, t := range r.rule.Types {
		if err := task.CheckTypeName(t); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// rulesOf returns the rules as the store has them.
func rulesOf(list []Retention) []store.Retention {
	rules := make([]store.Retention, len(list))
	for i := range list {
		rules[i] = list[i].rule
		rules[i].States, rules[i].Types = slices.Clone(list[i].rule.States), slices.Clone(list[i].rule.Types)
	}
	return rules
}

// Prune deletes expired data by retention rules now; see Retain. It works in batches, between which
// others write. After an error, completed deletions stay, and the answer counts them. Option: DryRun.
func (c *Client) Prune(ctx context.Context, rules []Retention, opts ...OperateOption) (ack ops.PruneAck, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("prune: %w", err)
		}
	}()
	s := operateSettings{}
	if err := s.apply(opts); err != nil {
		return ack, err
	}
	if s.many != nil && s.many.older != 0 {
		return ack, fmt.Errorf("%w: OlderThan is the age of the rule here", ErrInvalidOption)
	}
	if err := s.problem(verbOptions{many: true}); err != nil {
		return ack, err
	}
	for i := range rules {
		if err := rules[i].problem(); err != nil {
			return ack, fmt.Errorf("%w: rule %d: %w", ErrInvalidOption, i+1, err)
		}
	}
	req := store.CollectRequest{Retain: rulesOf(rules), DryRun: s.many != nil && s.many.dryRun}
	for {
		got, err := c.store.Collect(ctx, c.ns, req)
		if err != nil {
			return ack, err
		}
		ack.Tasks, ack.Jobs, ack.Dropped, ack.Freed = ack.Tasks+got.Tasks, ack.Jobs+got.Jobs, ack.Dropped+got.Dropped, ack.Freed+got.Freed
		if got.Done() {
			return ack, nil
		}
		req.After = got.Next
	}
}

// DeleteJob removes a finished job, with all its tasks and their records, and returns the number of
// its tasks. Errors: ErrNotFound; ErrState if it has not ended, an outside task needs one of its
// tasks, or a later job is based on it (BasedOn). Options: By, Reason.
func (c *Client) DeleteJob(ctx context.Context, id JobID, opts ...OperateOption) (int, error) {
	res, err := c.operate(ctx, "delete job "+id.String(), opts, func(s operateSettings) store.Command {
		return store.DeleteJob{Audit: s.audit, Job: id}
	})
	return res.Deleted, err
}
