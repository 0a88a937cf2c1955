package view_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// playMany starts and ends 500 tasks with output; the 100th fails.
func playMany(t *testing.T, quiet bool) string {
	t.Helper()
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("t%03d", i)
	}
	j := view.JobOf(names...)
	var out bytes.Buffer
	m := view.New(view.Config{Out: &out, Format: view.Lines, Zone: time.UTC, Quiet: quiet}, j.Snapshot(), j.Needs)
	m.Note("the job begins")
	for i, name := range names {
		m.Emit(j.Starts(name, view.At(1)))
		m.Emit(event.StreamChunk{Header: j.Head(name, view.At(1)), Stream: "stdout", Data: "noise\n"})
		if i == 99 {
			m.Emit(j.Fails(name, "exit status 3: no card\nIt wrote 2 lines in all, last:\nfirst\nno card", view.At(2)))
			continue
		}
		m.Emit(j.Succeeds(name, view.At(2)))
	}
	j.State = task.JobFailed
	if err := m.Summary(j.Snapshot(), nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// For a job with many tasks, Lines shows each tenth, and failures in full.
func TestLines_OfManyTasks(t *testing.T) {
	t.Parallel()
	got, _, _ := strings.Cut(playMany(t, false), "\n\n") // before the summary
	for _, want := range []string{"the job begins", "50 of 500 tasks have ended (10 %)\n", "t099: failed", "\n  first\n  no card", "100 of 500 tasks have ended (20 %), 1 failed", "500 of 500 tasks have ended (100 %), 1 failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n > 20 || strings.Contains(got, "noise") {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	got := playMany(t, true)
	if strings.Contains(got, "begins") || strings.Contains(got, "%") || !strings.Contains(got, "no card") || !strings.Contains(got, "nightly-report failed after") || strings.Count(got, "\n") > 8 {
		t.Errorf("got:\n%s", got)
	}
}
