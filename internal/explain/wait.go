package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// openWaits returns the steps in which a task waits for a signal or for the children of a call. The losing cases of a
// decided race are not waits.
func openWaits(h *store.History) []task.Step {
	decided := make(map[string]bool)
	for i := range h.Steps {
		if st := &h.Steps[i]; st.Kind == task.KindRace && st.State == task.StepCompleted {
			decided[st.Name] = true
		}
	}
	var open []task.Step
	for _, st := range h.Steps {
		race := st.Name[:max(0, strings.LastIndexByte(st.Name, '['))] // a race case: "name[0]"
		if st.State == task.StepWaiting && !decided[race] {
			open = append(open, st)
		}
	}
	return open
}

// inWaits describes the waits of a task inside its handler, which a signal, the end of a child, or a time ends.
func (c Clock) inWaits(h *store.History) string {
	open := openWaits(h)
	parts := make([]string, 0, maxCauses)
	for i := range open {
		if i == maxCauses {
			parts[i-1] += fmt.Sprintf(" and %d more", len(open)-i)
			break
		}
		parts = append(parts, c.inWait(&open[i]))
	}
	if len(parts) == 0 {
		return ""
	}
	said := "waits for " + strings.Join(parts, ", and for ")
	due := h.Task.ReadyAt
	if !due.IsZero() && !slices.ContainsFunc(open, func(st task.Step) bool { return st.WakeAt.Equal(due) }) {
		said += ", and goes on " + c.When(due) + " at the latest" // it sleeps as well
	}
	return said
}

func (c Clock) inWait(st *task.Step) string {
	name := text.OneLine(st.Name, MaxNote)
	if st.Kind == task.KindCall {
		return fmt.Sprintf("%d of %s of the call %q", st.ChildrenLeft, children(st.Children), name)
	}
	said := fmt.Sprintf("the signal %q in %q, since %s", text.OneLine(st.Signal, MaxNote), name, c.When(st.StartedAt))
	if !st.WakeAt.IsZero() {
		said += ", until " + c.Abs(st.WakeAt)
	}
	return said
}

// openCalled returns a test for unfinished children of a call.
func openCalled(h *store.History) func(store.Need) bool {
	calls := make(map[string]bool)
	for _, st := range openWaits(h) {
		calls[st.Name] = st.Kind == task.KindCall
	}
	return func(n store.Need) bool { return calls[n.Step] && !n.Done }
}

// signal adds the actions that send the awaited signals.
func (w *walk) signal(h *store.History) {
	name := Short(&h.Task)
	for _, st := range openWaits(h) {
		if st.Kind == task.KindSignal {
			w.add(on(h.Task.ID, VerbSignal, "sends the signal to "+name+"; JSON is its payload").with(Args{Name: st.Signal}).needsInput())
		}
	}
}

// WaitsForSignals returns the names of the signals that a task waits for, each once.
func WaitsForSignals(h *store.History) (names []string) {
	for _, st := range openWaits(h) {
		if st.Kind == task.KindSignal && !slices.Contains(names, st.Signal) {
			names = append(names, st.Signal)
		}
	}
	return names
}

// StepWait describes the past or present wait of a step in a few words; "" for a step without a wait.
func (c Clock) StepWait(st *task.Step) string {
	switch {
	case st.Kind == task.KindSleep:
		return "wakes " + c.When(st.WakeAt)
	case st.Kind == task.KindCall && st.State == task.StepWaiting:
		return fmt.Sprintf("%d of %s left", st.ChildrenLeft, children(st.Children))
	case st.Kind == task.KindCall:
		return children(st.Children)
	case st.Kind == task.KindSignal && st.State == task.StepWaiting && !st.WakeAt.IsZero():
		return fmt.Sprintf("waits for %q until %s", text.OneLine(st.Signal, MaxNote), c.Abs(st.WakeAt))
	case st.Kind == task.KindSignal && st.State == task.StepWaiting:
		return fmt.Sprintf("waits for %q", text.OneLine(st.Signal, MaxNote))
	case st.Kind == task.KindSignal && len(st.Value) == 0:
		return fmt.Sprintf("no %q came", text.OneLine(st.Signal, MaxNote))
	}
	return ""
}
