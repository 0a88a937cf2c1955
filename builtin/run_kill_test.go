//go:build unix && !aix

package builtin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/procgroup"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task/event"
)

func init() { helpers["worker"] = helpWorker }

// work lists the actions of a worker to be killed, in order.
type work struct {
	First  builtin.RunInput // run to its end
	Fell   bool             // then the guard is ended
	Second builtin.RunInput // runs when the worker is killed
	Falls  bool             // the guard is ended while it runs
	Ends   bool             // the worker ends by itself
}

// helpWorker is a worker that prints "runs" after output of the second command,
// and then waits to be killed.
func helpWorker(arg string) error {
	var w work
	if err := json.Unmarshal([]byte(arg), &w); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	said := make(chan struct{}, 1000)
	eng, err := weaver.New(db, weaver.Config{Handlers: builtin.Handlers(builtin.Config{}), Sink: event.SinkFunc(func(e event.Event) {
		if _, ok := e.(event.StreamChunk); ok {
			said <- struct{}{}
		}
	})})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	if len(w.First.Argv) > 0 {
		if _, err := builtin.Run.EnqueueAndWait(ctx, eng, w.First); err != nil {
			return err
		}
	}
	if w.Fell {
		if err := procgroup.EndGuard(); err != nil {
			return err
		}
	}
	if _, err := builtin.Run.Enqueue(ctx, eng, w.Second); err != nil {
		return err
	}
	<-said
	if w.Falls {
		if err := procgroup.EndGuard(); err != nil {
			return err
		}
	}
	fmt.Println("runs")
	if w.Ends {
		return nil
	}
	return errors.Join(<-ended, errors.New("the engine stopped"))
}

// runWorker runs a worker until it is killed after its command began, or until it
// ends. The worker and its processes have the files open.
func runWorker(t *testing.T, w work, files ...*os.File) {
	t.Helper()
	arg, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	in := asHelper("worker", string(arg))
	cmd := exec.Command(in.Argv[0])
	cmd.Env = os.Environ()
	for name, value := range in.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, files
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !w.Ends {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); w.Ends && err != nil {
		t.Error(err)
	}
	if line != "runs\n" {
		t.Fatalf("the worker said %q, %v", line, err)
	}
}

// ignoring is a command whose leader and children ignore all signals except
// SIGKILL.
const ignoring = `trap '' HUP INT QUIT TERM; sh -c 'while :; do sleep 1000; done' & while :; do echo ready; wait; done`

// No process of a killed worker's commands remains.
func TestRunEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	once := builtin.RunInput{Argv: []string{"true"}}
	for name, w := range map[string]work{
		"at its first command": {},
		"later":                {First: once},
		"with a new guard":     {First: once, Fell: true},
		"that ends":            {Ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witness := newWitness(t)
			w.Second = witness.shell(ignoring)
			runWorker(t, w)
			witness.end()
		})
	}
}

// The guard ends with its worker.
func TestRunGuardEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]work{"killed": {}, "ends": {Ends: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witness := newWitness(t)
			f, err := os.OpenFile(witness.path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			w.Second.Shell = "echo ready"
			// The guard has its own files as 0 to 3.
			runWorker(t, w, f, f)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			witness.end()
		})
	}
}

// A group that is gone is not listed: its ID may be reused. No other command runs
// during this test.
func TestRunGuardForgets(t *testing.T) {
	s := newShop(t, weaver.Config{})
	for range 3 {
		s.run(builtin.RunInput{Shell: "sleep 1000 & echo done"})
		if groups, err := procgroup.Guarded(); err != nil || len(groups) > 0 {
			t.Errorf("the guard would end the groups %q, %v", groups, err)
		}
	}
	w := newWitness(t)
	h := s.enqueue(w.shell("echo $$; " + forever))
	s.says(h.ID(), "ready")
	pid, _, _ := strings.Cut(s.live(h.ID(), "stdout")[0], "\n")
	if groups, err := procgroup.Guarded(); err != nil || len(groups) != 1 || strings.TrimSpace(groups[0]) != pid {
		t.Errorf("the guard would end the groups %q, %v; want %s", groups, err, pid)
	}
}
