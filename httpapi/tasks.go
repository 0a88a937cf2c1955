package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// filter reads the parameters that select tasks.
func (c *call) filter() (f weaver.Filter, err error) {
	for _, s := range c.list("state") {
		if !task.State(s).Valid() {
			return f, badParam("state", "%q is no state; the states are %v", s, task.States())
		}
		f.States = append(f.States, task.State(s))
	}
	for _, t := range c.list("type") {
		if err := task.CheckTypeName(t); err != nil {
			return f, badParam("type", "%s", err)
		}
		f.Types = append(f.Types, t)
	}
	f.Queue, f.After = c.get("queue"), c.get("after")
	if text := c.get("job"); text != "" {
		if f.Job, err = task.ParseID(text); err != nil {
			return f, badParam("job", "%s", err)
		}
	}
	f.Limit, err = c.limit(store.MaxLimit)
	return f, err
}

func (c *call) listTasks() error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	list, next, err := c.api.client.List(ctx, f)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Page[Task]{showRows(list), next})
}

// getTask answers with a task, with ?wait= when it has ended, is blocked, or the time is
// up.
func (c *call) getTask() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	wait, err := c.span("wait", c.api.cfg.MaxWait)
	if err != nil {
		return err
	}
	if wait > 0 {
		ctx, cancel := context.WithTimeout(c.r.Context(), wait)
		stop := context.AfterFunc(c.api.ctx, cancel)
		_, err := c.api.client.Wait(ctx, id)
		stop()
		cancel()
		if errors.Is(err, weaver.ErrNotFound) {
			return err
		}
	}
	ctx, cancel := c.context()
	defer cancel()
	t, err := c.api.client.Get(ctx, id)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etagOf(&t))
	return c.write(http.StatusOK, c.showTask(t))
}

// history reads what is recorded about the task of the path, as it may be shown.
func (c *call) history() (h store.History, err error) {
	id, err := c.id()
	if err != nil {
		return h, err
	}
	ctx, cancel := c.context()
	defer cancel()
	if h, err = c.api.client.History(ctx, id); err == nil {
		c.showHistory(&h)
	}
	return h, err
}

// History is all that is recorded about a task but its events, logs and values.
type History struct {
	Task      Task            `json:"task"`
	Attempts  []task.Attempt  `json:"attempts"`
	Decisions []task.Decision `json:"decisions"`
	Steps     []task.Step     `json:"steps"`
	Signals   []task.Signal   `json:"signals"`

	Checkpoints []task.Checkpoint  `json:"checkpoints"`
	Artifacts   []task.Artifact    `json:"artifacts"`
	Needs       []store.Need       `json:"needs"`
	Dependents  []store.Need       `json:"dependents"`
	Audit       []store.AuditEntry `json:"audit"`
	Holders     []task.ID          `json:"key_holders,omitempty"`
	Ahead       task.ID            `json:"key_ahead,omitzero"`
	TaskPause   *store.AuditEntry  `json:"task_pause,omitempty"`
	TypePause   *store.AuditEntry  `json:"type_pause,omitempty"`
	QueuePause  *store.AuditEntry  `json:"queue_pause,omitempty"`
}

func (c *call) taskHistory() error {
	h, err := c.history()
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etagOf(&h.Task))
	return c.write(http.StatusOK, History{
		Task: Task{Task: h.Task, PayloadsHidden: !c.who.Access.Has(Payloads)}, Attempts: listOf(h.Attempts).Items, Decisions: listOf(h.Decisions).Items,
		Steps: listOf(h.Steps).Items, Signals: listOf(h.Signals).Items, Checkpoints: listOf(h.Checkpoints).Items, Artifacts: listOf(h.Artifacts).Items,
		Needs: listOf(h.Needs).Items, Dependents: listOf(h.Dependents).Items, Audit: listOf(h.Audit).Items, Holders: h.Holders, Ahead: h.Ahead,
		TaskPause: h.TaskPause, TypePause: h.TypePause, QueuePause: h.QueuePause,
	})
}

// part makes the handler of one list of the history.
func part[T any](of func(*store.History) []T) func(*call) error {
	return func(c *call) error {
		h, err := c.history()
		if err != nil {
			return err
		}
		return c.write(http.StatusOK, listOf(of(&h)))
	}
}

// payload answers with a value of the task.
func (c *call) payload() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	t, err := c.api.client.Get(ctx, id)
	if err != nil {
		return err
	}
	if t.ValuesDropped {
		return gone(&t)
	}
	redact.Task(&t)
	var v json.RawMessage
	switch what := c.path("what"); what {
	case "input":
		v = t.Input
	case "output":
		v = t.Output
	case "unblock_input":
		v = t.UnblockInput
	default:
		return noRoute.of("A task has no value %q: want input, output or unblock_input.", what)
	}
	if v == nil {
		return noRoute.of("The task has no %s.", c.path("what"))
	}
	return c.write(http.StatusOK, Value{v})
}

// gone says why a task has no values any more.
func gone(t *task.Task) error {
	if t.Forgotten {
		return weaver.ErrForgotten
	}
	return weaver.ErrValuesDropped
}

// stepPayload answers with what a step gave.
func (c *call) stepPayload() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	h, err := c.api.client.History(ctx, id)
	if err != nil {
		return err
	}
	if h.Task.ValuesDropped {
		return gone(&h.Task)
	}
	i := slices.IndexFunc(h.Steps, func(s task.Step) bool { return s.Name == c.path("name") && s.State == task.StepCompleted })
	if i < 0 {
		return weaver.ErrNoSuchStep
	}
	if err := c.load(ctx, &h.Steps[i].Value); err != nil {
		return err
	}
	redact.History(&h)
	v := h.Steps[i].Value
	if v == nil {
		v = json.RawMessage("null")
	}
	return c.write(http.StatusOK, Value{v})
}
