package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// night returns a job with a task in every state, at At(65).
func night(t *testing.T) *model {
	t.Helper()
	j := JobOf("fetch", "load", "clean < fetch", "report < clean load", "mail < report",
		"翻訳する < fetch", "archive < 翻訳する", "approve", "nap", "sign", "a-task-with-a-name-that-is-longer-than-others < load")
	m := j.model()
	emit := func(ev event.Event) { m.observe(ev) }
	emit(j.Starts("fetch", At(0)))
	emit(j.Prints("fetch", "get https://example.com\n 40 %\r100 %\n"))
	emit(j.Succeeds("fetch", At(1.234)))
	emit(j.Starts("load", At(0)))
	emit(j.Retries("load", "exit status 3\nlast words", 2*time.Second, At(1)))
	emit(j.Starts("load", At(3)))
	emit(j.Prints("load", "row 1000\r"))
	emit(j.Starts("clean", At(2)))
	emit(j.Fails("clean", "exit status 1\nrm: no such file", At(4)))
	emit(j.Starts("翻訳する", At(4)))
	emit(j.Prints("翻訳する", "「吾輩は猫である」の第一章を翻訳しています。しばらくお待ちください。"))
	emit(j.Starts("approve", At(5)))
	emit(j.Blocks("approve", "is the sum right?", At(6)))
	emit(j.Starts("nap", At(5)))
	nap := j.Task("nap")
	nap.State, nap.Waiting, nap.ReadyAt, nap.AttemptCount = task.Pending, task.WaitSleep, At(200), 0
	emit(event.TaskSuspended{Header: j.Head("nap", At(6)), Waiting: task.WaitSleep, WakeAt: At(200)})
	emit(j.Starts("sign", At(60)))
	emit(j.Retries("sign", "no ink\nat all", 7*time.Second, At(61)))
	m.reconcile(j.Snapshot(), At(62))
	return m
}

