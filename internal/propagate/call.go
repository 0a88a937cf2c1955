package propagate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Caller is a task that ended with children of calls. The caller of Run cancels the children
// that have not ended.
type Caller struct{ ID, Job task.ID }

// call is a step of a task that calls others.
type call struct {
	task task.ID
	step string
}

// lowerCalls counts ended children for their waiting calls, and dispatches the tasks that can
// continue.
func (r *run) lowerCalls(ended map[call]int) error {
	if len(ended) == 0 {
		return nil
	}
	list := make([]CallEnds, 0, len(ended))
	for c, n := range ended {
		list = append(list, CallEnds{c.task, c.step, n})
	}
	slices.SortFunc(list, func(a, b CallEnds) int { return cmp.Or(a.Task.Compare(b.Task), strings.Compare(a.Step, b.Step)) })
	woken, err := r.ops.LowerCalls(list)
	for i := range woken {
		r.Count(woken[i].Job, woken[i].Was, Unfinished(task.Ready, task.WaitNone))
		r.Dispatch(woken[i].Dispatch)
	}
	return err
}

// noteEnd records that a dependent has ended.
func (r *run) noteEnd(d *Dependent) {
	r.result.Ended = append(r.result.Ended, d.ID)
	if d.Calls {
		r.result.Callers = append(r.result.Callers, Caller{d.ID, d.Job})
	}
}
