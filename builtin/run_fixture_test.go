//go:build unix && !aix

package builtin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// shop is a running engine whose tasks run real commands.
type shop struct {
	testing.TB
	*weaver.Engine
	stop context.CancelFunc
	done chan error

	mu     sync.Mutex
	events []event.Event
	change chan struct{} // closed at the next event

	forgetful atomic.Bool // drop events
}

func newShop(t testing.TB, cfg weaver.Config) *shop {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &shop{TB: t, done: make(chan error, 1), change: make(chan struct{})}
	next := cfg.Sink
	cfg.Sink = event.SinkFunc(func(e event.Event) {
		s.note(e)
		if next != nil {
			next.Emit(e)
		}
	})
	cfg.Handlers = append(cfg.Handlers, builtin.Handlers(builtin.Config{})...)
	if s.Engine, err = weaver.New(db, cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.Engine.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		s.StopNow()
		if err := <-s.done; err != nil {
			t.Errorf("the engine: %v", err)
		}
	})
	return s
}

func (s *shop) note(e event.Event) {
	if s.forgetful.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.change)
	s.change = make(chan struct{})
}

// enqueue enqueues a command without retries.
func (s *shop) enqueue(in builtin.RunInput, opts ...weaver.EnqueueOption) *weaver.Handle[builtin.RunOutput] {
	s.Helper()
	h, err := builtin.Run.Enqueue(s.Context(), s, in, append([]weaver.EnqueueOption{weaver.NoRetry()}, opts...)...)
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// run runs a command that must succeed.
func (s *shop) run(in builtin.RunInput, opts ...weaver.EnqueueOption) builtin.RunOutput {
	s.Helper()
	out, err := s.enqueue(in, opts...).Wait(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// fails waits for a task to end in a state with a kind of error and all the given
// texts in its message.
func (s *shop) fails(h *weaver.Handle[builtin.RunOutput], state weaver.State, kind task.ErrorKind, says ...string) {
	s.Helper()
	_, err := h.Wait(s.Context())
	var failure *weaver.TaskError
	if !errors.As(err, &failure) {
		s.Fatalf("Wait = %v, want a *TaskError", err)
	}
	if failure.State != state || failure.Kind != kind {
		s.Errorf("the task is %s for %s, want %s for %s: %s", failure.State, failure.Kind, state, kind, failure.Message)
	}
	for _, part := range says {
		if !strings.Contains(failure.Message, part) {
			s.Errorf("the error does not say %q:\n%s", part, failure.Message)
		}
	}
}

// notHere waits for an attempt released because the worker cannot run it, and
// returns the reason.
func (s *shop) notHere(id weaver.TaskID) string {
	s.Helper()
	for {
		s.mu.Lock()
		change := s.change
		for _, e := range s.events {
			if r, ok := e.(event.TaskReleased); ok && r.TaskID == id && r.Error != nil {
				s.mu.Unlock()
				return r.Error.Message
			}
		}
		s.mu.Unlock()
		select {
		case <-change:
		case <-s.Context().Done():
			s.Fatal("no attempt was released")
		}
	}
}

// live returns the chunks of a stream received so far.
func (s *shop) live(id weaver.TaskID, stream string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chunks []string
	for _, e := range s.events {
		if c, ok := e.(event.StreamChunk); ok && c.TaskID == id && c.Stream == stream {
			chunks = append(chunks, c.Data.(string))
		}
	}
	return chunks
}

// progress returns the progress reports of a task.
func (s *shop) progress(id weaver.TaskID) []event.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reports []event.Progress
	for _, e := range s.events {
		if p, ok := e.(event.Progress); ok && p.TaskID == id {
			reports = append(reports, p)
		}
	}
	return reports
}

// reports waits for a report of the given number of lines and the given last line.
func (s *shop) reports(id weaver.TaskID, want string) {
	s.Helper()
	for {
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		for _, r := range s.progress(id) {
			if fmt.Sprintf("%.0f %s", r.Progress.Current, r.Progress.Message) == want {
				return
			}
		}
		within(s, change, "the report "+want)
	}
}

// started returns the begin of a task's first attempt.
func (s *shop) started(id weaver.TaskID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e, ok := e.(event.TaskStarted); ok && e.TaskID == id {
			return e.At
		}
	}
	return time.Time{}
}

// says waits until the command has written a text to stdout.
func (s *shop) says(id weaver.TaskID, text string) {
	s.Helper()
	for {
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		if strings.Contains(strings.Join(s.live(id, "stdout"), ""), text) {
			return
		}
		within(s, change, "the command to say "+text)
	}
}

// within waits for a channel to close. The limit only makes a failure readable.
func within(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("waited too long for %s", what)
	}
}

// witness is a named pipe held open by processes: it passes on their output, and
// ends when the last process is gone.
type witness struct {
	t     testing.TB
	path  string
	lines chan string
	gone  chan struct{}
	got   []string
}

// newWitness creates a pipe. Commands open it with `exec 9>"$WITNESS"`.
func newWitness(t testing.TB) *witness {
	t.Helper()
	w := &witness{t: t, path: filepath.Join(t.TempDir(), "witness"), lines: make(chan string, 100), gone: make(chan struct{})}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.gone)
		defer close(w.lines)
		f, err := os.Open(w.path) // waits for the first process
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = f.Close() }() // only read
		r := bufio.NewReader(f)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				w.lines <- strings.TrimSpace(line)
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				return
			}
		}
	}()
	return w
}

func (w *witness) env() map[string]string { return map[string]string{"WITNESS": w.path} }

// shell returns shell text that holds the pipe open as 9.
func (w *witness) shell(line string) builtin.RunInput {
	return builtin.RunInput{Shell: `exec 9>"$WITNESS"; ` + line, Env: w.env()}
}

// awaits waits for a line.
func (w *witness) awaits(want string) {
	w.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("the processes are gone, and none has said %q, only %q", want, w.got)
			}
			w.got = append(w.got, line)
			if line == want {
				return
			}
		case <-limit:
			w.t.Fatalf("waited too long for %q, got %q", want, w.got)
		}
	}
}

// end waits until no process holds the pipe, and returns all output.
func (w *witness) end() []string {
	w.t.Helper()
	within(w.t, w.gone, "the processes to end")
	for line := range w.lines {
		w.got = append(w.got, line)
	}
	return w.got
}
