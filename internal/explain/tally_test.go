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
		tally.Add(s, task.WaitNone, task.KindNone)
	}
	tally.Add(task.Pending, task.WaitRetry, task.KindHandler)
	tally.Add(task.Succeeded, task.WaitNone, task.KindNone)
	tally.Add(task.Cancelled, task.WaitNone, task.KindNotNeeded)
	if got, want := tally.Words(), "1 running, 1 failed, 1 blocked, 1 retrying, 2 succeeded, 1 cancelled, 1 not needed, 1 ready, 1 waiting"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(tally.News()), "[1 running 1 failed 1 blocked 1 retrying 1 cancelled 1 not needed]"; got != want {
		t.Errorf("news: %s, want %s", got, want)
	}
	if tally.Done() != 5 || tally.Total != 10 {
		t.Errorf("%d of %d are done, want 5 of 10", tally.Done(), tally.Total)
	}
}
