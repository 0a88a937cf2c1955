package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// whyCmd is the verb why.
type whyCmd struct {
	ID    string `arg:"" name:"id" help:"A task or a job."`
	Depth int    `default:"10" placeholder:"N" help:"How far to follow needs towards the root cause."`
}

// Help is shown by why --help.
func (whyCmd) Help() string {
	return "It tells in sentences where the task stands and what it waits for, follows its needs to the root cause, " +
		"tells what each attempt did and what was decided after it, and which commands let it go on."
}

// Run implements the verb.
func (c *whyCmd) Run(ctx context.Context, s *session) error {
	id, err := parseID(c.ID)
	if err != nil {
		return err
	}
	if c.Depth < 1 {
		return badInput("", "--depth %d: want at least 1", c.Depth)
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		e := explainer{read: client, clock: s.clock, command: s.command, depth: c.Depth}
		x, err := e.explain(ctx, id)
		switch {
		case err != nil:
			return s.absent(ctx, client, "task or job", id, err)
		case s.json():
			return s.writeJSON(x)
		}
		s.printExplanation(x)
		return nil
	})
}

// explanation is why a task or job stands where it does.
type explanation struct {
	Kind    string       `json:"kind"` // task or job
	ID      task.ID      `json:"id"`
	JobID   task.ID      `json:"job_id,omitzero"`
	Name    string       `json:"name,omitempty"` // of the job, or of the task inside its job
	Type    string       `json:"task_type,omitempty"`
	State   string       `json:"state"`
	Waiting task.Waiting `json:"waiting_reason,omitempty"`
	Until   time.Time    `json:"until,omitzero"` // when it goes on by itself, if that is known
	Summary string       `json:"summary"`
	Because []cause      `json:"because,omitempty"`
	Past    []happening  `json:"past,omitempty"`
	Notes   []string     `json:"notes,omitempty"`
	Actions []action     `json:"actions,omitempty"` // what a person can do
}

// cause is one reason behind a state, with the reasons behind it.
type cause struct {
	Kind     causeKind  `json:"kind"`
	TaskID   task.ID    `json:"task_id,omitzero"`
	State    task.State `json:"state,omitempty"`
	Sentence string     `json:"sentence"`
	Because  []cause    `json:"because,omitempty"`
}

type causeKind string

const (
	causeNeed  causeKind = "need"  // a task that it waits for, or that failed it
	causeKey   causeKind = "key"   // who holds its concurrency key
	causePause causeKind = "pause" // who paused its queue
	causeTask  causeKind = "task"  // a task of the job
	causeMore  causeKind = "more"  // what was left out
)

// action is a command that changes where a task stands.
type action struct {
	Command string `json:"command"`
	Effect  string `json:"effect"`
}

// reader is what explaining needs of a client.
type reader interface {
	Get(context.Context, weaver.TaskID) (weaver.TaskInfo, error)
	History(context.Context, weaver.TaskID) (weaver.History, error)
	List(context.Context, weaver.Filter) ([]weaver.TaskInfo, string, error)
	JobStatus(context.Context, weaver.JobID) (weaver.JobStatus, error)
}

// explainer makes one explanation.
type explainer struct {
	read    reader
	clock   clock
	command func(args ...string) string
	depth   int // how far needs are followed

	seen    map[task.ID]bool // tasks that were explained already: needs may form a diamond
	actions []action
}

// explain finds out what an id is and explains it; ErrNotFound.
func (e *explainer) explain(ctx context.Context, id task.ID) (*explanation, error) {
	e.seen = make(map[task.ID]bool)
	h, err := e.read.History(ctx, id)
	switch {
	case err == nil:
		return e.task(ctx, &h)
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	st, err := e.read.JobStatus(ctx, id)
	if err != nil {
		return nil, err
	}
	return e.job(ctx, &st)
}

// task explains a task.
func (e *explainer) task(ctx context.Context, h *store.History) (*explanation, error) {
	t := &h.Task
	e.seen[t.ID] = true
	x := &explanation{
		Kind: "task", ID: t.ID, JobID: t.JobID, Name: t.Node, Type: t.Type,
		State: string(t.State), Waiting: t.Waiting, Until: t.ReadyAt,
		Summary: text.Stop("It " + e.clock.standing(h)),
		Past:    e.past(h),
		Notes:   e.notes(h),
	}
	if t.State != task.Pending {
		x.Until = time.Time{}
	}
	var err error
	if x.Because, err = e.causes(ctx, h, "It", 1); err != nil {
		return nil, err
	}
	if t.State == task.Ready {
		text, err := e.workers(ctx, t)
		if err != nil {
			return nil, err
		}
		x.Notes = append([]string{text}, x.Notes...)
	}
	x.Actions = e.actions
	return x, nil
}

// workers tells whether somebody runs tasks like this one: the store knows
// what runs, not who could.
func (e *explainer) workers(ctx context.Context, t *task.Task) (string, error) {
	running, next, err := e.read.List(ctx, weaver.Filter{States: []task.State{task.Running}, Types: []string{t.Type}})
	if err != nil {
		return "", err
	}
	if len(running) == 0 {
		return fmt.Sprintf("No task of type %s is running: look whether a worker is up that handles this type and serves queue %q.", t.Type, oneLine(t.Queue, maxNote)), nil
	}
	count := text.Plural(len(running), "task")
	if next != "" {
		count = fmt.Sprintf("At least %d tasks", len(running))
	}
	verb := "are"
	if len(running) == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s of its type %s running, for example on %s: it comes when a slot is free and what is due before it has started.", count, verb, oneLine(running[0].LeasedBy, maxNote)), nil
}
