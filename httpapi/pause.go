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

func (c *call) pauseQueue() error {
	return c.pauseNamed(c.knowsQueue, c.api.client.PauseQueue)
}

func (c *call) pauseType() error {
	return c.pauseNamed(c.knowsType, c.api.client.PauseType)
}

// pauseNamed pauses what the path names, if there is such a thing: a pause of a name that is
// mistyped would hold nothing up, and say nothing.
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

// absentName is a problem with a name that nothing has.
func absentName(what, name string, known []string) *Problem {
	slices.Sort(known)
	e := ProblemError{Parameter: "name", Detail: fmt.Sprintf("there is no %s %q", what, name), Meant: nearest(name, slices.Compact(known))}
	if e.Meant != "" {
		e.Detail += fmt.Sprintf(" (did you mean %s?)", e.Meant)
	}
	p := notFound.of("Nothing was paused. With force it is paused before its first task comes.")
	p.Errors = []ProblemError{e}
	return p
}

// knowsQueue reports whether a queue has tasks, a worker that serves it, or a type whose
// tasks wait in it.
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

// knowsType reports whether a task type was announced, or has tasks.
func (c *call) knowsType(ctx context.Context, name string) (bool, *Problem, error) {
	if task.CheckTypeName(name) != nil {
		return true, nil, nil // the pause says so
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
