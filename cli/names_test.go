package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// jobs stores jobs with one task each in the default store, in this order, and returns their IDs.
func jobs(t *testing.T, names ...string) []weaver.JobID {
	t.Helper()
	db, err := sqlite.Open(t.Context(), strings.TrimPrefix(os.Getenv("WEAVER_STORE"), "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []weaver.JobID
	for _, name := range names {
		j := weaver.NewJob(name)
		j.Add("work", weaver.Define[int, int]("acme.demo.ok.v1").With(1))
		h, err := client.Submit(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.ID())
	}
	return ids
}

// shows checks which job an argument names.
func shows(t *testing.T, arg string, want weaver.JobID) {
	t.Helper()
	code, stdout, stderr := run(t, "job", "show", arg)
	if code != 0 || !strings.HasPrefix(stdout, "Job "+want.String()+" ") {
		t.Errorf("job show %s: exit code %d, want 0 and %s:\n%s%s", arg, code, want, stdout, stderr)
	}
}

// The order in cli/names.go: ID, ID prefix, name and file.
func TestNamesInOrder(t *testing.T) {
	fresh(t)
	first := jobs(t, "nightly")[0]
	beginning := first.String()[:25]
	second := jobs(t, first.String(), beginning, beginning[:3])
	shows(t, first.String(), first)
	shows(t, beginning, first)
	shows(t, strings.ToLower(beginning), first)
	shows(t, beginning[:3], second[2]) // too short for an ID: a name
	shows(t, "nightly", first)
	shows(t, "nightly", jobs(t, "nightly", "other")[0])
}

// The latest job with a word as its name or its file counts.
func TestNamesOfFiles(t *testing.T) {
	fresh(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.yaml", []byte("name: a\ntasks:\n  work: {run: \"true\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "submit", "a.yaml"); code != 0 {
		t.Fatal(stderr)
	}
	_, stdout, _ := run(t, "job", "show", "a")
	id, _, _ := strings.Cut(strings.TrimPrefix(stdout, "Job "), " ")
	ofFile, err := task.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	shows(t, "a.yaml", ofFile)
	// A file that is gone or no longer a pipeline still names its jobs.
	if err := os.Remove("a.yaml"); err != nil {
		t.Fatal(err)
	}
	shows(t, "a.yaml", ofFile)
	shows(t, filepath.Join("..", filepath.Base(mustAbs(t, ".")), "a.yaml"), ofFile)
	shows(t, "a.yaml", jobs(t, "a.yaml")[0])
	shows(t, "./a.yaml", ofFile)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// With several slashes the last split into JOB and TASK that finds a task counts.
func TestNamesOfTasks(t *testing.T) {
	fresh(t)
	ids := jobs(t, "a", "a/work")
	for arg, job := range map[string]weaver.JobID{"a/work": ids[0], "a/work/work": ids[1], ids[0].String() + "/work": ids[0]} {
		if code, stdout, stderr := run(t, "task", "show", arg); code != 0 || !strings.Contains(stdout, job.String()+`, as "work"`) {
			t.Errorf("task show %s: exit code %d, want the task of %s:\n%s%s", arg, code, job, stdout, stderr)
		}
	}
	shows(t, "a/work", ids[1])
	if code, stdout, _ := run(t, "why", "a/work"); code != 0 || !strings.HasPrefix(stdout, "Job "+ids[1].String()) {
		t.Errorf("why a/work: exit code %d, want the job of that name:\n%s", code, stdout)
	}
	for _, arg := range []string{"", "/", "a/", "/work", "a//work", "a/work/", "b/work", "a/work/other"} {
		if code, stdout, stderr := run(t, "task", "show", arg); code != 2 || stdout != "" || stderr == "" {
			t.Errorf("task show %q: exit code %d:\n%s%s", arg, code, stdout, stderr)
		}
	}
}

// Every prefix of an ID covers the ID, up to the limits of the ID range.
func TestIDRange(t *testing.T) {
	t.Parallel()
	const first, last = "00000000000000000000000000", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
	for beginning, want := range map[string][3]string{ // the zero ID prints as ""
		"0000": {"", "0000ZZZZZZZZZZZZZZZZZZZZZZ", "00010000000000000000000000"},
		"7zzz": {"7ZZZ0000000000000000000000", last, ""},
		"01KB": {"01KB0000000000000000000000", "01KBZZZZZZZZZZZZZZZZZZZZZZ", "01KC0000000000000000000000"},
		"01K":  {}, "8000": {}, "01KU": {}, "": {}, first: {}, first + "0": {}, "é000": {},
	} {
		from, to, after := cli.IDRange(beginning)
		if got := [3]string{from, to, after}; got != want {
			t.Errorf("%q covers %v, want %v", beginning, got, want)
		}
	}
}

// A prefix of an ID of the other kind is refused, and the message names that kind.
func TestNamesOfTheOtherKind(t *testing.T) {
	taskID := fresh(t).String()
	jobID := jobs(t, "nightly")[0].String()
	for _, tt := range [][3]string{{"task", jobID, " is a job, not a task"}, {"job", taskID, " is a task, not a job"}} {
		code, stdout, stderr := run(t, tt[0], "show", tt[1][:25])
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "weaver: "+tt[1]+tt[2]) {
			t.Errorf("%s show %s: exit code %d, want 2 and %q:\n%s%s", tt[0], tt[1][:25], code, tt[2], stdout, stderr)
		}
	}
}

// reads is a store that counts requested rows.
type reads struct {
	*memstore.Store
	calls, rows int
}

func (r *reads) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	r.calls, r.rows = r.calls+1, r.rows+store.PageLimit(f.Limit)
	return r.Store.List(ctx, ns, f)
}

func (r *reads) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	r.calls, r.rows = r.calls+1, r.rows+store.PageLimit(f.Limit)
	return r.Store.Jobs(ctx, ns, f)
}

// A prefix of an ID is looked up as a range: even among many IDs only a few rows are read.
func TestNamesReadARange(t *testing.T) {
	t.Parallel()
	st := &reads{Store: memstore.New()}
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var last *weaver.Handle[int]
	for i := range 300 {
		if last, err = weaver.Define[int, int]("acme.demo.ok.v1").Enqueue(t.Context(), client, i, weaver.IdempotencyKey(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	const few = 2 * 6 // jobs and tasks
	got, err := cli.ResolveTask(t.Context(), client, last.ID().String()[:25])
	if err != nil || got != last.ID() || st.calls != 2 || st.rows > few {
		t.Errorf("got %s, %v; want %s; %d reads of up to %d rows, want 2 of up to %d", got, err, last.ID(), st.calls, st.rows, few)
	}
	st.calls, st.rows = 0, 0
	if _, err = cli.ResolveTask(t.Context(), client, last.ID().String()[:4]); err == nil || st.calls != 2 || st.rows > few {
		t.Errorf("%v; %d reads of up to %d rows, want 2 of up to %d", err, st.calls, st.rows, few)
	}
}
