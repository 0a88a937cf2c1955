package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// stored is a job as a store holds it.
type stored struct {
	edges map[string][]string // need/kind, by task name
	job   weaver.JobInfo
	order []string
	tasks map[string]weaver.TaskInfo
	needs map[string][]string
	kinds map[string]task.EdgeKind // of all edges of a task, by task name
}

// submit stores a job, which must succeed for every accepted file.
func submit(t testing.TB, p *pipeline.Pipeline, opts pipeline.JobOptions) stored {
	t.Helper()
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.Submit(t.Context(), p.Job(opts))
	if err != nil {
		t.Fatalf("what Parse accepts must make a job: %v", err)
	}
	job, err := client.Job(t.Context(), h.ID())
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := client.JobTasks(t.Context(), h.ID())
	if err != nil {
		t.Fatal(err)
	}
	s := stored{job: job, tasks: make(map[string]weaver.TaskInfo), needs: make(map[string][]string), kinds: make(map[string]task.EdgeKind), edges: make(map[string][]string)}
	for _, info := range tasks {
		s.order = append(s.order, info.Node)
		s.tasks[info.Node] = info
		history, err := client.History(t.Context(), info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, need := range history.Needs {
			s.needs[info.Node] = append(s.needs[info.Node], need.Node)
			s.kinds[info.Node] = need.Kind
			s.edges[info.Node] = append(s.edges[info.Node], need.Node+"/"+string(need.Kind))
		}
	}
	return s
}

func input[T any](t testing.TB, s stored, name string) T {
	t.Helper()
	var in T
	if err := json.Unmarshal(s.tasks[name].Input, &in); err != nil {
		t.Fatalf("input of %s: %v", name, err)
	}
	return in
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join("testdata", "ok", "every-key.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	p := parse(t, string(src))
	s := submit(t, p, pipeline.JobOptions{BaseDir: base, Queue: "files", Metadata: map[string]string{"file": "every-key.yaml", "digest": p.Digest()}})

	equal(t, "the name", s.job.Name, "every key")
	equal(t, "the budget", s.job.Budget, weaver.Budget{
		MaxAttemptsPerTask: 4, MaxTotalAttempts: 50, MaxDuration: 90 * time.Minute, MaxCost: 5_000_000, MaxRepairs: 1, MaxNoProgress: 20,
	})
	equal(t, "the job's metadata", s.job.Meta["file"]+" "+s.job.Meta["digest"], "every-key.yaml "+p.Digest())
	equal(t, "the order", strings.Join(s.order, ", "), "fetch, clean/data, charge, report, notify, ping")

	fetch := s.tasks["fetch"]
	equal(t, "type", fetch.Type, builtin.Run.Name())
	equal(t, "queue", fetch.Queue, "files")
	equal(t, "priority", fetch.Priority, 1)
	equal(t, "attempts, cut by the budget", fetch.MaxAttempts, 4)
	equal(t, "backoff", fetch.Backoff, 500*time.Millisecond)
	equal(t, "longest backoff", fetch.BackoffMax, time.Minute)
	equal(t, "timeout", fetch.Timeout, 90*time.Second)
	equal(t, "concurrency key", fetch.ConcurrencyKey, "network")
	equal(t, "concurrency limit", fetch.ConcurrencyLimit, 1)
	if want := map[string]string{"team": "infra", "tier": "1"}; !maps.Equal(fetch.Labels, want) {
		t.Errorf("labels are %v, want %v", fetch.Labels, want)
	}
	run := input[builtin.RunInput](t, s, "fetch")
	equal(t, "shell", run.Shell, "set -e\ncurl -sf http://127.0.0.1:9000/data.csv \\\n  -o data.csv\n")
	equal(t, "absolute dir", run.Dir, "/tmp")
	wantEnv := map[string]string{"LANG": "C", "PORT": "9090", "DEBUG": "true", "RATIO": "1.10", "ZIP": "01234", "EMPTY": "", "URL": "http://127.0.0.1"}
	if !maps.Equal(run.Env, wantEnv) {
		t.Errorf("env is %v, want %v", run.Env, wantEnv)
	}
	if want := []string{"*", "AWS_REGION", "GIT_*", "HTTPS_PROXY"}; !slices.Equal(run.InheritEnv, want) {
		t.Errorf("inherit_env is %v, want %v", run.InheritEnv, want)
	}

	clean := s.tasks["clean/data"]
	equal(t, "attempts of the budget", clean.MaxAttempts, 4)
	equal(t, "default priority", clean.Priority, 5)
	equal(t, "limit", clean.ConcurrencyLimit, 2)
	run = input[builtin.RunInput](t, s, "clean/data")
	if want := []string{"python3", "clean.py", "--level", "3", "true"}; !slices.Equal(run.Argv, want) {
		t.Errorf("argv is %q, want %q", run.Argv, want)
	}
	equal(t, "dir of the pipeline", run.Dir, filepath.Join(base, "work"))

	equal(t, "type", s.tasks["charge"].Type, "acme.billing.charge.v1")
	equal(t, "input", string(s.tasks["charge"].Input), `{"amount":12.50,"currency":"EUR","lines":[1,"two",null,null,true],"note":"010"}`)
	equal(t, "no input", string(s.tasks["report"].Input), "null")

	notify := input[builtin.RequestInput](t, s, "notify")
	equal(t, "method", notify.Method, "POST")
	equal(t, "url", notify.URL, "http://127.0.0.1:9000/hook")
	equal(t, "header", notify.Headers["X-Request-Id"], "7")
	equal(t, "json", string(notify.JSON), `{"ok":true,"big":123456789012345678901234567890,"small":1.50,"none":null}`)
	equal(t, "timeout", time.Duration(notify.Timeout), 5*time.Second)
	equal(t, "redirects", *notify.MaxRedirects, 0)
	if want := []int{200, 204}; !slices.Equal(notify.Expect, want) {
		t.Errorf("expect is %v, want %v", notify.Expect, want)
	}
	ping := input[builtin.RequestInput](t, s, "ping")
	equal(t, "body", ping.Body, "hello")
	equal(t, "one status", len(ping.Expect), 1)

	wantNeeds := map[string][]string{"clean/data": {"fetch"}, "charge": {"fetch", "clean/data"}, "notify": {"charge", "report"}}
	for name, needs := range p.Needs() {
		slices.Sort(s.needs[name])
		slices.Sort(needs)
		want := slices.Sorted(slices.Values(wantNeeds[name]))
		if !slices.Equal(s.needs[name], want) || !slices.Equal(needs, want) {
			t.Errorf("%s needs %q in the store and %q in the pipeline, want %q", name, s.needs[name], needs, want)
		}
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, budget, retry string
		want                int
	}{
		{"a command is not repeated unless asked", "", "", 1},
		{"the budget asks", "budget: {max_attempts_per_task: 3}", "", 3},
		{"the task asks", "", "retry: {max_attempts: 7}", 7},
		{"the task asks for less", "budget: {max_attempts_per_task: 3}", "retry: {max_attempts: 2}", 2},
		{"the budget allows less", "budget: {max_attempts_per_task: 3}", "retry: {max_attempts: 7}", 3},
		{"the task asks for pauses only", "budget: {max_attempts_per_task: 3}", "retry: {base: 1s}", 3},
	} {
		p := parse(t, "name: a\n"+tc.budget+"\ntasks:\n  a:\n    run: echo\n    "+tc.retry+"\n")
		equal(t, tc.name+": attempts", submit(t, p, pipeline.JobOptions{}).tasks["a"].MaxAttempts, tc.want)
	}
}

func TestDirs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, tc := range []struct{ pipeline, task, want string }{
		{"", "", base},
		{"dir: a", "", filepath.Join(base, "a")},
		{"dir: a", "dir: b", filepath.Join(base, "b")},
		{"dir: a", "dir: ../b/", filepath.Join(base, "../b")},
		{"dir: /x/y", "", "/x/y"},
		{"dir: a", "dir: /x/./y", "/x/y"},
	} {
		p := parse(t, "name: a\n"+tc.pipeline+"\ntasks:\n  a:\n    run: echo\n    "+tc.task+"\n")
		got := input[builtin.RunInput](t, submit(t, p, pipeline.JobOptions{BaseDir: base}), "a").Dir
		equal(t, tc.pipeline+" "+tc.task, got, tc.want)
	}
	p := parse(t, "name: a\ntasks: {a: {run: echo}, b: {run: echo, dir: x}}\n")
	s := submit(t, p, pipeline.JobOptions{})
	equal(t, "dir without a base", input[builtin.RunInput](t, s, "a").Dir, "")
	equal(t, "relative dir without a base", input[builtin.RunInput](t, s, "b").Dir, "x")
	equal(t, "the default queue", s.tasks["a"].Queue, "default")
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join("testdata", "ok", "anchors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := submit(t, parse(t, string(src)), pipeline.JobOptions{})
	equal(t, "what b says itself", input[builtin.RunInput](t, s, "b").Shell, "echo b")
	equal(t, "what b takes over", s.tasks["b"].Timeout, time.Minute)
	equal(t, "what c merges in a merge", s.tasks["c"].MaxAttempts, 9)
	equal(t, "what c takes over in a merge", s.tasks["c"].Backoff, time.Second)
	equal(t, "the first of several", s.tasks["c"].Priority, 2)
	equal(t, "the second of several", input[builtin.RunInput](t, s, "c").Shell, "echo a")
	if got, want := input[builtin.RunInput](t, s, "c").Env, map[string]string{"LANG": "C", "MORE": "1"}; !maps.Equal(got, want) {
		t.Errorf("env is %v, want %v", got, want)
	}
}

// YAML 1.1 reads these names as true, false, numbers and null.
func TestNames(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join("testdata", "ok", "names.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := submit(t, parse(t, string(src)), pipeline.JobOptions{})
	equal(t, "the pipeline", s.job.Name, "2024")
	equal(t, "the tasks", strings.Join(s.order, " "), "on yes no 1 1.10 null db:migrate ünïcödé 日本")
	equal(t, "needs of yes", len(s.needs["yes"]), 5)
	equal(t, "the command of no", input[builtin.RunInput](t, s, "no").Shell, "false")
}

// The conditions of a file become the edges of the job.
func TestConditions(t *testing.T) {
	t.Parallel()
	p := parse(t, string(files(t, "ok")["conditions"]))
	equal(t, "the conditions", fmt.Sprint(p.Conditions()), "map[alarm:failed tidy:done]")
	s := submit(t, p, pipeline.JobOptions{BaseDir: "/base"})
	for name, want := range map[string]task.EdgeKind{"clean": task.OnSuccess, "alarm": task.OnFailed, "tidy": task.OnDone} {
		equal(t, "the kind of the edges of "+name, s.kinds[name], want)
		equal(t, "the edges of "+name, len(s.needs[name]), 2)
	}
	equal(t, "lint may fail", s.tasks["lint"].AllowFailure, true)
	equal(t, "clean may fail", s.tasks["clean"].AllowFailure, false)
}
