package httpapi

import (
	"net/http"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// taskChildren lists the tasks that a task stored, newest first.
func (c *call) taskChildren() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	q, err := c.query()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	if _, err := taskRow(ctx, c.api.client, id); err != nil {
		return err
	}
	return c.search(ctx, q.And(weaver.Filter{Parent: id}))
}

// DeletedJob is the result of deleting a job.
type DeletedJob struct {
	Tasks int `json:"tasks"` // number of tasks deleted with it
}

func (c *call) deleteJob() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	n, err := c.api.client.DeleteJob(ctx, id, c.operator("")...)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, DeletedJob{n})
}

// graph reads a page of a job's graph.
func (c *call) graph(most, otherwise int) (g store.Graph, err error) {
	id, err := c.id()
	if err != nil {
		return g, err
	}
	limit, err := c.limit(most)
	if err != nil {
		return g, err
	}
	if limit == 0 {
		limit = otherwise
	}
	ctx, cancel := c.context()
	defer cancel()
	if g, err = c.api.client.Graph(ctx, store.GraphRequest{Job: id, After: c.get("after"), Limit: limit}); err != nil {
		return g, err
	}
	g.Nodes, g.Edges = listOf(g.Nodes).Items, listOf(g.Edges).Items
	return g, nil
}

func (c *call) jobGraph() error {
	g, err := c.graph(store.MaxGraph, store.MaxGraph)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, g)
}

// Timeline is a page of the attempts of a job's tasks.
type Timeline struct {
	At    time.Time `json:"at"`    // the server's time, at which the bars of running attempts end
	Items []Bar     `json:"items"` // ordered by task, oldest first, then by attempt
	Next  string    `json:"next,omitempty"`
}

// Bar is one attempt.
type Bar struct {
	TaskID  task.ID        `json:"task_id"`
	Node    string         `json:"node,omitempty"`
	Type    string         `json:"task_type"`
	Attempt int            `json:"attempt_no"`
	Worker  string         `json:"worker,omitempty"`
	Started time.Time      `json:"started_at"`
	Ended   time.Time      `json:"ended_at,omitzero"` // left out while it runs
	Outcome task.Outcome   `json:"outcome,omitempty"`
	Error   task.ErrorKind `json:"error_kind,omitempty"`
}

// Tasks on one page of a timeline: each task that has begun is a separate read.
const (
	timelineTasks    = 50
	maxTimelineTasks = 200
)

func (c *call) jobTimeline() error {
	g, err := c.graph(maxTimelineTasks, timelineTasks)
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	t := Timeline{At: time.Now().UTC(), Items: []Bar{}, Next: g.Next}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Attempts == 0 {
			continue
		}
		h, err := c.api.client.History(ctx, n.ID)
		if err != nil {
			return err
		}
		for j := range h.Attempts {
			a := &h.Attempts[j]
			b := Bar{TaskID: n.ID, Node: n.Node, Type: n.Type, Attempt: a.No, Worker: a.Worker, Started: a.StartedAt, Ended: a.FinishedAt, Outcome: a.Outcome}
			if a.Error != nil {
				b.Error = a.Error.Kind
			}
			t.Items = append(t.Items, b)
		}
	}
	return c.write(http.StatusOK, t)
}
