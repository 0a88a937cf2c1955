package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

func (j *Job) summary(columns int, now time.Time) *summary {
	return &summary{st: j.Snapshot(), needs: j.Needs, columns: columns, now: now, logs: func(t *task.Task) string { return "weaver logs J/" + t.Node }}
}

// failedJob returns a job of 7 tasks with a failure.
func failedJob() *Job {
	j := JobOf("fetch", "load", "clean < fetch", "翻訳する < fetch", "report < clean load", "mail < report", "archive < load")
	run := func(name string, from, to float64) {
		j.Starts(name, At(from))
		j.Succeeds(name, At(to))
	}
	run("fetch", 0, 1.2)
	run("load", 0, 0.25)
	run("翻訳する", 1.2, 3)
	run("archive", 0.3, 0.4)
	j.Starts("clean", At(1.2))
	j.Retries("clean", "no", time.Second, At(2))
	j.Starts("clean", At(3))
	var lines []string
	for i := 10; i < 30; i++ {
		lines = append(lines, fmt.Sprintf("line %d\x1b[31m", i))
	}
	j.Fails("clean", "exit status 3: line 29\nIt wrote 900 lines in all, last:\n"+strings.Join(lines, "\n")+"\n", At(5.1))
	j.State, j.FinishedAt = task.JobFailed, At(5.1)
	return j
}

func TestSummary(t *testing.T) {
	t.Parallel()
	wide := failedJob().summary(80, At(99)).text()
	want := `
TASK      STATE      ATTEMPTS  TOOK
clean     failed     2         2.1s   ####################
翻訳する  succeeded  1         1.8s   #################
fetch     succeeded  1         1.2s   ###########
load      succeeded  1         250ms  ##
archive   succeeded  1         100ms  #
report    cancelled  0
mail      cancelled  0

Critical path: fetch 1.2s → clean 2.1s (3.3s of 5.1s)

clean failed in attempt 2:
  exit status 3: line 29
  … 881 lines: ` + "`weaver logs J/clean`" + `
  line 11
  line 12
  line 13
  line 14
  line 15
  line 16
  line 17
  line 18
  line 19
  line 20
  line 21
  line 22
  line 23
  line 24
  line 25
  line 26
  line 27
  line 28
  line 29

nightly-report failed after 5.1s: 1 of 7 tasks failed, 2 were cancelled.
`
	if wide != want {
		t.Errorf("80 columns:\n%s\nwant:\n%s", wide, want)
	}
	slim := failedJob().summary(40, At(99)).text()
	table, _, _ := strings.Cut(slim, "\n\nclean failed")
	want = `
TASK      STATE      ATTEMPTS  TOOK
clean     failed     2         2.1s
翻訳する  succeeded  1         1.8s
fetch     succeeded  1         1.2s
load      succeeded  1         250ms
archive   succeeded  1         100ms
report    cancelled  0
mail      cancelled  0

Critical path: fetch 1.2s → clean 2.1s
  (3.3s of 5.1s)`
	if table != want {
		t.Errorf("40 columns:\n%s\nwant:\n%s", table, want)
	}
	painted := failedJob().summary(80, At(99))
	painted.paint.On = true
	if all := painted.text(); !strings.Contains(all, "\x1b[31mfailed\x1b[0m") || strings.Join(text.Lines(all), "\n")+"\n" != wide {
		t.Errorf("with colours:\n%s", all)
	}
}

