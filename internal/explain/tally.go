package explain

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Tally counts tasks by the words for their states. Its zero value counts no tasks.
type Tally struct {
	Total, Running, Failed, Blocked, Retrying, Succeeded, Cancelled, Ready, Waiting int

	NotNeeded int // cancelled, but not counted against the job
	Allowed   int // failed, but the job allows it
}

// Add counts a task by its state and the way it ended.
func (t *Tally) Add(end task.End, waiting task.Waiting) {
	state := end.State
	t.Total++
	switch {
	case end.Allowed():
		t.Allowed++
	case state == task.Running:
		t.Running++
	case state == task.Failed:
		t.Failed++
	case state == task.Blocked:
		t.Blocked++
	case state == task.Succeeded:
		t.Succeeded++
	case state == task.Cancelled && end.Against():
		t.Cancelled++
	case state == task.Cancelled:
		t.NotNeeded++
	case Retrying(state, waiting):
		t.Retrying++
	case state == task.Ready:
		t.Ready++
	default:
		t.Waiting++
	}
}

// Done returns the number of ended tasks.
func (t *Tally) Done() int { return t.Succeeded + t.Failed + t.Cancelled + t.NotNeeded + t.Allowed }

// Words lists the counts above zero: "200 succeeded, 71 waiting".
func (t *Tally) Words() string {
	var parts []string
	for _, p := range append(t.moving(), TallyPart{t.Succeeded, "succeeded"}, TallyPart{t.Cancelled, "cancelled"}, TallyPart{t.Allowed, "failed as allowed"}, TallyPart{t.NotNeeded, "not needed"}, TallyPart{t.Ready, "ready"}, TallyPart{t.Waiting, "waiting"}) {
		if p.N > 0 {
			parts = append(parts, p.String())
		}
	}
	return strings.Join(parts, ", ")
}

// News returns the counts above zero that a short line shows in addition to [Tally.Done], most important first.
func (t *Tally) News() []TallyPart {
	var parts []TallyPart
	for _, p := range append(t.moving(), TallyPart{t.Cancelled, "cancelled"}, TallyPart{t.Allowed, "failed as allowed"}, TallyPart{t.NotNeeded, "not needed"}) {
		if p.N > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

func (t *Tally) moving() []TallyPart {
	return []TallyPart{{t.Running, "running"}, {t.Failed, "failed"}, {t.Blocked, "blocked"}, {t.Retrying, "retrying"}}
}

// TallyPart is the number of tasks in one state.
type TallyPart struct {
	N    int
	Word string
}

// String formats the part: "3 running".
func (p TallyPart) String() string { return fmt.Sprintf("%d %s", p.N, p.Word) }

// Retrying reports whether a task waits for another attempt after a failed one.
func Retrying(state task.State, waiting task.Waiting) bool {
	return state == task.Pending && waiting == task.WaitRetry
}
