package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/pipeline/view"
	"github.com/goweaver/weaver/task/event"
)

var _ event.Sink = (*view.Monitor)(nil)

func TestTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("fetch", "clean < fetch")
		screen := view.NewTerminal(40, 10)
		m, end := running(t, view.Config{Out: screen, Size: screen.Size}, j)
		m.Note("nightly-report: job %d", 1)
		m.Emit(j.Starts("fetch", time.Now()))
		m.Emit(j.Prints("fetch", " 10 %\r 20 %\r"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		screen.Want(t, "fetch runs",
			"nightly-report: job 1",
			"● fetch     5s       20 %",
			"└─ ○ clean  waiting  needs fetch",
			"[..........] 0/2 done · 1 running · 0:05")
		m.Logger().Warn("the store is slow", "task_id", j.Task("fetch").ID)
		m.Emit(j.Fails("fetch", "exit status 3", time.Now()))
		m.Reconcile(j.Snapshot())
		m.Emit(j.Prints("fetch", "late"))
		end()
		m.Emit(j.Prints("fetch", "after the end"))
		m.Note("bye")
		screen.Want(t, "the end",
			"nightly-report: job 1",
			"fetch: WARN the store is slow",
			"✗ fetch     failed     exit status 3",
			"└─ ⊘ clean  cancelled  fetch did not su…",
			"2/2 done · 1 failed · 1 cancelled · 0:05",
			"bye")
	})
}

func TestTreeOfATerminalWithoutASize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out output
		_, end := running(t, view.Config{Out: &out, Size: func() (int, int) { return 0, 0 }}, view.JobOf("a"))
		end()
		if !strings.Contains(out.String(), "○ a  ready            waits for a worker\n") {
			t.Errorf("drawn: %q", out.String())
		}
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // not a terminal
	if err != nil {
		t.Fatal(err)
	}
	j := view.JobOf("a")
	m := view.New(view.Config{Out: out}, j.Snapshot(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := m.Run(ctx); err == nil {
		t.Error("Run can be called twice")
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	drawn, err := os.ReadFile(out.Name())
	if err != nil {
		t.Error(err)
	}
	if got := string(drawn); !strings.Contains(got, "[....................] 0/1 done · 0:00\n") {
		t.Errorf("drawn: %q", got)
	}
	view.New(view.Config{}, j.Snapshot(), nil).Emit(j.Starts("a", time.Now())) // to os.Stdout, if it ran
}

// gate is an Out that blocks until it is opened.
type gate struct {
	output
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.output.Write(p)
}

func TestABlockedTerminalBlocksNoTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("a")
		out := &gate{open: make(chan struct{})}
		m, end := running(t, view.Config{Out: out}, j)
		start := time.Now()
		m.Emit(j.Starts("a", time.Now()))
		for i := range 5000 {
			m.Emit(j.Prints("a", fmt.Sprintf("line %d\n", i)))
			m.Note("note %d", i)
			m.Logger().Error("oh")
		}
		m.Emit(j.Succeeds("a", time.Now()))
		m.Reconcile(j.Snapshot())
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %s", d)
		}
		close(out.open)
		end()
		text := out.String()
		if !strings.Contains(text, "(9000 lines could not be shown: the terminal was too slow)\n") || !strings.Contains(text, "note 4999\n") || !strings.Contains(text, "✓ a") {
			t.Errorf("drawn: %.300q … %.300q", text, text[max(0, len(text)-300):])
		}
	})
}

// Lines and JSON lose nothing: Emit waits for the reader.
func TestASlowPipeHoldsEmitBack(t *testing.T) {
	t.Parallel()
	for _, format := range []view.Format{view.Lines, view.JSON} {
		synctest.Test(t, func(t *testing.T) {
			j := view.JobOf("a")
			out := &gate{open: make(chan struct{})}
			m, end := running(t, view.Config{Out: out, Format: format}, j)
			const lines = 3000
			done := false
			var emit sync.WaitGroup
			emit.Go(func() {
				m.Emit(j.Starts("a", time.Now()))
				for i := range lines {
					m.Emit(j.Prints("a", fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 1000))))
				}
				done = true
			})
			synctest.Wait()
			if done {
				t.Error("Emit did not wait")
			}
			m.Logger().Error("logging does not wait")
			m.Note("nor who has something to say")
			close(out.open)
			emit.Wait()
			end()
			if n := strings.Count(out.String(), strings.Repeat("x", 1000)); n != lines {
				t.Errorf("%d of %d lines were written", n, lines)
			}
		})
	}
}

func TestTheEndOfRunFreesEmit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("a")
		out := failing{wait: make(chan struct{})}
		m := view.New(view.Config{Out: out, Format: view.Lines}, j.Snapshot(), j.Needs)
		var emit, run sync.WaitGroup
		emit.Go(func() {
			for range 5000 {
				m.Emit(j.Prints("a", strings.Repeat("x", 1000)+"\n"))
			}
		})
		synctest.Wait() // it waits for Run
		run.Go(func() {
			if err := m.Run(t.Context()); !errors.Is(err, errFull) {
				t.Errorf("Run: %v", err)
			}
		})
		synctest.Wait() // it waits for the first write
		close(out.wait)
		run.Wait()
		emit.Wait()
		m.Reconcile(j.Snapshot())
		if err := m.Summary(j.Snapshot(), nil); !errors.Is(err, errFull) {
			t.Errorf("Summary: %v", err)
		}
	})
}