func TestSummaryFits(t *testing.T) {
	t.Parallel()
	var tasks []string
	for i := range 300 {
		tasks = append(tasks, fmt.Sprintf("a-task-with-a-long-name-日本語-%03d", i))
	}
	j := JobOf(tasks...)
	for i, name := range tasks {
		j.Starts(name, At(0))
		switch {
		case i%100 == 50:
			j.Fails(name, "no", At(1))
		case i%100 == 51:
			j.Blocks(name, "who?", At(1))
		default:
			j.Succeeds(name, At(float64(i)))
		}
	}
	for columns := 40; columns <= 130; columns++ {
		var b strings.Builder
		j.summary(columns, At(400)).table(&b)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != maxRows+2 || lines[len(lines)-1] != "and 260 more" {
			t.Errorf("%d columns: %d lines, the last is %q", columns, len(lines), lines[len(lines)-1])
		}
		for _, line := range lines {
			if text.Width(line) > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns: a line of %d: %q", columns, text.Width(line), line)
			}
		}
		for i, want := range []string{"-050", "-150", "-250", "-051", "-151", "-251", "-299", "-298"} {
			if columns >= 62 && !strings.Contains(lines[1+i], want) {
				t.Errorf("%d columns: row %d is %q, want %s", columns, i, lines[1+i], want)
			}
		}
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	var tasks []string
	for i := range 13 {
		tasks = append(tasks, fmt.Sprint("t", i))
	}
	j := JobOf(tasks...)
	for _, name := range tasks {
		j.Starts(name, At(0))
		j.Fails(name, "no", At(1))
	}
	j.Task("t1").Error = nil
	j.Task("t2").Error = &task.Error{Kind: task.KindPoison}
	j.Task("t3").Error = &task.Error{Kind: task.KindPanic, Message: "nil map\n\n  at x"}
	j.Task("t4").State = task.Blocked
	var b strings.Builder
	j.summary(80, At(2)).complaints(&b)
	text := b.String()
	for _, want := range []string{
		"\nt0 failed:\n  no\n", "\nt1 failed:\n  no error is recorded\n", "\nt2 failed:\n  poison\n", "\nt3 failed:\n  panic: nil map\n\n    at x\n",
		"\nt4 blocked:\n  no\n", "\nt9 failed:\n  no\n\nand 3 more.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		states string // of the tasks: s f c n(ot needed) b p
		job    task.JobState
		since  time.Time
		want   string
	}{
		{"sssssss", task.JobSucceeded, time.Time{}, "nightly-report succeeded in 5.1s: 7 tasks."},
		{"s", task.JobSucceeded, time.Time{}, "nightly-report succeeded in 5.1s: 1 task."},
		{"ssn", task.JobSucceeded, time.Time{}, "nightly-report succeeded in 5.1s: 2 of 3 tasks succeeded, 1 was not needed."},
		{"ssssfcc", task.JobFailed, time.Time{}, "nightly-report failed after 5.1s: 1 of 7 tasks failed, 2 were cancelled."},
		{"f", task.JobFailed, time.Time{}, "nightly-report failed after 5.1s: 1 of 1 task failed."},
		{"sc", task.JobFailed, time.Time{}, "nightly-report failed after 5.1s: 1 of 2 tasks was cancelled."},
		{"sscc", task.JobCancelled, time.Time{}, "nightly-report was cancelled after 5.1s: 2 of 4 tasks succeeded, 2 were cancelled (ops: too late)."},
		{"sbpp", task.JobBlocked, time.Time{}, "nightly-report is blocked after 5.1s: 1 of 4 tasks waits for a person, 2 are left."},
		{"sbbp", task.JobBlocked, time.Time{}, "nightly-report is blocked after 5.1s: 2 of 4 tasks wait for a person, 1 is left."},
		{"sfcpp", task.JobRunning, time.Time{}, "nightly-report is not finished after 5.1s: 1 of 5 tasks succeeded, 1 failed, 2 are left, 1 was cancelled."},
		{"ss", task.JobSucceeded, At(4), "nightly-report succeeded in 5.1s, 1.1s of it in this run: 2 tasks."},
	} {
		j := JobOf(strings.Split(tc.states, "")...)
		for i, c := range tc.states {
			ts := &j.Tasks[i]
			switch c {
			case 's':
				ts.State = task.Succeeded
			case 'f':
				ts.State = task.Failed
			case 'c':
				ts.State, ts.Error = task.Cancelled, &task.Error{Kind: task.KindDependencyFailed}
			case 'n':
				ts.State, ts.Error = task.Cancelled, &task.Error{Kind: task.KindNotNeeded}
			case 'b':
				ts.State = task.Blocked
			}
		}
		j.State = tc.job
		if tc.job == task.JobCancelled {
			j.CancelBy, j.CancelReason = "ops", "too late"
		}
		s := j.summary(80, At(5.1))
		s.since = tc.since
		if got := s.sentence(); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", tc.states, got, tc.want)
		}
	}
}

func TestSummaryAfterRun(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	j := failedJob()
	m := New(Config{Out: &b, Format: Lines, Zone: time.UTC}, j.Snapshot(), j.Needs)
	m.Note("said before")
	if err := m.Summary(j.Snapshot(), nil); err != nil {
		t.Error(err)
	}
	text := b.String()
	if _, after, ok := strings.Cut(text, " said before\n\nTASK"); !ok || !strings.Contains(after, "failed after 5.1s, <1ms of it in this run: 1 of 7") {
		t.Errorf("the summary:\n%s", text)
	}
	empty := New(Config{Out: &b}, JobOf().Snapshot(), nil)
	if err := empty.Summary(JobOf().Snapshot(), nil); err != nil {
		t.Error(err)
	}
}
