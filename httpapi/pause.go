package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// pauseRequest is the body of a pause of a queue or task type.
func (c *call) pauseQueue() error {
	return c.pauseNamed(c.knowsQueue, c.api.client.PauseQueue)
}

func (c *call) pauseType() error {
	return c.pauseNamed(c.knowsType, c.api.client.PauseType)
}

// pauseNamed pauses the queue or type in the path if it exists: a pause of a mistyped name would
// silently have no effect.
func (c *call) pauseNamed(known func(ctx context.Context, name string) (bool, *Problem, error), pause func(ctx context.Context, name string, opts ...weaver.OperateOption) error) error {
	var body pauseRequest
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	name := c.path("name")
	if wellFormed := name != "" && strings.ToValidUTF8(name, "") == name && !strings.ContainsFunc(name, unicode.IsControl); wellFormed && !body.Force {
		there, absent, err := known(ctx, name)
		switch {
		case err != nil:
			return err
		case !there:
			return absent
		}
	}
	if err := pause(ctx, name, c.operator(body.Reason)...); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// absentName returns the problem of an unknown name.
func absentName(what, name string, known []string) *Problem {
	slices.Sort(known)
	e := ProblemError{Parameter: "name", Detail: fmt.Sprintf("there is no %s %q", what, name), Meant: nearest(name, slices.Compact(known))}
	if e.Meant != "" {
		e.Detail += fmt.Sprintf(" (did you mean %s?)", e.Meant)
	}
	p := notFound.of("Nothing was paused. Set force to pause it before its first task exists.")
	p.Errors = []ProblemError{e}
	return p
}

// knowsQueue reports whether a queue has tasks, a worker, or a type whose tasks wait in it.
func (c *call) knowsQueue(ctx context.Context, name string) (bool, *Problem, error) {
	known := []string{task.DefaultQueue}
	queues, err := c.api.client.Queues(ctx)
	if err != nil {
		return false, nil, err
	}
	for _, q := range queues {
		if q.Type == "" {
			known = append(known, q.Name)
		}
	}
	types, err := c.api.client.Types(ctx)
	if err != nil {
		return false, nil, err
	}
	for i := range types {
		known = append(known, types[i].Defaults.Queue)
	}
	if slices.Contains(known, name) {
		return true, nil, nil
	}
	found, _, err := c.api.client.List(ctx, weaver.Filter{Queue: name, Limit: 1})
	return len(found) > 0, absentName("queue", name, known), err
}

// knowsType reports whether a task type was announced or has tasks.
func (c *call) knowsType(ctx context.Context, name string) (bool, *Problem, error) {
	if task.CheckTypeName(name) != nil {
		return true, nil, nil // a paused type is known
	}
	types, err := c.api.client.Types(ctx)
	if err != nil {
		return false, nil, err
	}
	paused, err := c.api.client.Queues(ctx)
	if err != nil {
		return false, nil, err
	}
	var known []string
	for i := range types {
		known = append(known, types[i].Name)
	}
	for _, q := range paused {
		if q.Type != "" {
			known = append(known, q.Type)
		}
	}
	if slices.Contains(known, name) {
		return true, nil, nil
	}
	found, _, err := c.api.client.List(ctx, weaver.Filter{Types: []string{name}, Limit: 1})
	return len(found) > 0, absentName("task type", name, known), err
}
