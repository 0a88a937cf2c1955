package weaver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// maskFeed masks redacted values in errors. Lines, chunks and progress were masked when they were
// recorded.
func (c *Client) maskFeed(ctx context.Context, rows []store.FeedRow) error {
	var ids []task.ID
	seen := map[task.ID]bool{}
	for i := range rows {
		if r := &rows[i]; r.Error != nil && len(r.Redact) > 0 && !seen[r.Task] {
			seen[r.Task] = true
			ids = append(ids, r.Task)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	tasks, err := c.store.Tasks(ctx, c.ns, ids...)
	if err != nil {
		return err
	}
	texts := make(map[task.ID][]string, len(tasks))
	for i := range tasks {
		texts[tasks[i].ID] = redact.Secrets(&store.History{Task: tasks[i]})
	}
	for i := range rows {
		if r := &rows[i]; len(r.Redact) > 0 {
			r.Error = redact.Error(r.Error, texts[r.Task])
		}
	}
	return nil
}

// feedEvent builds the event of a row. known is false for a row of a newer program, which is skipped.
func (c *Client) feedEvent(row *store.FeedRow) (ev event.FeedEvent, known bool) {
	ev = event.FeedEvent{Cursor: eventCursor(row.Pos), Queue: row.Queue}
	h := event.Header{
		At: row.At, Namespace: c.ns, TaskID: row.Task, TaskType: row.Type, JobID: row.Job, Node: row.Node, AttemptNo: row.AttemptNo,
	}
	var err error
	switch row.Kind {
	case store.FeedSettled:
		ev.Event = event.JobSettled{
			JobHeader: event.JobHeader{At: row.At, Namespace: c.ns, JobID: row.Job, Name: row.JobName},
			State:     task.JobState(row.State), Counters: row.Counters, Duration: took(row),
		}
		switch {
		case row.StartedAt.IsZero():
			ev.Problem = "the job was deleted"
		case row.Counters.Total == 0:
			ev.Problem = "the job has changed since: the counters of then are not known"
		}
	case store.FeedEvent, store.FeedLog:
		h.Sequence = row.Event.Seq
		ev.Event, ev.Problem, err = storedEvent(h, &row.Event)
	default:
		ev.Event, ev.Problem = lifeEvent(h, row), unquoted(row)
	}
	if row.Gone {
		ev.Problem = "the task was deleted"
	}
	return ev, err == nil && ev.Event != nil
}

// storedEvent builds the event of an event row, with only its header if the rest cannot be read.
func storedEvent(h event.Header, row *store.EventRow) (ev event.Event, problem string, err error) {
	body := row.Body
	if len(body) == 0 {
		body, problem = json.RawMessage(`{}`), "what it said is erased"
	} else if err := seal.Failure(body); err != nil {
		body, problem = json.RawMessage(`{}`), "what it said cannot be read: "+err.Error()
	}
	ev, err = event.Decode(row.Type, h, body)
	return ev, problem, err
}

// took returns the duration of the attempt or job; 0 if unknown.
func took(row *store.FeedRow) time.Duration {
	if row.StartedAt.IsZero() {
		return 0
	}
	return max(0, row.At.Sub(row.StartedAt))
}

// unquoted says why the event of a row about a task itself is incomplete; "" if it is complete.
func unquoted(row *store.FeedRow) string {
	switch {
	case row.Kind == store.FeedEnded && row.StartedAt.IsZero():
		return "the attempt was deleted"
	case row.Kind == store.FeedOver && row.Error == nil && row.State != string(task.Succeeded):
		return "why it ended is not kept: the task has changed since"
	}
	return ""
}

// lifeEvent builds the event of a row about a task itself, with the number that Subscribe gives it;
// nil if a newer program wrote the row.
func lifeEvent(h event.Header, row *store.FeedRow) event.Event {
	switch row.Kind {
	case store.FeedEnqueued:
		h.Sequence = event.FirstSequence(0)
		return event.TaskEnqueued{Header: h, Queue: row.Queue}
	case store.FeedStarted:
		h.Sequence = event.FirstSequence(row.Epoch)
		return event.TaskStarted{Header: h}
	case store.FeedReopened: // not an event of an attempt, so it has no number
		return event.TaskReopened{Header: h}
	case store.FeedOver:
		h.AttemptNo = 0
	case store.FeedEnded:
	default:
		return nil
	}
	end := event.Ending{
		Outcome: row.Outcome, State: task.State(row.State), Waiting: row.Waiting, Error: row.Error, Allowed: row.AllowFailure,
		WakeAt: row.NextReadyAt, Delay: max(0, row.NextReadyAt.Sub(row.At)), Duration: took(row),
	}
	h.Sequence = end.Sequence(row.Epoch)
	return end.Event(h)
}
