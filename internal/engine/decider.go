package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decide completes a finish with the Decider's decision.
func (a *Attempt) decide(fin store.Finish, outcome task.Outcome, err error, permanent bool) store.Finish {
	fin.Outcome, fin.Error = outcome, a.taskError(err)
	in := decide.Input{Task: a.task, Outcome: outcome, Error: *fin.Error, Permanent: permanent, IdleAttempts: a.idleAttempts(), CanRepair: a.mayBeRepaired() == nil}
	if !a.task.DeadlineAt.IsZero() {
		in.TimeLeft = max(a.task.DeadlineAt.Sub(a.storeNow()), 1)
	}
	var v *Verdict
	if errors.As(err, &v) && v.Kind == RetryAfter {
		in.RetryAfter = max(v.Delay, 1) // 0 would mean that the handler requested no delay
	}
	dec := a.askDecider(in, err)
	fin.Delay = dec.Delay
	fin.Decision = &task.Decision{Kind: dec.Kind, Reason: dec.Reason}
	fin.Decision.Reason.Asked = &task.Asked{
		AttemptCount: a.task.AttemptCount, CrashCount: a.task.CrashCount, RepairCount: a.task.RepairCount, StepCount: a.task.StepCount,
		Permanent: in.Permanent, RetryAfter: in.RetryAfter, TimeLeft: in.TimeLeft, IdleAttempts: in.IdleAttempts, CanRepair: in.CanRepair,
	}
	fin.Output, fin.Waiting = dec.Output, dec.Waiting
	fin.Children, fin.Join, fin.DependsOn = dec.children, dec.Join, dec.DependsOn
	return fin
}

// decidesToWait reports whether the decision after a failure was to wait for children, another task or a repair.
func decidesToWait(fin *store.Finish) bool {
	if fin.Decision == nil {
		return false
	}
	switch fin.Decision.Kind {
	case task.DecideDecompose, task.DecideAddDependency, task.DecideRepair:
		return true
	}
	return false
}

// choice is a decision with the children made from its drafts.
type choice struct {
	decide.Decision
	children []task.New
}

// askDecider asks the configured Decider. If it panics or its decision is impossible, the default decides and
// explains that in the reason. The IDs of children are created here, once per attempt: a repeated report names the
// same children. err is the attempt's error.
func (a *Attempt) askDecider(in decide.Input, err error) (c choice) {
	e := a.env
	overrule := func(why string) {
		said := c.Kind
		c = a.byDefault(in, err)
		c.Reason.Fallback, c.Reason.Said = sanitize(why), said
		c.Reason.Text = c.Reason.Fallback + "; the default decided: " + c.Reason.Text
		e.Log.Error("the decider failed", "task_id", in.Task.ID, "task_type", in.Task.Type, "attempt_no", in.Task.AttemptNo, "reason", why)
	}
	defer func() {
		if p := recover(); p != nil {
			overrule(fmt.Sprintf("the decider panicked: %v", p))
		}
	}()
	c.Decision = e.Decider.Decide(in)
	c.Delay = max(c.Delay, 0)
	c.Reason.Text, c.Reason.Change = sanitize(c.Reason.Text), sanitize(c.Reason.Change)
	if _, err := json.Marshal(c.Reason); err != nil {
		overrule("the decider gave evidence that is not JSON: " + err.Error())
		return c
	}
	if c.Kind == "" { // no opinion
		return a.byDefault(in, err)
	}
	if bad := a.carryOut(&c, in, err); bad != nil {
		in.CanRepair = in.CanRepair && c.Kind != task.DecideRepair
		overrule(fmt.Sprintf("the decider chose %s, which cannot be done here: %v", c.Kind, bad))
	}
	return c
}

// byDefault returns the decision of the default. It never chooses an impossible repair.
func (a *Attempt) byDefault(in decide.Input, err error) choice {
	c := choice{Decision: decide.Default{}.Decide(in)}
	if bad := a.carryOut(&c, in, err); bad != nil {
		a.logger().Warn("the input cannot be repaired", "error", bad)
		in.CanRepair = false
		c = choice{Decision: decide.Default{}.Decide(in)}
	}
	return c
}

