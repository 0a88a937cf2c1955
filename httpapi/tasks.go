package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// query parses the parameters that select tasks: those of Filter's fields, and q, which may overlap
// with them. All conditions apply.
func (c *call) query() (ops.Query, error) {
	f, err := c.filter()
	if err != nil {
		return ops.Query{}, err
	}
	q, p := c.parseQuery(c.get("q"))
	if p != nil {
		p.Errors[0].Parameter = "q"
		return q, p
	}
	return q.And(f), nil
}

// parseQuery parses the text of a query. Its problem has exactly one of Errors, to which the caller
// adds the place of the text. A query about values is rejected for principals that may not read
// them, because its matches would reveal them.
func (c *call) parseQuery(text string) (ops.Query, *Problem) {
	wrong := func(k problemKind, title string, e ProblemError) *Problem {
		p := k.of("%s", title)
		p.Errors = []ProblemError{e}
		return p
	}
	if len(text) > c.api.cfg.MaxQuery {
		return ops.Query{}, wrong(invalidQuery, "The query is too long.", ProblemError{Detail: fmt.Sprintf("it has %d bytes: at most %d are read", len(text), c.api.cfg.MaxQuery)})
	}
	q, err := ops.ParseQuery(text, time.Now())
	var mistake *ops.QueryError
	switch {
	case errors.As(err, &mistake):
		return q, wrong(invalidQuery, err.Error(), ProblemError{Column: mistake.Column, Detail: mistake.What, Meant: mistake.Meant, Words: mistake.Words})
	case err != nil:
		return q, wrong(invalidQuery, err.Error(), ProblemError{Detail: err.Error()})
	case q.AsksForValues() && !c.who.Access.Has(Payloads):
		return q, wrong(forbidden, fmt.Sprintf("A query about input or output needs the access %s, and %q has %s.", Payloads, c.who.Name, c.who.Access), ProblemError{Detail: "it asks for values"})
	}
	return q, nil
}

// filter parses the parameters of Filter's fields.
func (c *call) filter() (f weaver.Filter, err error) {
	for _, s := range c.list("state") {
		if !task.State(s).Valid() {
			return f, badParam("state", "%q is not a state: use one of %v", s, task.States())
		}
		f.States = append(f.States, task.State(s))
	}
	f.Types, f.Queue, f.After = c.list("type"), c.get("queue"), c.get("after")
	for _, w := range c.list("waiting") {
		if !slices.Contains(task.Waitings(), task.Waiting(w)) {
			return f, badParam("waiting", "%q is not a reason to wait: use one of %v", w, task.Waitings())
		}
		f.Waiting = append(f.Waiting, task.Waiting(w))
	}
	for _, k := range c.list("error") {
		if !slices.Contains(task.ErrorKinds(), task.ErrorKind(k)) {
			return f, badParam("error", "%q is not a kind of error: use one of %v", k, task.ErrorKinds())
		}
		f.ErrorKinds = append(f.ErrorKinds, task.ErrorKind(k))
	}
	for _, text := range c.r.URL.Query()["label"] {
		key, value, found := strings.Cut(text, "=")
		if has, again := f.Labels[key]; !found || key == "" || again && has != value {
			return f, badParam("label", "%q: want KEY=VALUE, and each key once", text)
		}
		if f.Labels == nil {
			f.Labels = make(map[string]string)
		}
		f.Labels[key] = value
	}
	if f.CreatedAfter, err = c.instant("created_after"); err != nil {
		return f, err
	}
	if f.CreatedBefore, err = c.instant("created_before"); err != nil {
		return f, err
	}
	if f.Job, err = c.idParam("job"); err != nil {
		return f, err
	}
	if f.Parent, err = c.idParam("parent"); err != nil {
		return f, err
	}
	f.Limit, err = c.limit(store.MaxLimit)
	return f, err
}

// instant parses a time from the query; zero if it is missing.
func (c *call) instant(name string) (at time.Time, err error) {
	text := c.get(name)
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, badParam(name, "%q: want a time like 2026-01-02T03:04:05Z", text)
	}
	if at.Before(time.Unix(0, 0)) { // the zero time means a missing one
		return at, badParam(name, "%q is before 1970: is it a time that was not set?", text)
	}
	return at, nil
}

// wait implements ?wait=: it returns when the time is up or done has returned.
func (c *call) wait(done func(ctx context.Context, opts ...weaver.WaitOption) error) error {
	wait, err := c.span("wait", c.api.cfg.MaxWait)
	if err != nil {
		return err
	}
	var opts []weaver.WaitOption
	switch through, err := c.is("through_blocked"); {
	case err != nil:
		return err
	case through:
		opts = append(opts, weaver.WaitThroughBlocked())
	}
	if wait == 0 {
		return nil
	}
	release, err := c.api.long.take(c.api.cfg.longLimits(), c.who.Name)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	stop := context.AfterFunc(c.api.ctx, cancel)
	defer stop()
	if err := done(ctx, opts...); errors.Is(err, weaver.ErrNotFound) {
		return err
	}
	return nil // the response is read afterwards
}

// idParam parses an ID from the query; zero if it is missing.
func (c *call) idParam(name string) (id task.ID, err error) {
	text := c.get(name)
	if text == "" {
		return id, nil
	}
	if id, err = task.ParseID(text); err != nil {
		return id, badParam(name, "%s", err)
	}
	return id, nil
}

// search answers with the tasks that a query asks for.
func (c *call) search(ctx context.Context, q ops.Query) error {
	page, err := c.api.client.Search(ctx, q)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, Found{Items: showRows(page.Items), Scanned: page.Scanned, OldestSeen: page.OldestSeen, Unread: page.Unread, Next: page.Next})
}

func (c *call) listTasks() error {
	q, err := c.query()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	return c.search(ctx, q)
}

// getTask writes a task, with ?wait= when it has ended, is blocked, or the time is up.
func (c *call) getTask() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	err = c.wait(func(ctx context.Context, opts ...weaver.WaitOption) error {
		_, err := c.api.client.Wait(ctx, id, opts...)
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	t, err := c.task(ctx, id)
	if err != nil {
		return err
	}
	c.w.Header().Set("ETag", etagOf(&t))
	return c.write(http.StatusOK, c.showTask(t))
}

// history reads the visible records of the task in the path.
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

// History holds all records of a task except its events, logs and values.
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

// part returns the handler of one list of the history.
func part[T any](of func(*store.History) []T) func(*call) error {
	return func(c *call) error {
		h, err := c.history()
		if err != nil {
			return err
		}
		return c.write(http.StatusOK, listOf(of(&h)))
	}
}

// payload writes a value of the task.
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
		return notFound.of("A task has no value %q: want input, output or unblock_input.", what)
	}
	if v == nil {
		return notFound.of("The task has no %s.", c.path("what"))
	}
	return c.write(http.StatusOK, Value{v})
}

// gone returns the reason for which a task has no values any more.
func gone(t *task.Task) error {
	if t.Forgotten {
		return weaver.ErrForgotten
	}
	return weaver.ErrValuesDropped
}

// stepPayload writes the result of a step.
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
	i := slices.IndexFunc(h.Steps, func(s task.Step) bool { return s.Name == c.path("name") && s.State == task.StepCompleted && !s.Past() })
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
