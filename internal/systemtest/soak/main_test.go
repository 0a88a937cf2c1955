package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

// childEnv makes this test binary a worker or a producer. Its value is the childConfig as JSON.
const childEnv = "WEAVER_STORM_CHILD"

// timeout is the maximum wait of a test for an expected event.
const timeout = 5 * time.Minute

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	if err := childMain(raw); err != nil {
		fmt.Fprintln(os.Stderr, failedPrefix, err)
		os.Exit(1)
	}
}

// failedPrefix begins the last line of a process that failed.
const failedPrefix = "process:"

// endedByItself reports whether a process ended by itself, from its stderr.
func endedByItself(stderr string) bool {
	for _, word := range []string{failedPrefix + " ", "panic: ", "fatal error: "} {
		if strings.HasPrefix(stderr, word) || strings.Contains(stderr, "\n"+word) {
			return true
		}
	}
	return false
}

// childConfig is the configuration of a process.
type childConfig struct {
	Role  string        // worker, producer, layers (a worker of a layered job) or bulk
	Dir   string        // of all files
	Life  int           // its number; process IDs may be reused
	Plan  plan          // the trigger of its kill
	Pause time.Duration // maximum duration of a step function
	Tasks int           // producer: total number of tasks; bulk: tasks per call
	Nodes int           // producer: nodes of the job

	Seed   uint64        // layers: of the job
	URL    string        // layers: of a PostgreSQL database
	Newest weaver.TaskID // bulk: excludes later tasks
	Visits int           // transactions of the user per visitor
}

// plan triggers the kill of a process at the right moment.
type plan struct {
	// A worker reports the moment after this many lines of the step log. A producer kills itself, Delay after this
	// many acknowledgements.
	Lines int64

	// A worker kills itself in the Nth call of this store method: Delay after the call began (for StepTx: after its
	// function returned). With After, it kills itself when the store has answered and the answer is not used yet.
	Call  string
	Nth   int
	After bool
	Delay time.Duration
}

func childMain(raw string) error {
	var o childConfig
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	ctx := context.Background()
	switch o.Role {
	case "worker":
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		w, err := newWorker(ctx, o, noDefects)
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // the end of stdin asks for a drain
			w.log.process(lineProcess, phaseDrain)
			stop()
		}()
		return w.run(ctx)
	case "layers":
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // the end of stdin asks for a drain
			stop()
		}()
		return runLayers(ctx, o)
	case "bulk":
		return runBulk(ctx, o)
	case "producer":
		return runProducer(ctx, o, os.Stdin)
	}
	return fmt.Errorf("no role %q", o.Role)
}

// process is a worker or producer.
type process struct {
	t      testing.TB
	life   int
	role   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	moment chan struct{} // closed when it reports the moment of its plan
	ended  chan struct{} // closed after its end, with cmd.ProcessState set
}

// dieNow kills its own process like kill -9.
func dieNow(log *stepLog, how string) {
	log.process(lineKill, how)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// startProcess starts a process, and kills it at the end of the test if it still runs.
func startProcess(t testing.TB, o childConfig) *process {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(filepath.Join(o.Dir, fmt.Sprintf("stderr-%d", o.Life)))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, life: o.Life, role: o.Role, cmd: exec.Command(os.Args[0]), moment: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	p.cmd.Stderr = stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stderr.Close() // the process has its own
	go func() {
		defer close(p.ended)
		said := false
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if !said && lines.Text() == momentWord {
				said = true
				close(p.moment)
			}
		}
		_ = p.cmd.Wait() // ProcessState keeps the result
	}()
	t.Cleanup(p.kill)
	return p
}

// momentWord is printed by a process at the moment of its plan.
const momentWord = "moment"

// kill kills the process like kill -9 and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// send writes a line to the process.
func (p *process) send(line string) {
	_, _ = io.WriteString(p.stdin, line+"\n") // it may have been killed
}

// askToEnd closes the stdin of the process. A worker then drains; a producer ends when it has enqueued all requested
// tasks.
func (p *process) askToEnd() { _ = p.stdin.Close() } // it may have ended

// end waits for the end of a process that was asked to end.
func (p *process) end() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.t.Fatalf("the %s of life %d does not end", p.role, p.life)
	}
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("the %s of life %d: %v", p.role, p.life, p.cmd.ProcessState)
	}
}

// readLines calls fn with the complete lines of a file, or not at all if the file is missing.
func readLines(path string, fn func(line string) error) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return fmt.Errorf("%s:%d: the line %q is torn", path, n, line)
		}
		if err := fn(string(line)); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		text = rest
	}
	return nil
}
