package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

func TestCriticalPath(t *testing.T) {
	t.Parallel()
	run := func(j *Job, name string, from, to float64) {
		j.Starts(name, At(from))
		j.Succeeds(name, At(to))
	}
	for _, tc := range []struct {
		name  string
		tasks []string
		life  func(j *Job)
		want  string
	}{
		{"nothing ran", []string{"a", "b < a"}, func(*Job) {}, ""},
		{"an empty job", nil, func(*Job) {}, ""},
		{"alone", []string{"a", "b"}, func(j *Job) {
			run(j, "a", 0, 2)
			run(j, "b", 0, 1)
		}, "a 2s"},
		{"diamond", []string{"fetch", "left < fetch", "right < fetch", "join < left right"}, func(j *Job) {
			run(j, "fetch", 0, 1)
			run(j, "left", 1, 5)
			run(j, "right", 1.5, 3)
			run(j, "join", 5.5, 6)
		}, "fetch 1s, left 4s, join 500ms"},
		{"the last need counts, not the longest", []string{"long", "late", "end < long late"}, func(j *Job) {
			run(j, "long", 0, 8)
			run(j, "late", 8.5, 9)
			run(j, "end", 9, 10)
		}, "late 500ms, end 1s"},
		{"a failure, and what it cancelled", []string{"a", "b < a", "c < b"}, func(j *Job) {
			run(j, "a", 0, 1)
			j.Starts("b", At(1))
			j.Fails("b", "no", At(3))
		}, "a 1s, b 2s"},
		{"an alarm behind what was cancelled", []string{"a", "b < a", "c < b", "alarm < c"}, func(j *Job) {
			run(j, "a", 0, 1)
			j.Starts("b", At(1))
			j.Fails("b", "no", At(3))
			run(j, "alarm", 3, 4)
		}, "a 1s, b 2s, alarm 1s"},
		{"only the last attempt", []string{"a", "b < a"}, func(j *Job) {
			j.Starts("a", At(0))
			j.Retries("a", "no", time.Second, At(4))
			run(j, "a", 5, 6)
			run(j, "b", 6, 7)
		}, "a 1s, b 1s"},
		{"resumed after a day", []string{"a", "b < a"}, func(j *Job) {
			run(j, "a", 0, 60)
			run(j, "b", 86400, 86401)
		}, "a 1m, b 1s"},
		{"while it runs", []string{"a", "b < a", "c"}, func(j *Job) {
			run(j, "a", 0, 1)
			j.Starts("b", At(1))
			j.Starts("c", At(1))
			j.Blocks("c", "?", At(2))
		}, "a 1s"},
		{"a circle", []string{"a < b", "b < a"}, func(j *Job) {
			run(j, "a", 0, 1)
			run(j, "b", 1, 2)
		}, "a 1s, b 1s"},
		{"a need that is not there", []string{"a < ghost"}, func(j *Job) { run(j, "a", 0, 1) }, "a 1s"},
	} {
		j := JobOf(tc.tasks...)
		tc.life(j)
		var got []string
		for _, step := range criticalPath(j.Tasks, j.Needs) {
			got = append(got, step.Node+" "+text.Took((&summary{now: At(0)}).duration(step)))
		}
		if path := strings.Join(got, ", "); path != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, path, tc.want)
		}
	}
}

func TestPathText(t *testing.T) {
	t.Parallel()
	chain := func(n int, name string) *Job {
		var tasks []string
		for i := range n {
			text := fmt.Sprintf(name, i)
			if i > 0 {
				text += " < " + fmt.Sprintf(name, i-1)
			}
			tasks = append(tasks, text)
		}
		j := JobOf(tasks...)
		for i := range n {
			j.Starts(fmt.Sprintf(name, i), At(float64(i)))
			j.Succeeds(fmt.Sprintf(name, i), At(float64(i)+1))
		}
		return j
	}
	shown := func(j *Job, columns int) string {
		s := summary{st: j.JobTasks, now: Start.Add(100 * time.Second), columns: columns}
		return s.path(criticalPath(j.Tasks, j.Needs))
	}
	if got, want := shown(chain(3, "t%d"), 80), "Critical path: t0 1s → t1 1s → t2 1s (3s of 1m40s)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := shown(chain(4, "task-%d"), 40), "Critical path: task-0 1s → task-1 1s →\n  task-2 1s → task-3 1s (4s of 1m40s)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	long := shown(chain(50, "t%d"), 200)
	if !strings.Contains(long, "t9 1s → … 30 more tasks → t40 1s") || !strings.Contains(long, "(50s of 1m40s)") {
		t.Errorf("a long path: %s", long)
	}
	for columns := 40; columns < 100; columns++ {
		for line := range strings.Lines(shown(chain(30, "日本語の長い名前-%d"), columns)) {
			if line = strings.TrimRight(line, "\n"); text.Width(line) > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("a line of %d columns on %d: %q", text.Width(line), columns, line)
			}
		}
	}
}

func TestDurationOfATask(t *testing.T) {
	t.Parallel()
	j := JobOf("a")
	a := j.Task("a")
	look := func(wantTook time.Duration, wantAttempts int) {
		t.Helper()
		s := summary{now: At(9)}
		if d, n := s.duration(a), s.pastOf(a).Attempts; d != wantTook || n != wantAttempts {
			t.Errorf("%s: %s, %d attempts, want %s, %d", a.State, d, n, wantTook, wantAttempts)
		}
	}
	look(0, 0)
	j.Starts("a", At(1))
	look(8*time.Second, 1)
	j.Retries("a", "no", 0, At(2))
	look(0, 1)
	j.Starts("a", At(3))
	look(6*time.Second, 2)
	j.Blocks("a", "no", At(4))
	look(0, 2)
	a.State, a.StartedAt, a.FinishedAt = task.Succeeded, At(5), At(4) // clocks differ
	look(0, 2)
}

// Earlier attempts and the waits between them count; lost, interrupted and
// sleeping attempts do not.
func TestPast(t *testing.T) {
	t.Parallel()
	at := func(from, to float64, outcome task.Outcome) task.Attempt {
		return task.Attempt{StartedAt: At(from), FinishedAt: At(to), Outcome: outcome}
	}
	p := PastOf([]task.Attempt{
		at(1, 2, task.OutcomeFailure), at(10, 11, task.OutcomeLeaseLost), at(12, 13, task.OutcomeReleased),
		at(14, 15, task.OutcomeSuspended), at(20, 22, task.OutcomeSuccess),
	})
	if want := (Past{Began: At(1), Attempts: 2, Lost: 1, Released: 1}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	if got := p.String(); got != "2, 1 lost, 1 interrupted" {
		t.Errorf("the cell is %q", got)
	}
	j := JobOf("a", "b < a")
	j.Starts("a", At(20))
	j.Succeeds("a", At(22))
	j.Starts("b", At(22))
	j.Succeeds("b", At(23))
	s := summary{st: j.JobTasks, needs: j.Needs, now: At(30), columns: 100, past: map[task.ID]Past{j.Task("a").ID: p}}
	if got := s.text(); !strings.Contains(got, "2, 1 lost, 1 interrupted  21s") || !strings.Contains(got, "Critical path: a 21s → b 1s (22s of") {
		t.Errorf("the summary:\n%s", got)
	}
}
