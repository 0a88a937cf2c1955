//go:build unix && !aix

package builtin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// each runs a task "all" for the values in a command's output. It returns the task
// and its children by name.
func (s *shop) each(list string, in builtin.ForeachInput, opts ...weaver.EnqueueOption) (weaver.TaskInfo, map[string]weaver.TaskInfo) {
	s.Helper()
	return s.eachOf(s.startEach(list, in, opts...))
}

func (s *shop) startEach(list string, in builtin.ForeachInput, opts ...weaver.EnqueueOption) *weaver.JobHandle {
	s.Helper()
	in.Task = "list"
	j := weaver.NewJob("each")
	first := j.Add("list", builtin.Run.With(builtin.RunInput{Argv: []string{"printf", "%s", list}}))
	j.Add("all", builtin.Foreach.With(in, append([]weaver.EnqueueOption{weaver.NoRetry()}, opts...)...), weaver.Needs(first))
	h, err := s.Submit(s.Context(), j)
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// eachOf waits for the end of the job.
func (s *shop) eachOf(h *weaver.JobHandle) (all weaver.TaskInfo, children map[string]weaver.TaskInfo) {
	s.Helper()
	if _, err := h.Wait(s.Context()); err != nil {
		s.Fatal(err)
	}
	tasks, err := s.JobTasks(s.Context(), h.ID())
	if err != nil {
		s.Fatal(err)
	}
	children = make(map[string]weaver.TaskInfo)
	for _, t := range tasks {
		switch {
		case t.Node == "all":
			all = t
		case !t.ParentID.IsZero():
			children[t.Node] = t
		}
	}
	return all, children
}

// Each value has a child with its own name, gets the unchanged value, and inherits
// the options of the task.
func TestForeach(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	odd := []string{"a b", "$(touch pwned)", `'q"`, "{{.tasks.list.stdout}}", "{{.item}}", "-n", "é"}
	in := builtin.ForeachInput{
		Run: &builtin.RunInput{
			Argv: []string{"sh", "-c", `printf '<%s|%s|%s>' "$1" "$V" "$CODE"`, "sh", "{{.item}}"}, Templates: true,
			Env: map[string]string{"V": "v{{.item}}", "CODE": "{{.tasks.list.exit_code}}"},
		},
		MaxParallel: 2,
	}
	all, children := s.each("\n"+strings.Join(odd, "\n")+"\n\n", in, weaver.Timeout(time.Hour), weaver.Priority(3), weaver.Label("a", "b"), weaver.MaxAttempts(4), weaver.Backoff(time.Second))
	if all.State != weaver.StateSucceeded || decode[builtin.ForeachOutput](t, all.Output).Values != len(odd) || len(children) != len(odd) {
		t.Fatalf("%s with %s, and %d children: %+v", all.State, all.Output, len(children), all.Error)
	}
	for _, v := range odd {
		c := children["all["+v+"]"]
		if got, want := decode[builtin.RunOutput](t, c.Output).Stdout, "<"+v+"|v"+v+"|0>"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if c.Timeout != time.Hour || c.Priority != 3 || c.Labels["a"] != "b" || c.MaxAttempts != 4 || c.Backoff != time.Second || c.ConcurrencyLimit != 2 || !strings.Contains(c.ConcurrencyKey, all.ID.String()) {
			t.Errorf("the child is %+v", c)
		}
	}
	if _, err := os.Stat("pwned"); err == nil {
		t.Error("a value was run")
	}

	// An empty list is a success, and without templates a text is literal.
	if all, children := s.each("\n", in); all.State != weaver.StateSucceeded || len(children) != 0 {
		t.Errorf("without values it is %s: %+v", all.State, all.Error)
	}
	plain := builtin.ForeachInput{Run: &builtin.RunInput{Argv: []string{"printf", "%s", "{{.item}}"}}, ConcurrencyKey: "disk", ConcurrencyLimit: 3}
	_, children = s.each("x", plain)
	if c := children["all[x]"]; decode[builtin.RunOutput](t, c.Output).Stdout != "{{.item}}" || c.ConcurrencyKey != "disk" || c.ConcurrencyLimit != 3 {
		t.Errorf("%+v", c)
	}
}

// The entries of an array are values, and keep their type in JSON.
func TestForeachRequest(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	v := &visits{answer: func(http.ResponseWriter, *http.Request) {}}
	server := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(server.Close)
	in := builtin.ForeachInput{Request: &builtin.RequestInput{URL: server.URL + "/{{.item}}", JSON: json.RawMessage(`{"v":"{{.item}}"}`), Templates: true}}
	_, children := s.each(`[{"n": 1.50}]`, in)
	if names := slices.Collect(maps.Keys(children)); !slices.Equal(names, []string{`all[{"n":1.50}]`}) {
		t.Fatalf("the children are %q", names)
	}
	if last := v.last(t); last.path != "/%7B%22n%22:1.50%7D" || last.body != `{"v":{"n":1.50}}` {
		t.Errorf("the request was %+v", last)
	}
	poll := builtin.ForeachInput{Request: &builtin.RequestInput{URL: "{{.item}}", Templates: true, Until: &builtin.Until{Status: []int{200}, Every: builtin.Duration(time.Second), Timeout: builtin.Duration(time.Minute)}}}
	_, children = s.each(server.URL, poll, weaver.Timeout(time.Hour))
	for name, c := range children {
		if c.State != weaver.StateSucceeded || c.Timeout != 0 {
			t.Errorf("%s is %s with a timeout of %s", name, c.State, c.Timeout)
		}
	}
}

// Values that cannot become nodes fail the task at once.
func TestForeachFails(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	echo := builtin.ForeachInput{Run: &builtin.RunInput{Argv: []string{"echo", "{{.item}}"}, Templates: true}}
	url := builtin.ForeachInput{Request: &builtin.RequestInput{URL: "{{.item}}", Templates: true}}
	need := builtin.ForeachInput{Run: &builtin.RunInput{Argv: []string{"echo", "{{.tasks.other.stdout}}"}, Templates: true}}
	heavy := builtin.ForeachInput{Run: &builtin.RunInput{Argv: []string{"echo", strings.Repeat("x", 50_000)}}}
	for _, tc := range []struct {
		list string
		in   builtin.ForeachInput
		says string
	}{
		{"a\nb\na", echo, `task "list" has the value "a" twice, as values 1 and 3: let it write each once, as sort -u does`},
		{`["1", 1]`, echo, `task "list" has the value "1" twice`},
		{strings.Repeat("x", 5000), echo, `…", has 5000 bytes, and at most 4096 are allowed`},
		{strings.Repeat("x", 5000), echo, `value 1 of task "list", "xxx`},
		{"x" + strings.Repeat("\n", 10) + "ftp://a", url, `value "x": url begins with neither http:// nor https://`},
		{`["a", "\u0000"]`, echo, `value "\x00": argv[1] contains a NUL character`},
		{"a", need, `value "a": argv[1]: {{.tasks.other.stdout}}: the task needs no task "other", or it was deleted`},
		{lines(1000), heavy, `task "list" has 1000 values, for which`},
		{lines(10_001), echo, `task "list" has 10001 values, and at most 10000 are allowed`},
	} {
		all, children := s.each(tc.list, tc.in, weaver.MaxAttempts(3))
		if all.Error == nil || !strings.Contains(all.Error.Message, tc.says) || all.AttemptNo != 1 || len(children) != 0 {
			t.Errorf("%+v after %d attempts, with %d children, want %s", all.Error, all.AttemptNo, len(children), tc.says)
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// A failed child fails the task, but no other child. Its retry resumes the task, and children
// that succeeded do not run again.
func TestForeachRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	dir := t.TempDir()
	in := builtin.ForeachInput{Run: &builtin.RunInput{Argv: []string{"sh", "-c", `echo "$1" >>ledger; test "$1" != b || test -f good`, "sh", "{{.item}}"}, Templates: true, Dir: dir}}
	h := s.startEach("a\nb\nc", in)
	all, children := s.eachOf(h)
	if all.State != weaver.StateFailed || all.Error.Kind != task.KindDependencyFailed || children["all[c]"].State != weaver.StateSucceeded {
		t.Fatalf("%s: %+v; %+v", all.State, all.Error, children)
	}
	if err := os.WriteFile(filepath.Join(dir, "good"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Retry(t.Context(), children["all[b]"].ID); err != nil {
		t.Fatal(err)
	}
	if all, children = s.eachOf(h); all.State != weaver.StateSucceeded || len(children) != 3 {
		t.Errorf("%s with %d children", all.State, len(children))
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if got := strings.Fields(string(raw)); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "b", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Outside a job, a retry of the failed child resumes the task, and no other child
// runs again.
func TestForeachAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	dir := t.TempDir()
	h, err := builtin.Foreach.Enqueue(t.Context(), s, builtin.ForeachInput{
		Values: []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`"b"`)},
		Run:    &builtin.RunInput{Argv: []string{"sh", "-c", `echo "$1" >>ledger; test "$1" != b || test -f good`, "sh", "{{.item}}"}, Templates: true, Dir: dir},
	}, weaver.NoRetry())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), `its child "foreach[b]" (`) {
		t.Fatal(err)
	}
	history, err := s.History(t.Context(), h.ID())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "good"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range history.Needs {
		if need.Node != "foreach[b]" {
			continue
		}
		if err := s.Retry(t.Context(), need.ID); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := h.Wait(t.Context()); err != nil || out.Values != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if got := strings.Fields(string(raw)); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestForeachMistakes(t *testing.T) {
	t.Parallel()
	echo := &builtin.RunInput{Argv: []string{"echo", "{{.item}}"}, Templates: true}
	for says, in := range map[string]builtin.ForeachInput{
		"nothing to run: give run or request":                         {Task: "a"},
		"run and request are both given":                              {Run: echo, Request: &builtin.RequestInput{URL: "http://a/"}},
		"task and values are both given":                              {Run: echo, Task: "a", Values: []json.RawMessage{json.RawMessage("1")}},
		"max_parallel: -1 is negative":                                {Run: echo, MaxParallel: -1},
		"max_parallel and concurrency_key are both given":             {Run: echo, MaxParallel: 1, ConcurrencyKey: "a"},
		"url: {{.item}} stands where it would choose the host":        {Request: &builtin.RequestInput{URL: "http://{{.item}}/", Templates: true}},
		`method: "a b" is none`:                                       {Request: &builtin.RequestInput{URL: "{{.item}}", Method: "a b", Templates: true}},
		"argv[0]: {{.item.a}} names a part of a value that has none":  {Run: &builtin.RunInput{Argv: []string{"{{.item.a}}"}, Templates: true}},
		"env.A: {{.params.x}} is not a value of a task":               {Run: &builtin.RunInput{Shell: "x", Env: map[string]string{"A": "{{.params.x}}"}, Templates: true}},
		"nothing to run: give argv (a program and its arguments) or ": {Run: &builtin.RunInput{}},
	} {
		if err := in.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", in, err, says)
		}
	}
	if err := (builtin.ForeachInput{Run: echo}).Validate(); err != nil {
		t.Error(err)
	}
	if got := value.KindOf(builtin.Foreach.Name()); got != value.Other {
		t.Errorf("its kind is %s", got)
	}
}
