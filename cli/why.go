package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// whyCmd is the verb why.
type whyCmd struct {
	ID    string `arg:"" name:"id" help:"A task or a job: its id, the beginning of it, a job's name (the latest) or file, or JOB/TASK."`
	Depth int    `default:"10" placeholder:"N" help:"Over how many tasks to follow needs towards the root cause; default 10."`
}

// Help is shown by why --help.
func (whyCmd) Help() string {
	return "It explains in sentences where the task stands and what it waits for, follows its needs to the root cause, " +
		"lists what each attempt did and what was decided after it, and which commands let it go on."
}

// Run implements the verb.
func (c *whyCmd) Run(ctx context.Context, s *session) error {
	if c.Depth < 1 {
		return badInput("", "--depth %d: want at least 1", c.Depth)
	}
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantAny, c.ID)
		if err != nil {
			return err
		}
		e := explain.Explainer{Clock: s.clock, Command: s.command, Depth: c.Depth}
		x, err := s.explainID(ctx, clientReader{client}, e, id)
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

// explainID finds out whether an ID is a task's or a job's and explains it;
// ErrNotFound.
func (s *session) explainID(ctx context.Context, read reader, e explain.Explainer, id task.ID) (*explain.Explanation, error) {
	h, err := read.History(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return s.explainJob(ctx, read, e, id)
	}
	if err != nil {
		return nil, err
	}
	if e.OfJob, err = jobOf(ctx, read, &h.Task); err != nil {
		return nil, err
	}
	if e.Root, err = rootOf(ctx, read, &h.Task); err != nil {
		return nil, err
	}
	look := []*task.Task{&h.Task}
	if n := len(e.Root); n > 0 {
		look = append(look, e.Root[n-1])
	}
	if err := s.findGone(ctx, read, e.Clock, look...); err != nil {
		return nil, err
	}
	var running explain.Running
	if t := &h.Task; t.State == task.Ready {
		list, next, err := read.List(ctx, weaver.Filter{States: []task.State{task.Running}, Types: []string{t.Type}})
		if err != nil {
			return nil, err
		}
		running = explain.Running{Tasks: list, More: next != ""}
	}
	return s.gather(ctx, read, e.Clock, func(known explain.Known) (*explain.Explanation, []task.ID) {
		return e.Task(&h, running, known)
	})
}

func (s *session) explainJob(ctx context.Context, read reader, e explain.Explainer, id task.ID) (*explain.Explanation, error) {
	st, err := read.JobStatus(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks, err := read.JobTasks(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := s.findGone(ctx, read, e.Clock, pointers(tasks)...); err != nil {
		return nil, err
	}
	e.OfJob = &st.JobInfo
	return s.gather(ctx, read, e.Clock, func(known explain.Known) (*explain.Explanation, []task.ID) {
		x, missing := e.Job(&st.JobInfo, tasks, known)
		if st.Bottleneck != "" {
			x.Notes = slices.Insert(x.Notes, 0, text.Stop("What holds it up: "+st.Bottleneck))
		}
		return x, missing
	})
}

// gather reads the histories that an explanation lacks, until none are
// missing.
func (s *session) gather(ctx context.Context, read reader, c explain.Clock, ask func(explain.Known) (*explain.Explanation, []task.ID)) (*explain.Explanation, error) {
	known := make(explain.Known)
	for {
		x, missing := ask(known)
		if len(missing) == 0 {
			return x, nil
		}
		for _, id := range missing {
			h, err := read.History(ctx, id)
			switch {
			case err == nil:
				known[id] = &h
				if err := s.findGone(ctx, read, c, &h.Task); err != nil {
					return nil, err
				}
			case errors.Is(err, store.ErrNotFound):
				known[id] = nil
			default:
				return nil, err
			}
		}
	}
}