var errFull = errors.New("no space left on device")

// failing is an Out that fails on request.
type failing struct{ wait chan struct{} }

func (f failing) Write([]byte) (int, error) {
	<-f.wait
	return 0, errFull
}

func TestAFailingTerminalEndsRun(t *testing.T) {
	t.Parallel()
	now := make(chan struct{})
	close(now)
	m := view.New(view.Config{Out: failing{now}}, view.JobOf("a").Snapshot(), nil)
	if err := m.Run(t.Context()); !errors.Is(err, errFull) {
		t.Errorf("Run: %v", err)
	}
}

// No line is lost or torn when many tasks write concurrently.
func TestConcurrentEmit(t *testing.T) {
	t.Parallel()
	const tasks = 8
	for format, lines := range map[view.Format]int{view.Lines: 10_000, view.Tree: 3000, view.JSON: 3000} {
		var names []string
		for i := range tasks {
			names = append(names, fmt.Sprintf("t%d", i))
		}
		j := view.JobOf(names...)
		fresh := j.Snapshot()
		var out output
		m := view.New(view.Config{Out: &out, Format: format}, fresh, j.Needs)
		ctx, cancel := context.WithCancel(t.Context())
		var run, emit sync.WaitGroup
		run.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		// Create the events first: a Job is not safe for concurrent use.
		for _, name := range names {
			events := []event.Event{j.Starts(name, time.Now())}
			for i := range lines - 2 {
				events = append(events, j.Prints(name, fmt.Sprintf("%s line %d\n", name, i)))
			}
			events = append(events, j.Succeeds(name, time.Now()))
			emit.Go(func() {
				for _, ev := range events {
					m.Emit(ev)
				}
			})
		}
		for range 100 {
			m.Reconcile(fresh)
			m.Note("note")
			m.Logger().Warn("log")
		}
		emit.Wait()
		cancel()
		run.Wait()
		inOrder(t, format, out.String(), names, lines)
	}
}

// lastMoment is an output that emits a change and then ends the run, during its
// first write.
type lastMoment struct {
	output
	once sync.Once
	end  func()
}

func (o *lastMoment) Write(p []byte) (int, error) {
	o.once.Do(o.end)
	return o.output.Write(p)
}

// A change emitted before the run ends is written, even if both happen during a
// drawing.
func TestRunShowsWhatCameDuringTheLastWrite(t *testing.T) {
	t.Parallel()
	for _, format := range []view.Format{view.Lines, view.Tree, view.JSON} {
		j := view.JobOf("a")
		ctx, cancel := context.WithCancel(t.Context())
		var m *view.Monitor
		out := lastMoment{end: func() {
			m.Emit(j.Succeeds("a", time.Now()))
			cancel()
		}}
		m = view.New(view.Config{Out: &out, Format: format}, j.Snapshot(), j.Needs)
		m.Emit(j.Starts("a", time.Now()))
		if err := m.Run(ctx); err != nil {
			t.Error(err)
		}
		if want := map[view.Format]string{view.Lines: "succeeded", view.Tree: "1/1 done", view.JSON: "task.succeeded"}[format]; !strings.Contains(out.String(), want) {
			t.Errorf("format %v: the output lacks %q:\n%s", format, want, out.String())
		}
	}
}

func inOrder(t *testing.T, format view.Format, text string, names []string, lines int) {
	t.Helper()
	if format == view.Tree {
		if !strings.Contains(text, fmt.Sprintf("%d/%d done", len(names), len(names))) {
			t.Error("the last frame does not show the end")
		}
		return
	}
	next := make(map[string]int)
	for line := range strings.Lines(text) {
		var name string
		var i int
		if format == view.JSON {
			var o struct{ Event, Data string }
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			if o.Event != "stream.chunk" {
				continue
			}
			line = o.Data
		} else if _, said, ok := strings.Cut(line, "| "); ok {
			line = said
		} else {
			continue
		}
		if n, _ := fmt.Sscanf(line, "%s line %d\n", &name, &i); n != 2 || next[name] != i {
			t.Fatalf("line %q, want line %d", line, next[name])
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != lines-2 {
			t.Errorf("%s: %d lines, want %d", name, next[name], lines-2)
		}
	}
}

func TestEventsOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := view.JobOf("a")
		var out output
		m, end := running(t, view.Config{Out: &out, Format: view.Lines}, j)
		ev := j.Starts("a", time.Now()).(event.TaskStarted)
		ev.JobID = view.ID(50)
		m.Emit(ev)
		other := j.Snapshot()
		other.ID = view.ID(50)
		m.Reconcile(other)
		end()
		if out.String() != "" {
			t.Errorf("it shows %q", out.String())
		}
	})
}