// carryOut prepares a decision for the store, or returns an error if it is impossible. It clears fields that the
// decision's kind does not use.
func (a *Attempt) carryOut(c *choice, in decide.Input, err error) error {
	drafts, join, on, out, waiting := c.Children, c.Join, c.DependsOn, c.Output, c.Waiting
	c.Children, c.Join, c.DependsOn, c.Output, c.Waiting = nil, task.JoinNone, task.ID{}, nil, task.WaitNone
	switch c.Kind {
	case task.DecideRetry, task.DecideMarkDead:
		return nil
	case task.DecideBlock:
		if c.Waiting = waiting; waiting != task.WaitNone && waiting != task.WaitManual && waiting != task.WaitBudget {
			return fmt.Errorf("a task is blocked for manual or budget, not for %q", waiting)
		}
		return nil
	case task.DecideSucceed:
		return a.decideOutput(c, out)
	case task.DecideRepair:
		return a.decideRepair(c, in, err)
	case task.DecideAddDependency:
		c.DependsOn = on
		return a.checkDependsOn(on)
	case task.DecideDecompose:
		if c.Join = join; join == task.JoinNone {
			c.Join = task.JoinRerun
		}
		if c.Join != task.JoinRerun && c.Join != task.JoinComplete {
			return fmt.Errorf("the join %q is not rerun or complete", c.Join)
		}
		if c.Join == task.JoinComplete {
			if err := a.decideOutput(c, out); err != nil {
				return err
			}
		}
		return a.decideChildren(c, drafts)
	}
	return errors.New("unknown kind of decision")
}

// decideOutput takes the output of a Decider. An empty output is null.
func (a *Attempt) decideOutput(c *choice, out json.RawMessage) error {
	if c.Output = out; len(out) == 0 {
		c.Output = json.RawMessage("null")
	}
	if !json.Valid(c.Output) {
		return errors.New("it came with an output that is not JSON")
	}
	return a.env.checkSize("output", len(c.Output))
}

// decideChildren makes the children of a Decider's decision.
func (a *Attempt) decideChildren(c *choice, drafts []task.Draft) error {
	if err := task.CheckChildren(a.task.Depth, 0, len(drafts)); err != nil {
		return err
	}
	if err := task.CheckChildren(a.task.Depth, a.childCount(), len(drafts)); err != nil {
		return err
	}
	c.children = make([]task.New, len(drafts))
	var problems []error
	for i := range drafts {
		n, err := a.env.newTask(&drafts[i])
		if err != nil {
			problems = append(problems, fmt.Errorf("child %d: %w", i, err))
			if len(problems) == 5 {
				break
			}
		}
		c.children[i] = n
	}
	if err := errors.Join(problems...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	a.injectInto(a.innermost(), c.children)
	return nil
}

// newTask makes a task of a plain draft with the defaults of the type's handler.
func (e *env) newTask(d *task.Draft) (task.New, error) {
	known := e.drafts[d.Type]
	if known == nil {
		return task.New{}, fmt.Errorf("type %q has no handler here: a Decider can name the types that its worker handles", d.Type)
	}
	n, err := known(d)
	n.ID = e.IDs.New()
	return n, err
}

// childCount returns the number of children from earlier decompositions. If it cannot be read now, the store enforces
// the limit later.
func (a *Attempt) childCount() (n int) {
	ctx, cancel := a.reading()
	defer cancel()
	needs, err := a.Needs(ctx)
	if err != nil {
		return 0
	}
	for i := range needs {
		if needs[i].Awaited > 0 && needs[i].Kind == task.OnDone {
			n++
		}
	}
	return n
}

// checkDependsOn refuses a dependency that can never let this task continue. The store detects cycles and concurrent
// ends.
func (a *Attempt) checkDependsOn(id task.ID) error {
	switch {
	case id.IsZero():
		return errors.New("no task is named: the id is zero")
	case id == a.task.ID:
		return errors.New("the task would wait for itself")
	}
	ctx, cancel := a.reading()
	defer cancel()
	got, err := a.env.Store.Tasks(ctx, a.env.Namespace, id)
	if err != nil {
		return nil
	}
	if len(got) == 0 {
		return fmt.Errorf("there is no task %s", id)
	}
	if met, ended := task.OnSuccess.Holds(got[0].End()); ended && !met {
		return fmt.Errorf("task %s ended %s", id, got[0].State)
	}
	return nil
}

// reading returns the context of a read that a decision needs.
func (a *Attempt) reading() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(a.env.work), a.env.lease().Call())
}
