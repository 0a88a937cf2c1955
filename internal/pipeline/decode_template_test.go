package pipeline_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

const valued = `name: valued
env: {LANG: '{{"{{"}}x'}
tasks:
  a: {run: "echo one"}
  get: {http: {url: "http://example.com/"}}
  plain: {run: [echo, '{{"{{"}}x'], needs: [a]}
  b: {run: [echo, "{{.tasks.a.stdout}}", '{{"{{"}}x'], env: {N: "{{.tasks.get.json.n}}"}, needs: [a, get]}
  hook: {http: {url: "https://me:pw@example.com/{{.tasks.a.stdout}}", json: {n: "{{.tasks.get.json.n}}", x: '{{"{{"}}x'}}, needs: [a, get]}
`

func inputOf[T any](t *testing.T, s stored, name string) (in T) {
	t.Helper()
	if err := json.Unmarshal(s.tasks[name].Input, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

// Only the texts of a task that references needs are templates; its other texts
// keep their meaning.
func TestTemplates(t *testing.T) {
	t.Parallel()
	p := parse(t, valued)
	s := submit(t, p, pipeline.JobOptions{})
	if in := inputOf[builtin.RunInput](t, s, "plain"); in.Templates || in.Argv[1] != "{{x" || in.Env["LANG"] != "{{x" {
		t.Errorf("plain: %+v", in)
	}
	escaped := value.Escape("{{x")
	if in := inputOf[builtin.RunInput](t, s, "b"); !in.Templates || in.Argv[1] != "{{.tasks.a.stdout}}" || in.Argv[2] != escaped || in.Env["LANG"] != escaped || in.Env["N"] != "{{.tasks.get.json.n}}" {
		t.Errorf("b: %+v", in)
	}
	hook := inputOf[builtin.RequestInput](t, s, "hook")
	equal(t, "the request's body", string(hook.JSON), `{"n":"{{.tasks.get.json.n}}","x":"{{\"{\"}}{{\"{\"}}x"}`)
	equal(t, "the command", p.Tasks[3].Does(), "echo {{.tasks.a.stdout}} {{x")
	equal(t, "the request", p.Tasks[4].Does(), "POST https://example.com/{{.tasks.a.stdout}}")
}

// Values of kept tasks are filled in. The task's work stays the same, and its
// other references stay templates.
func TestFillKept(t *testing.T) {
	t.Parallel()
	p := parse(t, valued)
	kept := []string{"a", "plain"}
	if names := p.NeedsValues(kept); !slices.Equal(names, []string{"a"}) {
		t.Errorf("values of %v are needed", names)
	}
	one := &value.Output{Task: "a", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"{{one\n","stdout_bytes":6}`)}
	filled, err := p.Fill(map[string]*value.Output{"a": one})
	if err != nil {
		t.Fatal(err)
	}
	before, s := submit(t, p, pipeline.JobOptions{}), submit(t, p, pipeline.JobOptions{Kept: kept, Filled: filled})
	in := inputOf[builtin.RunInput](t, s, "b")
	if !in.Templates || value.Show(in.Argv[1]) != "{{one" || in.Env["N"] != "{{.tasks.get.json.n}}" {
		t.Errorf("b: %+v", in)
	}
	for _, name := range []string{"b", "hook"} {
		equal(t, "the work of "+name, s.tasks[name].Metadata[pipeline.MetaWork], before.tasks[name].Metadata[pipeline.MetaWork])
	}
	// With all values known, the texts are literals.
	n := &value.Output{Task: "get", Kind: value.Request, State: task.Succeeded, Raw: json.RawMessage(`{"status":200,"body":"{\"n\":7}","body_bytes":7}`)}
	if filled, err = p.Fill(map[string]*value.Output{"a": one, "get": n}); err != nil {
		t.Fatal(err)
	}
	s = submit(t, p, pipeline.JobOptions{Kept: []string{"a", "get"}, Filled: filled})
	in = inputOf[builtin.RunInput](t, s, "b")
	if in.Templates || in.Argv[1] != "{{one" || in.Argv[2] != "{{x" || in.Env["N"] != "7" || in.Env["LANG"] != "{{x" {
		t.Errorf("b: %+v", in)
	}
	hook := inputOf[builtin.RequestInput](t, s, "hook")
	equal(t, "the body of a request without templates", string(hook.JSON), `{"n":7,"x":"{{x"}`)
	equal(t, "its URL", hook.URL, "https://me:pw@example.com/%7B%7Bone")
	n.Raw = json.RawMessage(`{"status":200,"body":"{}","body_bytes":2}`)
	if _, err := p.Fill(map[string]*value.Output{"get": n}); err == nil || err.Error() != `task "b": env.N: {{.tasks.get.json.n}}: .tasks.get.json has no "n": it is {}` {
		t.Errorf("a value that is not there: %v", err)
	}
}
