package store_test

import (
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestFeedName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    store.FeedKind
		state   task.State
		waiting task.Waiting
		outcome task.Outcome
		want    string
	}{
		{kind: store.FeedEnqueued, state: task.Ready, want: "task.enqueued"},
		{kind: store.FeedStarted, state: task.Running, want: "task.started"},
		{kind: store.FeedEnded, state: task.Succeeded, outcome: task.OutcomeSuccess, want: "task.succeeded"},
		{kind: store.FeedEnded, state: task.Pending, outcome: task.OutcomeFailure, want: "task.retrying"},
		{kind: store.FeedOver, state: task.Blocked, want: "task.blocked"},
		{kind: store.FeedReopened, state: task.Ready, want: "task.reopened"},
		{kind: store.FeedSettled, state: "failed", want: "job.settled"},
		{kind: "of a newer program", state: task.Succeeded, want: ""},
		{kind: "", want: ""},
	} {
		if got := store.FeedName(c.kind, string(c.state), c.waiting, c.outcome); got != c.want {
			t.Errorf("FeedName(%q, %q, %q, %q) = %q, want %q", c.kind, c.state, c.waiting, c.outcome, got, c.want)
		}
	}
	row := store.FeedRow{Kind: "of a newer program"}
	row.Name = store.FeedName(row.Kind, row.State, row.Waiting, row.Outcome)
	for _, names := range [][]string{{"task.enqueued"}, {"task.*"}} {
		if req := (store.FeedRequest{Names: names}); req.Passes(&row) {
			t.Errorf("a row of a kind that is not known passes for %q", names)
		}
	}
}
