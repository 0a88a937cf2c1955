package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Explanation explains the state of a task or job.
type Explanation struct {
	Kind    string       `json:"kind"` // task or job
	ID      task.ID      `json:"id"`
	JobID   task.ID      `json:"job_id,omitzero"`
	Name    string       `json:"name,omitempty"` // name of the job, or of the task inside its job
	Type    string       `json:"task_type,omitempty"`
	State   string       `json:"state"`
	Waiting task.Waiting `json:"waiting_reason,omitempty"`
	Until   time.Time    `json:"until,omitzero"`       // when it continues by itself, if known
	Start   *Start       `json:"start,omitempty"`      // of a task that waits: when it will probably start
	Root    string       `json:"root_cause,omitempty"` // the task behind a wait or failure, its error, and the path from it
	Summary string       `json:"summary"`
	Because []Cause      `json:"because,omitempty"`
	Past    []Happening  `json:"past,omitempty"`
	Notes   []string     `json:"notes,omitempty"`
	Actions []Action     `json:"actions,omitempty"` // possible operator actions
}

// Title names the explained task or job: `Task 01J… "sum", of type acme.demo.sum.v1`.
func (x *Explanation) Title() string {
	title := "Task " + x.ID.String()
	if x.Kind == "job" {
		title = "Job " + x.ID.String()
	}
	if x.Name != "" {
		title += fmt.Sprintf(" %q", text.OneLine(x.Name, MaxNote))
	}
	if x.Type != "" {
		title += ", of type " + x.Type
	}
	if !x.JobID.IsZero() {
		title += fmt.Sprintf(", in job %s", x.JobID)
	}
	return title
}

// Cause is one reason for a state, with its own causes.
type Cause struct {
	Kind     CauseKind  `json:"kind"`
	TaskID   task.ID    `json:"task_id,omitzero"`
	State    task.State `json:"state,omitempty"`
	Sentence string     `json:"sentence"`
	Because  []Cause    `json:"because,omitempty"`
}

// CauseKind is the kind of a cause.
type CauseKind string

// Kinds of causes.
const (
	CauseNeed  CauseKind = "need"  // a task that it waits for, or for which it failed
	CauseKey   CauseKind = "key"   // a task that holds its concurrency key
	CausePause CauseKind = "pause" // the pause of the task, its type or its queue
	CauseTask  CauseKind = "task"  // a task of the job
	CauseMore  CauseKind = "more"  // further causes, counted only
)

// Known maps task IDs to the histories that the caller has read. A nil history marks a task that no longer exists.
type Known map[task.ID]*store.History

// Explainer builds explanations from histories that its caller has read. An explanation follows needs from task to
// task and returns the IDs of missing histories. The caller reads those and asks again until no history is missing.
// Each round goes one task deeper.
type Explainer struct {
	Clock

	// Command returns a command line for a user of the same store and namespace: Command("why", id).
	Command func(args ...string) string

	// Depth is the maximum depth of needs to follow, at least 1. The root cause is named at any depth.
	Depth int

	// Root is the path from the explained task to its root cause, as returned by [RootOf]; nil if unknown.
	Root []*task.Task

	// Pace is that of the explained task, if it is due; nil if it was not read.
	Pace *Pace
}

// Running holds the running tasks of one type.
type Running struct {
	Tasks []task.Task
	More  bool // Tasks is only the first page
}

// Task explains a task. running holds the running tasks of its type; Task uses it only for a ready task. The
// explanation is complete when missing is empty.
func (e *Explainer) Task(h *store.History, running Running, known Known) (x *Explanation, missing []task.ID) {
	t := &h.Task
	walk := *e
	if len(e.Root) > e.Depth { // list only the two ends of the path
		walk.Depth = 1
	}
	w := newWalk(&walk, known)
	w.seen[t.ID] = true
	x = &Explanation{
		Kind: "task", ID: t.ID, JobID: t.JobID, Name: t.Node, Type: t.Type,
		State: string(t.State), Waiting: t.Waiting,
		Root:    e.rootSentence(t, e.Root),
		Summary: text.Stop("It " + e.TaskState(h)),
		Past:    e.Past(h),
		Notes:   e.notes(h),
		Because: w.causes(h, "It", 1),
		Start:   StartOf(h, e.Pace),
	}
	if t.State == task.Pending {
		x.Until = t.ReadyAt
	}
	if t.State == task.Ready {
		x.Notes = slices.Insert(x.Notes, 0, e.workersNote(t, running)+schemaNote(t))
		if x.Start != nil {
			x.Notes = slices.Insert(x.Notes, 0, e.startNote(x.Start))
		}
	}
	if len(e.Root) > e.Depth {
		x.Because = append(x.Because, w.rootCause(e.Root)...)
	}
	x.Actions = w.actions
	return x, w.missing
}

// schemaNote says that a worker with an older handler skips this task.
func schemaNote(t *task.Task) string {
	if t.SchemaVersion <= 1 {
		return ""
	}
	return fmt.Sprintf(" Its input has schema version %d: a worker whose handler reads older ones only leaves it.", t.SchemaVersion)
}

// workersNote says whether tasks of this type run anywhere: the store knows running tasks, not the workers that could
// run more.
func (c Clock) workersNote(t *task.Task, running Running) string {
	n := len(running.Tasks)
	if n == 0 {
		return fmt.Sprintf("No task of type %s is running: look whether a worker is up that handles this type and serves queue %q.", t.Type, text.OneLine(t.Queue, MaxNote))
	}
	count := text.Plural(n, "task")
	if running.More {
		count = fmt.Sprintf("At least %d tasks", n)
	}
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s of its type %s running, for example on %s: it comes when a slot is free and what is due before it has started.",
		count, verb, text.OneLine(running.Tasks[0].LeasedBy, MaxNote)) + c.overdueNote(running)
}
