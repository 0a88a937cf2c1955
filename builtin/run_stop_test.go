//go:build unix && !aix

package builtin_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Shell text for commands that run until they are ended.
const (
	// forever has a child, which also holds the witness, and ends by SIGTERM once it
	// is ready: a shell may lose a signal right after a fork.
	forever = `sh -c 'echo ready; exec sleep 1000' & wait`
	// stubborn receives SIGTERM and continues.
	stubborn = `trap 'echo term >&9' TERM; while :; do ` + forever + `; done`
	// obedient receives SIGTERM and exits with 0.
	obedient = `trap 'echo bye; exit 0' TERM; while :; do ` + forever + `; done`
)

// The command of an attempt that timed out gets time to end.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		says []string
	}{
		"a command":           {"echo working; " + forever, []string{"asked to end: ended by signal: terminated", "working"}},
		"one that ignores it": {stubborn, []string{"ended by signal: killed"}},
		"one that obeys":      {obedient, []string{"exit status 0", "bye"}},
	} {
		if testing.Short() && c.line == stubborn {
			continue // it has the whole time to end
		}
		for _, cause := range []error{weaver.ErrTimeout, weaver.ErrDeadline} {
			t.Run(name+", "+cause.Error(), func(t *testing.T) {
				t.Parallel()
				w := newWitness(t)
				ctx, end := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := builtin.RunCommand(ctx, w.shell(strings.ReplaceAll(c.line, "echo ready", "echo ready >&9")))
					ended <- err
				}()
				w.awaits("ready")
				end(cause)
				err := <-ended
				for _, part := range c.says {
					if !errors.Is(err, cause) || !strings.Contains(err.Error(), part) {
						t.Errorf("the error is not %v, or does not say %q: %v", cause, part, err)
					}
				}
				if got := w.end(); slices.Contains(got, "term") != (c.line == stubborn) {
					t.Errorf("the witness got %q", got)
				}
			})
		}
	}
}

// The end is a timeout for a limit of any source.
func TestRunTimeout(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	const limit = 10 * time.Millisecond
	asleep := builtin.RunInput{Argv: []string{"sleep", "1000"}}
	s.fails(s.enqueue(asleep, weaver.Timeout(limit)), weaver.StateFailed, task.KindTimeout, "timed out")
	asleep.Timeout = builtin.Duration(limit)
	s.fails(s.enqueue(asleep), weaver.StateFailed, task.KindTimeout, "timed out")
}

func TestRunTimeoutIsATimeout(t *testing.T) {
	t.Parallel()
	_, err := builtin.RunCommand(t.Context(), builtin.RunInput{Argv: []string{"sleep", "1000"}, Timeout: builtin.Duration(time.Millisecond)})
	var how *builtin.ExitError
	if !errors.Is(err, weaver.ErrTimeout) || !errors.As(err, &how) || how.Signal != "terminated" {
		t.Errorf("run = %v, want ErrTimeout and how it ended", err)
	}
}

func TestRunCancel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newShop(t, weaver.Config{})
	for _, line := range []string{forever, stubborn, obedient} {
		w := newWitness(t)
		h := s.enqueue(w.shell(line))
		s.says(h.ID(), "ready")
		if err := s.Cancel(t.Context(), h.ID()); err != nil {
			t.Fatal(err)
		}
		s.fails(h, weaver.StateCancelled, task.KindCancelled)
		got := w.end()
		if line == stubborn && !slices.Equal(got, []string{"term"}) {
			t.Errorf("a command that ignores SIGTERM got %q, want it once", got)
		}
		if line == obedient {
			s.says(h.ID(), "bye") // output is live until the end
		}
	}
}

// A stopped process receives SIGTERM when it continues.
func TestRunCancelsAStoppedCommand(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	w := newWitness(t)
	h := s.enqueue(w.shell(`trap 'echo term >&9; exit 1' TERM; (kill -STOP $$; echo stopped >&9) & wait`))
	w.awaits("stopped")
	if err := s.Cancel(t.Context(), h.ID()); err != nil {
		t.Fatal(err)
	}
	s.fails(h, weaver.StateCancelled, task.KindCancelled)
	if got := w.end(); !slices.Contains(got, "term") {
		t.Errorf("got %q, want SIGTERM", got)
	}
}

// Background processes of a cancelled leader get the same time as the leader.
func TestRunCancelIsPatientWithTheGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newShop(t, weaver.Config{})
	w := newWitness(t)
	h := s.enqueue(w.shell(`sh -c 'trap "sleep 0.3; echo cleaned >&9; exit" TERM; while :; do sh -c "echo ready; exec sleep 1000" & wait; done'; echo never`))
	s.says(h.ID(), "ready")
	if err := s.Cancel(t.Context(), h.ID()); err != nil {
		t.Fatal(err)
	}
	s.fails(h, weaver.StateCancelled, task.KindCancelled)
	if got := w.end(); !slices.Equal(got, []string{"cleaned"}) {
		t.Errorf("got %q: a member of the group had no time to clean up", got)
	}
}

