package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// TestMain makes the test binary run as the program, which the kill test starts as separate processes.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const asProgram = "STDLIB_TEST_AS_PROGRAM"

func program(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--limit", "60", "--pace", "30ms", "--events", "--dir", dir)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// The program is killed again and again, and continues each time. The report is the same as without kills, no step
// starts again after its value was stored, and the store is consistent.
func TestKilledAtFiveMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	calm, killed := filepath.Join(t.TempDir(), "calm"), filepath.Join(t.TempDir(), "killed")
	if out, err := program(t, calm).CombinedOutput(); err != nil {
		t.Fatalf("without kills: %v\n%s", err, out)
	}
	var all string // output of the killed processes
	for i, moment := range []string{
		`^pid `,                           // the job is stored, and nothing has begun
		`"step.started"`,                  // the first step runs
		`^ ?[2-4]\d %`,                    // between tasks
		`^ ?[5-9]\d %`,                    // and once more
		`"step.started".*"node":"report"`, // the outputs are being joined
	} {
		said := killAt(t, program(t, killed), moment)
		if i > 0 && !strings.Contains(said, "continuing job") {
			t.Errorf("run %d did not continue, but said:\n%s", i+1, said)
		}
		all += said
	}
	out, err := program(t, killed).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("continuing job")) {
		t.Fatalf("after the kills: %v\n%s", err, out)
	}
	read := func(dir string) string {
		text, err := os.ReadFile(config{dir: dir}.reportFile())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := read(killed), read(calm); got != want {
		t.Errorf("the report after kills:\n%s\nwithout:\n%s", got, want)
	}
	checkSteps(t, killed, all+string(out))
}

// killAt starts the program and kills it as soon as it prints a line that
// matches. It returns the program's output.
func killAt(t *testing.T, cmd *exec.Cmd, moment string) string {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(moment)
	var said strings.Builder
	reached := false
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if !reached && at.MatchString(lines.Text()) {
			reached = true
			if err := cmd.Process.Kill(); err != nil {
				t.Errorf("kill at %s: %v", moment, err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if !reached {
		t.Fatalf("it ended before %s:\n%s%s", moment, &said, &stderr)
	}
	return said.String()
}

// checkSteps compares the starts of step functions printed by the processes with the steps in the store.
func checkSteps(t *testing.T, dir, printed string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "weaver-stdlib.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	snap, err := db.Snapshot(t.Context(), weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Error(v)
	}
	type key struct {
		task weaver.TaskID
		step string
	}
	stored := make(map[key]time.Time)
	for _, s := range snap.Steps {
		if s.State != task.StepCompleted {
			t.Errorf("step %s of task %s is %s", s.Name, s.TaskID, s.State)
		}
		stored[key{s.TaskID, s.Name}] = s.CompletedAt
	}
	if want := 60*2 + 1; len(stored) != want {
		t.Errorf("the store has %d steps, want %d", len(stored), want)
	}
	starts := make(map[key]int)
	for line := range strings.Lines(printed) {
		var ev struct {
			Event, Step string
			Timestamp   time.Time
			TaskID      weaver.TaskID `json:"task_id"`
			Node        string
		}
		if json.Unmarshal([]byte(line), &ev) != nil || ev.Event != "step.started" {
			continue // a line for people, or a line cut off by a kill
		}
		k := key{ev.TaskID, ev.Step}
		if starts[k]++; ev.Timestamp.Truncate(time.Microsecond).After(stored[k]) {
			t.Errorf("step %s of %s started at %s, after its value was stored at %s", ev.Step, ev.Node, ev.Timestamp, stored[k])
		}
	}
	for k := range stored {
		if starts[k] == 0 {
			t.Errorf("step %s of task %s has a value, but no process printed its start", k.step, k.task)
		}
	}
	if len(starts) != len(stored) {
		t.Errorf("%d steps started, and %d are stored", len(starts), len(stored))
	}
}

// output calls when at the first write that contains a text.
type output struct {
	mu   sync.Mutex
	text strings.Builder
	at   string
	when func()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if o.when != nil && bytes.Contains(p, []byte(o.at)) {
		o.when()
		o.when = nil
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A finished job is followed by a new one.
func TestRunsTwice(t *testing.T) {
	t.Parallel()
	out := &output{}
	cfg := config{dir: filepath.Join(t.TempDir(), "work"), limit: 3, out: out}
	for range 2 {
		if err := run(t.Context(), cfg); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if n := strings.Count(out.String(), "new job "); n != 2 || !strings.Contains(out.String(), "100 %: 4 of 4 tasks are done\ndone: ") {
		t.Errorf("%d new jobs:\n%s", n, out)
	}
}

func TestInterruptAndContinue(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	out := &output{at: " tasks are done", when: interrupt}
	cfg := config{dir: t.TempDir(), limit: 30, pace: 5 * time.Millisecond, out: out}
	if err := run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted run returned %v\n%s", err, out)
	}
	if err := run(t.Context(), cfg); err != nil || !strings.Contains(out.String(), "continuing job ") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The message for a failed job says where the reason is.
func TestFailedJob(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "broken.go"), []byte("not Go\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := &output{}
	cfg := config{dir: t.TempDir(), out: out}
	db, err := sqlite.Open(t.Context(), filepath.Join(cfg.dir, "weaver-stdlib.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Submit(t.Context(), newJob([]Package{{"broken", broken}})); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), " failed: `go run ./cmd/weaver ") {
		t.Errorf("%v\n%s", err, out)
	}
}
