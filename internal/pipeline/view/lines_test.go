package view_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// output is an Out that can be read during writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// running starts a monitor in a bubble; the returned function ends its Run.
func running(t *testing.T, cfg view.Config, j *view.Job) (m *view.Monitor, end func()) {
	t.Helper()
	cfg.Zone = time.UTC
	m = view.New(cfg, j.Snapshot(), j.Needs)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := m.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return m, func() {
		t.Helper()
		cancel()
		run.Wait()
	}
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("output:\n%s\nwant:\n%s", got, want)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("fetch", "clean < fetch", "load", "nap", "ask", "old")
		old := j.Task("old")
		old.State, old.Waiting, old.AttemptNo, old.AttemptCount = task.Pending, task.WaitSleep, 1, 0
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.Lines}, j)
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		m.Note("nightly-report: job %s, %d tasks", j.ID, 6)
		m.Emit(j.Starts("fetch", time.Now()))
		m.Emit(j.Starts("load", time.Now()))
		pass(time.Second)
		// Two tasks and two streams write concurrently, in arbitrary chunks.
		stderr := func(name, block string) {
			m.Emit(event.StreamChunk{Header: j.Head(name, time.Now()), Stream: "stderr", Data: block})
		}
		m.Emit(j.Prints("fetch", "get htt"))
		m.Emit(j.Prints("load", "row 1\nro"))
		stderr("fetch", "\x1b[33mwarning: ")
		m.Emit(j.Prints("fetch", "ps://example.com\n\n 10 %\r 50 %\r"))
		stderr("fetch", "slow\x1b[0m\n")
		m.Emit(j.Prints("load", "w 2\xe6\x97"))
		m.Emit(j.Prints("load", "\xa5\n"))
		stderr("load", "the end")
		pass(1200 * time.Millisecond)
		m.Emit(j.Retries("fetch", "exit status 3\nwarning: slow", 2*time.Second, time.Now()))
		m.Logger().Warn("heartbeat", "task_id", j.Task("load").ID, "task_type", "x.y.z.v1", "error", context.DeadlineExceeded)
		m.Logger().Info("not of interest")
		pass(2 * time.Second)
		m.Emit(j.Starts("fetch", time.Now()))
		m.Emit(j.Starts("nap", time.Now()))
		m.Emit(event.TaskSuspended{Header: j.Head("nap", time.Now()), Waiting: task.WaitSleep, WakeAt: view.At(3600)})
		m.Emit(j.Starts("ask", time.Now()))
		m.Emit(j.Blocks("ask", "is it right?", time.Now()))
		m.Emit(j.Starts("old", time.Now()))
		pass(time.Second)
		m.Emit(j.Succeeds("load", time.Now()))
		m.Emit(j.Fails("fetch", "exit status 4\nfatal", time.Now()))
		m.Emit(event.LogWritten{Header: j.Head("old", time.Now()), Message: "read", Data: map[string]any{"rows": 3, "from": "a b", "took": time.Second}})
		m.Emit(event.LogWritten{Header: j.Head("old", time.Now()), Level: slog.LevelWarn, Message: "the engine's logger shows it"})
		pass(time.Second)
		old.State, j.State = task.Ready, task.JobBlocked
		m.Reconcile(j.Snapshot())
		end()
		m.Note("after the run")
		wantText(t, out.String(), `
00:00:00 nightly-report: job `+j.ID.String()+`, 6 tasks
00:00:00 fetch: started
00:00:00 load: started
00:00:01 load| row 1
00:00:01 fetch| get https://example.com
00:00:01 fetch|
00:00:01 fetch| warning: slow
00:00:01 load| row 2日
00:00:02 fetch|  50 %
00:00:02 fetch: attempt 1 failed: exit status 3; retry in 2s
00:00:02 load: WARN heartbeat error="context deadline exceeded"
00:00:04 fetch: started, attempt 2 of 5
00:00:04 nap: started
00:00:04 nap: asleep until 2000-01-01 01:00:00
00:00:04 ask: started
00:00:04 ask: blocked: is it right?
00:00:04 old: started again
00:00:05 load| the end
00:00:05 load: succeeded in 5.2s
00:00:05 fetch: failed in attempt 2 after 1s: exit status 4
00:00:05 old: read from="a b" rows=3 took=1s
00:00:06 clean: cancelled: fetch did not succeed
00:00:06 old: was stopped, and begins again with the next worker
00:00:06 nightly-report: blocked: ask waits for a person
00:00:06 after the run
`)
	})
}

func TestLinesShowProgressOfQuietTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("quiet", "loud")
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.Lines}, j)
		m.Emit(j.Starts("quiet", time.Now()))
		m.Emit(j.Starts("loud", time.Now()))
		m.Emit(j.Prints("loud", "line\n"))
		for i := range 25 {
			time.Sleep(time.Second)
			for _, name := range []string{"quiet", "loud"} {
				m.Emit(event.Progress{Header: j.Head(name, time.Now()), Progress: task.Progress{Current: float64(i), Total: 25, Message: "reading"}})
			}
		}
		end()
		wantText(t, out.String(), `
00:00:00 quiet: started
00:00:00 loud: started
00:00:00 loud| line
00:00:10 quiet: 9 of 25: reading
00:00:20 quiet: 19 of 25: reading
`)
	})
}

func TestLinesWithColour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("a")
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.Lines, Color: true}, j)
		m.Emit(j.Starts("a", time.Now()))
		m.Emit(j.Fails("a", "no \x1b[32mgreen", time.Now()))
		end()
		wantText(t, out.String(), "\x1b[2m00:00:00\x1b[0m a: started\n\x1b[2m00:00:00\x1b[0m \x1b[31ma: failed after <1ms: no green\x1b[0m\n")
	})
}

// The views write no escape sequences but their own, for any tasks, names, errors,
// logs and notes.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[31m\x1b]0;own\a\x1b[2Jx\u202e\u009b3Ay\x07\x00"
	for _, format := range []view.Format{view.Tree, view.Lines} {
		synctest.Test(t, func(t *testing.T) {
			j := view.JobOf("a", "b")
			j.Name += evil
			j.Task("a").Node = "a" + evil
			var out output
			m, end := running(t, view.Config{Out: &out, Format: format}, j)
			m.Emit(j.Starts("a"+evil, time.Now()))
			m.Emit(j.Prints("a"+evil, "out"+evil+"\n"+evil))
			m.Emit(event.LogWritten{Header: j.Head("a"+evil, time.Now()), Message: evil, Data: map[string]any{evil: evil}})
			m.Emit(event.StepStarted{Header: j.Head("a"+evil, time.Now()), Step: evil})
			m.Logger().With(evil, evil).WithGroup(evil).Error(evil, evil, evil)
			m.Note("%s", evil)
			time.Sleep(time.Second)
			m.Emit(j.Fails("a"+evil, evil+"\n"+evil, time.Now()))
			j.Starts("b", time.Now())
			j.Task("b").Progress = &task.Progress{Message: evil}
			m.Reconcile(j.Snapshot())
			time.Sleep(time.Second)
			j.State, j.CancelBy, j.CancelReason = task.JobCancelled, evil, evil
			end()
			if err := m.Summary(j.Snapshot(), nil); err != nil {
				t.Error(err)
			}
			text := out.String()
			for _, own := range []string{"\x1b[?7l", "\x1b[?7h", "\x1b[2K", "\x1b[J", "\x1b[3A"} {
				text = strings.ReplaceAll(text, own, "")
			}
			if i := strings.IndexAny(text, "\x1b\a\x00\u202e\u009b"); i >= 0 || strings.Contains(text, "own") {
				t.Errorf("format %d lets something through: %q", format, text[max(0, i-40):])
			}
		})
	}
}
