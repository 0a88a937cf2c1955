package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/typo"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var jobStates = []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled}

type jobsInput struct {
	States []string `json:"states,omitempty" jsonschema:"any of: running, blocked, succeeded, failed, cancelled"`
	Name   string   `json:"name,omitempty" jsonschema:"jobs of this name only"`
	Limit  int      `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; default 20"`
	After  string   `json:"after,omitempty" jsonschema:"go on where a page before ended: its next"`
}

// jobRow is a job in a list.
type jobRow struct {
	ID         task.ID       `json:"id"`
	Name       string        `json:"name"`
	State      task.JobState `json:"state"`
	Tasks      int           `json:"tasks"`
	Unfinished int           `json:"unfinished"`
	Succeeded  int           `json:"succeeded"`
	Failed     int           `json:"failed"`
	Cancelling bool          `json:"cancel_requested,omitempty"`
	Created    time.Time     `json:"created"`
	Finished   time.Time     `json:"finished,omitzero"`
}

func (t tools) jobs(ctx context.Context, in jobsInput) (string, error) {
	f := store.JobFilter{Name: in.Name, Limit: in.Limit, After: in.After}
	switch {
	case in.Limit == 0:
		f.Limit = defaultRows
	case in.Limit < 0 || in.Limit > maxRows:
		return "", say("limit %d: want 1 to %d; next goes on behind them", in.Limit, maxRows)
	}
	for _, name := range in.States {
		state := task.JobState(name)
		if !slices.Contains(jobStates, state) {
			return "", say("unknown job state %q%s; the states are %v", short(name, 64), didYouMean(name, jobStates), jobStates)
		}
		f.States = append(f.States, state)
	}
	list, next, err := t.Client.Jobs(ctx, f)
	if err != nil {
		return "", err
	}
	p := page[jobRow]{Items: make([]jobRow, len(list)), Next: next}
	for i := range list {
		j := &list[i]
		p.Items[i] = jobRow{j.ID, short(j.Name, maxMessage), j.State, j.Counters.Total, j.Counters.Unfinished, j.Counters.Succeeded, j.Counters.Failed, j.CancelRequested, j.CreatedAt, j.FinishedAt}
	}
	if len(list) == 0 && in.Name != "" && in.After == "" {
		newest, _, err := t.Client.Jobs(ctx, store.JobFilter{Limit: maxRows})
		if err != nil {
			return "", err
		}
		var known []string
		for i := range newest {
			known = append(known, newest[i].Name)
		}
		p.Note = fmt.Sprintf("no such job has the name %q%s", short(in.Name, 64), didYouMean(in.Name, known))
	}
	return text(p)
}

// noneOf suggests corrections for a filter that matches no task: unknown task types and empty queues.
func (t tools) noneOf(ctx context.Context, in *listInput) string {
	var notes []string
	if known, err := t.Types(ctx); err == nil {
		for _, name := range in.Types {
			if !strings.HasSuffix(name, "*") && !slices.Contains(known, name) {
				notes = append(notes, fmt.Sprintf("no worker or program here has the task type %q%s", short(name, 64), didYouMean(name, known)))
			}
		}
	}
	if queues, err := t.Client.Queues(ctx); in.Queue != "" && err == nil {
		var known []string
		for _, q := range queues {
			known = append(known, q.Name)
		}
		if !slices.Contains(known, in.Queue) {
			notes = append(notes, fmt.Sprintf("in the queue %q nothing waits or runs%s", short(in.Queue, 64), didYouMean(in.Queue, known)))
		}
	}
	return strings.Join(notes, "; ")
}

// didYouMean suggests the nearest known word, if one is near.
func didYouMean[S ~string](word string, known []S) string {
	best, least := "", 3
	for _, k := range known {
		if d := typo.Distance(strings.ToLower(word), strings.ToLower(string(k)), 2); d < least && d < len(word) {
			best, least = string(k), d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", short(best, 64))
}