// many returns a job of 300 tasks in a chain of teams, with 200 succeeded.
func many(t *testing.T) *model {
	t.Helper()
	var tasks []string
	for i := range 300 {
		text := fmt.Sprintf("task-%03d", i)
		if i >= 10 {
			text += fmt.Sprintf(" < task-%03d", i-10)
		}
		tasks = append(tasks, text)
	}
	j := JobOf(tasks...)
	m := j.model()
	for i := range 206 {
		name := fmt.Sprintf("task-%03d", i)
		m.observe(j.Starts(name, At(float64(i)/4)))
		switch {
		case i == 180:
			m.observe(j.Retries(name, "try me again", time.Minute, At(60)))
		case i == 190:
			m.observe(j.Blocks(name, "help", At(61)))
		case i < 202:
			m.observe(j.Succeeds(name, At(float64(i)/4+1)))
		default:
			m.observe(j.Prints(name, "at work"))
		}
	}
	m.reconcile(j.Snapshot(), At(62))
	return m
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		m          *model
		cols, rows int
		want       string
	}{
		{"night at 20", night(t), 20, 24, `
✓ fetch    1.2s
├─ ✗ cle…  failed
…  ⊘ rep…  cancelled
…  ⊘ mail  cancelled
└─ ● 翻…   1m1s
…  ○ arc…  waiting
● load     1m2s
└─ ○ a-t…  waiting
⏸ approve  blocked
○ nap      asleep
↻ sign     retry 3s
4/11 done · 1:05
`},
		{"night at 40", night(t), 40, 24, `
✓ fetch                        1.2s
├─ ✗ clean                     failed
│  └─ ⊘ report                 cancelled
│     └─ ⊘ mail                cancelled
└─ ● 翻訳する                  1m1s
   └─ ○ archive                waiting
● load                         1m2s
└─ ○ a-task-with-a-name-that…  waiting
⏸ approve                      blocked
○ nap                          asleep
↻ sign                         retry 3s
4/11 done · 2 running · 1 failed · 1:05
`},
		{"night at 80", night(t), 80, 24, `
✓ fetch                               succeeded 1.2s   100 %
├─ ✗ clean                            failed 2s        exit status 1
│  └─ ⊘ report                        cancelled        clean did not succeed
│     └─ ⊘ mail                       cancelled        clean did not succeed
└─ ● 翻訳する                         running 1m1s     「吾輩は猫である」の第一…
   └─ ○ archive                       waiting          needs 翻訳する
● load                                running 1m2s     try 2/5  row 1000
└─ ○ a-task-with-a-name-that-is-lon…  waiting          needs load
⏸ approve                             blocked          is the sum right?
○ nap                                 wakes in 2m15s
↻ sign                                retry in 3s      no ink
4/11 done · 2 running · 1 failed · 1 blocked · 1 retrying · 2 cancelled · 1:05
`},
		{"night at 120", night(t), 120, 24, `
✓ fetch                                             succeeded 1.2s   100 %
├─ ✗ clean                                          failed 2s        exit status 1
│  └─ ⊘ report                                      cancelled        clean did not succeed
│     └─ ⊘ mail                                     cancelled        clean did not succeed
└─ ● 翻訳する                                       running 1m1s     「吾輩は猫である」の第一章を翻訳しています。しばら…
   └─ ○ archive                                     waiting          needs 翻訳する
● load                                              running 1m2s     try 2/5  row 1000
└─ ○ a-task-with-a-name-that-is-longer-than-others  waiting          needs load
⏸ approve                                           blocked          is the sum right?
○ nap                                               wakes in 2m15s
↻ sign                                              retry in 3s      no ink
[##########....................] 4/11 done · 2 running · 1 failed · 1 blocked · 1 retrying · 2 cancelled · 1:05
`},
		{"300 tasks", many(t), 80, 24, `
↻ task-180           retry in 55s     try me again
└─ ⏸ task-190        blocked          help
   └─ ○ task-210     ready            waits for a worker
      └─ ○ task-220  waiting          needs task-210
○ task-211           ready            waits for a worker
● task-202           running 14s      at work
└─ ○ task-212        waiting          needs task-202
● task-203           running 14s      at work
└─ ○ task-213        waiting          needs task-203
● task-204           running 14s      at work
└─ ○ task-214        waiting          needs task-204
● task-205           running 13s      at work
└─ ○ task-215        waiting          needs task-205
○ task-206           ready            waits for a worker
└─ ○ task-216        waiting          needs task-206
○ task-207           ready            waits for a worker
└─ ○ task-217        waiting          needs task-207
○ task-208           ready            waits for a worker
└─ ○ task-218        waiting          needs task-208
○ task-209           ready            waits for a worker
└─ ○ task-219        waiting          needs task-209
… 279 more: 200 succeeded, 79 waiting
[#############.......] 200/300 done · 4 running · 1 blocked · 1 retrying · 1:05
`},
		{"300 tasks at 40 × 8", many(t), 40, 8, `
↻ task-180  retry 55s  try me again
● task-202  14s        at work
● task-203  14s        at work
● task-204  14s        at work
● task-205  13s        at work
… 295 more: 1 blocked, 200 succeeded, 6…
[####..] 200/300 done · 4 running · 1:05
`},
		{"300 tasks at 20 × 4", many(t), 20, 4, `
● task-202  14s
… 299 more: 3 runni…
200/300 done · 1:05
`},
		{"300 tasks at 80 × 3", many(t), 80, 3, `
300 tasks: 4 running, 1 blocked, 1 retrying, 200 succeeded, 6 ready, 88 waiting
[#############.......] 200/300 done · 4 running · 1 blocked · 1 retrying · 1:05
`},
		{"300 tasks at 80 × 2", many(t), 80, 2, `
[#############.......] 200/300 done · 4 running · 1 blocked · 1 retrying · 1:05
`},
		{"300 tasks at 80 × 1", many(t), 80, 1, `
[#############.......] 200/300 done · 4 running · 1 blocked · 1 retrying · 1:05
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lines := tc.m.frame(tc.cols, tc.rows, Start, At(65)).text(text.Painter{}, tc.cols)
			if got := strings.Join(lines, "\n"); got != strings.Trim(tc.want, "\n") {
				t.Errorf("%d × %d:\n%s\nwant:\n%s", tc.cols, tc.rows, got, strings.Trim(tc.want, "\n"))
			}
		})
	}
}
