package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/explainread"
	"github.com/goweaver/weaver/task"
)

// Explanation is the reason for the present state of a task or job, and the possible actions, as in
// `weaver why`.
type Explanation struct {
	Title string `json:"title"`
	explain.Explanation
	Actions []Action `json:"actions"`
}

// Action is a possible action, as a command line and as a request.
type Action struct {
	explain.Action
	Request *ActionRequest `json:"request,omitempty"` // left out if it cannot be done over HTTP
}

// ActionRequest is the HTTP request of an action.
type ActionRequest struct {
	Method string        `json:"method"`
	Path   string        `json:"path"`            // relative to the root of the API, without a leading slash
	Body   *explain.Args `json:"body,omitempty"`  // left out without a body
	Input  string        `json:"input,omitempty"` // the body's field for the value that a person enters
}

// Limits of the depth of an explanation.
const (
	defaultExplained = 10
	maxExplained     = 100
)

func (c *call) taskWhy() error { return c.why(explainread.Reader.ExplainTask) }
func (c *call) jobWhy() error  { return c.why(explainread.Reader.ExplainJob) }

func (c *call) why(of func(explainread.Reader, context.Context, explain.Explainer, task.ID) (*explain.Explanation, error)) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	depth := defaultExplained
	if text := c.get("depth"); text != "" {
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 || depth > maxExplained {
			return badParam("depth", "%q: want a number from 1 to %d", text, maxExplained)
		}
	}
	ctx, cancel := c.context()
	defer cancel()
	client := c.api.client
	command := explainread.Command("weaver", client.Namespace())
	read := explainread.Reader{
		Source:   explainread.Masked{Client: client},
		TakeOver: func(*weaver.JobInfo) []string { return []string{command("worker")} },
	}
	x, err := of(read, ctx, explain.Explainer{Clock: explain.Clock{Now: time.Now(), Zone: time.UTC}, Command: command, Depth: depth}, id)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, explanationOf(x))
}

// undoPlan writes the undo plan of a task.
func (c *call) undoPlan() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	plan, err := c.api.client.UndoPlan(ctx, id)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, plan)
}

func explanationOf(x *explain.Explanation) Explanation {
	shown := Explanation{Title: x.Title(), Explanation: *x, Actions: make([]Action, len(x.Actions))}
	for i, a := range x.Actions {
		shown.Actions[i] = Action{Action: a}
		method, path := a.HTTP()
		if method == "" {
			continue
		}
		r := &ActionRequest{Method: method, Path: strings.TrimPrefix(path, "/"), Input: a.InputName()}
		if method != get {
			r.Body = &a.Args
		}
		shown.Actions[i].Request = r
	}
	return shown
}