// Force gives no time: another worker may run the task again.
func TestRunForceKills(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	w := newWitness(t)
	h := s.enqueue(w.shell(stubborn))
	s.says(h.ID(), "ready")
	if err := s.Cancel(t.Context(), h.ID(), weaver.Force()); err != nil {
		t.Fatal(err)
	}
	if got := w.end(); len(got) > 0 {
		t.Errorf("the command got %q, want SIGKILL at once", got)
	}
	s.fails(h, weaver.StateCancelled, task.KindCancelled)
}

// A stopping worker releases the task without cost, and ends the command within
// the time that the engine gives.
func TestRunDrain(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"forever": forever, "stubborn": stubborn, "obedient": obedient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, weaver.Config{})
			w := newWitness(t)
			h := s.enqueue(w.shell(line))
			s.says(h.ID(), "ready")
			s.StopNow()
			err := <-s.done
			s.done <- err // for the cleanup
			got := w.end()
			info, getErr := h.Get(t.Context())
			if getErr != nil || info.State != weaver.StateReady || info.AttemptCount != 0 || info.AttemptNo != 1 {
				t.Errorf("the task is %s with %d of %d attempts counted, %v; want it ready and none", info.State, info.AttemptCount, info.AttemptNo, getErr)
			}
			if line == stubborn && !slices.Equal(got, []string{"term"}) {
				t.Errorf("got %q, want SIGTERM first", got)
			}
		})
	}
}

func TestRunEndsBackgroundChildren(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	for name, line := range map[string]string{
		"quiet":   `sleep 1000 >/dev/null 2>&1 & echo done`,
		"talking": `sleep 1000 & echo done`,
		"stubborn": `mkfifo "$WITNESS.up"
			(trap '' TERM; echo up >"$WITNESS.up"; while :; do sleep 1; done) >/dev/null 2>&1 &
			read -r up <"$WITNESS.up"; echo done`,
		"failing": `sleep 1000 & exit 3`,
	} {
		if testing.Short() && name == "stubborn" {
			continue // it has the whole time to end
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWitness(t)
			out, err := s.enqueueOn(t, w.shell(line)).Wait(t.Context())
			if (err != nil) != (name == "failing") || err == nil && out.Stdout != "done\n" {
				t.Errorf("got %+v, %v", out, err)
			}
			w.end()
		})
	}
}

// The command ended before the cancel: the cancel ends only its children, and its
// result counts.
func TestRunCancelAfterTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	s := newShop(t, weaver.Config{})
	w := newWitness(t)
	// The child gets SIGTERM after its parent ended.
	h := s.enqueue(w.shell(`mkfifo "$WITNESS.up"
		(trap 'echo orphan' TERM; echo up >"$WITNESS.up"; while :; do sleep 1000 & wait; done) &
		read -r up <"$WITNESS.up"; exit 0`))
	s.says(h.ID(), "orphan")
	if err := s.Cancel(t.Context(), h.ID()); err != nil && !errors.Is(err, weaver.ErrState) {
		t.Fatal(err)
	}
	if out, err := h.Wait(t.Context()); err != nil || out.Stdout != "orphan\n" {
		t.Errorf("got %+v, %v; want the success that it was", out, err)
	}
	w.end()
}

// A daemon in a session of its own survives, and its open files block neither the
// task nor a goroutine.
func TestRunLeavesDaemons(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	s := newShop(t, weaver.Config{})
	in := asHelper("daemon", "")
	out := s.run(in)
	pid, err := strconv.Atoi(strings.TrimSpace(out.Stdout))
	if err != nil {
		t.Fatalf("stdout = %q", out.Stdout)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon was gone: %v", err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "builtin.(*stream)") {
		t.Errorf("a reader goes on:\n%s", stacks)
	}
}

// A slow listener loses nothing, even after the command ended.
func TestRunSlowListener(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	w := newWitness(t)
	slow := event.SinkFunc(func(e event.Event) {
		if c, ok := e.(event.StreamChunk); ok && strings.HasPrefix(c.Data.(string), "first") {
			<-w.gone
			<-time.After(builtin.PipeGrace + 500*time.Millisecond)
		}
	})
	s := newShop(t, weaver.Config{Sink: slow})
	out := s.run(w.shell(`echo first; head -c 50000 /dev/zero | tr '\0' b; echo last`))
	if out.StdoutBytes != 50011 || !strings.HasSuffix(out.Stdout, "blast\n") {
		t.Errorf("%d bytes that end in %q, want 50011 and the last line", out.StdoutBytes, out.Stdout[max(0, len(out.Stdout)-10):])
	}
}
