package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// tree is a small GOROOT.
var tree = map[string]string{
	"VERSION":               "go9.9.9\ntime 2026-01-01T00:00:00Z\n",
	"src/a/a.go":            "package a\n\nfunc One() {}\n\nfunc (t *T[K]) Two() {\n\tOne()\n}\n\ntype T[K any] struct{}\n",
	"src/a/b/doc.go":        "// Package b has no functions.\npackage b\n",
	"src/a/a_test.go":       "package a\n\nfunc TestOne() {}\n",
	"src/a/testdata/bad.go": "no Go at all",
	"src/cmd/go/main.go":    "package main\n\nfunc main() {}\n",
	"src/z/asm.s":           "TEXT\n",
}

const treeCSV = `package,files,lines,functions,longest_function,longest_function_lines
a,1,9,2,T.Two,3
a/b,1,2,0,,0
`

func smallTree(t *testing.T) (goroot string) {
	t.Helper()
	goroot = t.TempDir()
	for name, text := range tree {
		name = filepath.Join(goroot, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return goroot
}

// output keeps what the program says, and calls when at the first line that
// contains a text.
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

func (o *output) requires(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.String(), text) {
			t.Fatalf("it did not say %q, but:\n%s", text, o)
		}
	}
}

// smallConfig is a run of the small tree without pauses.
func smallConfig(t *testing.T) (config, *output) {
	t.Helper()
	out := &output{}
	return config{dir: filepath.Join(t.TempDir(), "work"), goroot: smallTree(t), slots: 4, nap: 500 * time.Millisecond, out: out}, out
}

func (c config) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRunsTwice(t *testing.T) {
	t.Parallel()
	cfg, out := smallConfig(t)
	if err := run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.requires(t, "new job ", "kill", "failing on purpose, for the second of 2 times", "sleep: nap", "100 %: 5 of 5 tasks done",
		"go9.9.9 has 2 packages, 2 files, 11 lines and 2 functions")
	if got := cfg.read(t, reportCSV); got != treeCSV {
		t.Errorf("%s is\n%swant\n%s", reportCSV, got, treeCSV)
	}
	md := cfg.read(t, reportMD)
	if !strings.Contains(md, "| a | T.Two | 3 |") {
		t.Errorf("%s does not name the longest function:\n%s", reportMD, md)
	}

	if err := run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.requires(t, "succeeded: starting a new one")
	if again := cfg.read(t, reportMD); again != md {
		t.Errorf("another job on the same tree made another report:\n%s\nbefore:\n%s", again, md)
	}
	if err := verify(t.Context(), cfg); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// Per job: two counts of two steps, three tries of "ask", "before" and
	// "after" the nap, two files.
	out.requires(t, "22 starts (processes: 1)", "18 steps completed, 4 tries failed (tasks: 10, jobs: 2)", "cut off:   0 starts", "violations: 0")
}

func TestInterruptAndContinue(t *testing.T) {
	t.Parallel()
	cfg, out := smallConfig(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out.at, out.when = "retry: flaky", interrupt
	if err := run(ctx, cfg); !errors.Is(err, errInterrupted) {
		t.Fatalf("an interrupted run returned %v\n%s", err, out)
	}
	out.requires(t, "of 5 tasks are done, and the work of the others is kept")
	if err := run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.requires(t, "continuing job ", "100 %: 5 of 5 tasks done")
	if err := verify(t.Context(), cfg); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	cfg, out := smallConfig(t)
	job := submitOnly(t, cfg)
	cfg.fresh = true
	if err := run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out.requires(t, "giving up job "+job.ID.String()+" with 0 of 5 tasks done", "100 %: 5 of 5 tasks done")
}

// submitOnly leaves a job that no process has begun.
func submitOnly(t *testing.T, cfg config) weaver.JobInfo {
	t.Helper()
	if err := os.Mkdir(cfg.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), cfg.database())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := currentJob(t.Context(), client, cfg, newDisplay(cfg.out, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestFailedJobSaysWhy(t *testing.T) {
	t.Parallel()
	cfg, out := smallConfig(t)
	if err := os.WriteFile(filepath.Join(cfg.goroot, "src", "a", "broken.go"), []byte("not Go\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "failed") {
		t.Fatalf("a run with a file that does not parse returned %v\n%s", err, out)
	}
	out.requires(t, "count/a: ", "broken.go:1:1", "report: dependency_failed")
}

func TestVerifyFindsRepeatedSteps(t *testing.T) {
	t.Parallel()
	cfg, out := smallConfig(t)
	if err := run(t.Context(), cfg); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log := cfg.read(t, "steps.log")
	first, _, _ := strings.Cut(log, "\n")
	_, rest, _ := strings.Cut(first, " ")

	for what, tampered := range map[string]string{
		"a start after the value was stored": log + time.Now().UTC().Format(time.RFC3339Nano) + " " + rest + "\n",
		"a value whose start nobody saw":     strings.Replace(log, first+"\n", "", 1),
		"a task that the database lost":      strings.Replace(log, first[strings.LastIndex(first, " ")+1:], "01KABCDEFGHJKMNPQRSTVWXYZ0", 1),
		"a line that is torn":                log + first[:20] + "\n",
	} {
		if err := os.WriteFile(filepath.Join(cfg.dir, "steps.log"), []byte(tampered), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := verify(t.Context(), cfg); err == nil {
			t.Errorf("verify does not see %s:\n%s", what, out)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nonsense"}, {"now"}, {"verify", "--pace", "1s"}, {"--slots", "0"}, {"--limit", "-1"}} {
		var stderr bytes.Buffer
		if code := command(t.Context(), args, &stderr, &stderr); code != exitUsage || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d and %q, want %d and a reason", args, code, &stderr, exitUsage)
		}
	}
	var stderr bytes.Buffer
	if code := command(t.Context(), []string{"verify", "--dir", t.TempDir()}, &stderr, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "nothing to verify") {
		t.Errorf("verify of an empty folder: exit code %d and %q", code, &stderr)
	}
}
