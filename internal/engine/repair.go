package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// An input that cannot be used is repaired by a child of its task (ADR 0033). The attempt that found it ends with the
// child. The child waits in a queue of the task's type, from which only workers with a Repair function of that type
// claim.

// bound returns the queues from which repairs are claimed.
func (e *env) bound() map[string][]string {
	if len(e.repairs) == 0 {
		return nil
	}
	queues := make([]string, 0, len(e.repairs))
	for _, name := range slices.Sorted(maps.Keys(e.repairs)) {
		queues = append(queues, task.RepairQueue(name))
	}
	return map[string][]string{task.RepairType: queues}
}

// queues returns the configured queues and those of the repairs.
func (e *Engine) queues() map[string]int {
	if e.cfg.Queues == nil || len(e.repairs) == 0 {
		return e.cfg.Queues
	}
	all := maps.Clone(e.cfg.Queues)
	for name := range e.repairs {
		all[task.RepairQueue(name)] = e.cfg.Slots
	}
	return all
}

// mayBeRepaired returns an error if the task's input cannot be repaired.
func (a *Attempt) mayBeRepaired() error {
	t := &a.task
	switch _, known := a.env.repairs[t.Type]; {
	case !known:
		return fmt.Errorf("no handler of %s here has a Repair function", t.Type)
	case t.RepairCount >= t.MaxRepairs:
		return fmt.Errorf("%d of %d repairs (max_repairs) were made", t.RepairCount, t.MaxRepairs)
	}
	return task.CheckChildren(t.Depth, 0, 1)
}

// decideRepair creates the repair of a decision. cause is the error of the attempt. Crash before the store has it:
// there is no repair, and the task runs again.
func (a *Attempt) decideRepair(c *choice, in decide.Input, cause error) error {
	if err := a.mayBeRepaired(); err != nil {
		return err
	}
	t := &a.task
	known := decide.RepairInput{Task: *t, Error: in.Error, Path: pathOf(cause), Schema: a.env.repairs[t.Type], Before: a.lastRepair()}
	input, err := json.Marshal(task.Repair{
		Type: t.Type, InputHash: task.PayloadHash(a.inputRow), Schema: t.SchemaVersion,
		Error: in.Error.Message, Path: known.Path, Hint: sanitize(a.hide(a.hint(known))), No: t.RepairCount + 1, MaxRepairs: t.MaxRepairs,
	})
	if err != nil {
		return err
	}
	n, err := a.env.newTask(&task.Draft{Type: task.RepairType, Input: input, Priority: t.Priority, Labels: t.Labels})
	if err != nil {
		return err
	}
	n.Queue, n.AllowFailure = task.RepairQueue(t.Type), true // the task's own end counts for its job
	if n.Node = fmt.Sprintf("repair[%d]", t.RepairCount+1); t.Node != "" {
		n.Node = t.Node + "/" + n.Node
	}
	n.Redact = asStep(t.Redact)
	c.Join, c.children = task.JoinRepair, []task.New{n}
	a.injectInto(a.innermost(), c.children)
	return nil
}

// asStep converts the patterns of a task to those of its repair, which has the new input in a step.
func asStep(patterns []string) (list []string) {
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, redact.Input+"/"); ok {
			list = append(list, redact.Step+"/"+rest)
		}
	}
	return list
}

// hint asks the RepairHinter; one that panics is replaced by the default.
func (a *Attempt) hint(in decide.RepairInput) (hint string) {
	defer func() {
		if p := recover(); p != nil {
			a.logger().Error("the repair hinter panicked", "panic", p)
			hint = decide.DefaultHint{}.Hint(in)
		}
	}()
	if a.env.RepairHinter == nil {
		return decide.DefaultHint{}.Hint(in)
	}
	return a.env.RepairHinter.Hint(in)
}

// pathOf returns the path of the field that did not decode, or "" if unknown.
func pathOf(err error) string {
	var field *json.UnmarshalTypeError
	if errors.As(err, &field) {
		return field.Field
	}
	return ""
}

// lastRepair returns the error of the last repair of the task. It returns nil if that succeeded, if there was no
// repair, or if it cannot be read now.
func (a *Attempt) lastRepair() *task.Error {
	if a.task.RepairCount == 0 {
		return nil
	}
	ctx, cancel := a.reading()
	defer cancel()
	needs, err := a.Needs(ctx)
	if err != nil {
		return nil
	}
	var last *store.Need
	for i := range needs {
		if n := &needs[i]; n.Awaited > 0 && n.Kind == task.OnDone && (last == nil || n.Awaited > last.Awaited) {
			last = n
		}
	}
	if last == nil {
		return nil
	}
	return last.EndedError
}
