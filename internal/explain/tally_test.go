package explain_test

import (
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
)

func TestTally(t *testing.T) {
	t.Parallel()
	var tally explain.Tally
	if got := tally.Words(); got != "" || len(tally.News()) != 0 {
		t.Errorf("of no tasks: %q, %v", got, tally.News())
	}
	for _, s := range task.States() {
		tally.Add(task.End{State: s}, task.WaitNone)
	}
	tally.Add(task.End{State: task.Pending, Kind: task.KindHandler}, task.WaitRetry)
	tally.Add(task.End{State: task.Succeeded}, task.WaitNone)
	tally.Add(task.End{State: task.Cancelled, Kind: task.KindNotNeeded}, task.WaitNone)
	tally.Add(task.End{State: task.Failed, AllowFailure: true}, task.WaitNone)
	if got, want := tally.Words(), "1 running, 1 failed, 1 blocked, 1 retrying, 2 succeeded, 1 cancelled, 1 failed as allowed, 1 not needed, 1 ready, 1 waiting"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(tally.News()), "[1 running 1 failed 1 blocked 1 retrying 1 cancelled 1 failed as allowed 1 not needed]"; got != want {
		t.Errorf("news: %s, want %s", got, want)
	}
	if tally.Done() != 6 || tally.Total != 11 {
		t.Errorf("%d of %d are done, want 6 of 11", tally.Done(), tally.Total)
	}
}
