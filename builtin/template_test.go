//go:build unix && !aix

package builtin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// The name of a task's type determines its values.
func TestKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]value.Kind{builtin.Run.Name(): value.Command, builtin.Request.Name(): value.Request, "a.b.c.v1": value.Other} {
		if got := value.KindOf(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// chain runs two tasks, where the second needs the first, named "first". It
// returns the second.
func (s *shop) chain(first, second weaver.Draft) weaver.TaskInfo {
	s.Helper()
	j := weaver.NewJob("chain")
	j.Add("second", second, weaver.Needs(j.Add("first", first)))
	h, err := s.Submit(s.Context(), j)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := h.Wait(s.Context()); err != nil {
		s.Fatal(err)
	}
	tasks, err := s.JobTasks(s.Context(), h.ID())
	if err != nil {
		s.Fatal(err)
	}
	for _, t := range tasks {
		if t.Node == "second" && t.State.Terminal() {
			if t.Error == nil {
				t.Error = &task.Error{}
			}
			return t
		}
	}
	s.Fatalf("%+v", tasks)
	panic("unreachable")
}

func decode[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// The output of a need reaches an argument and a variable unchanged.
func TestRunTemplates(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	odd := "\"quotes\" 'and' spaces  $(touch pwned) `x` \\n %s\n\n  {{.tasks.first.stdout}} é"
	res := s.chain(
		builtin.Run.With(builtin.RunInput{Argv: []string{"printf", "%s\n", odd}}),
		builtin.Run.With(builtin.RunInput{
			Argv:      []string{"sh", "-c", `printf '<%s|%s|%s>' "$1" "$V" "$PLAIN"`, "sh", "{{.tasks.first.stdout}}"},
			Env:       map[string]string{"V": "exit {{.tasks.first.exit_code}}", "PLAIN": `{{"{{"}}`},
			Templates: true,
		}),
	)
	got := decode[builtin.RunOutput](t, res.Output).Stdout
	if want := "<" + odd + "|exit 0|{{>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Without Templates a text is literal.
	out := s.run(builtin.RunInput{Argv: []string{"printf", "%s", "{{.tasks.first.stdout}}"}})
	if out.Stdout != "{{.tasks.first.stdout}}" {
		t.Errorf("%q is no literal", out.Stdout)
	}
}

// Neither is retried: the value would still be missing.
func TestTemplatesFail(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{InlineLimit: 1 << 20})
	long := builtin.RunInput{Shell: "head -c 140000 /dev/zero | tr '\\0' x"}
	say := func(text string) builtin.RunInput { return builtin.RunInput{Argv: []string{"printf", "%s", text}} }
	with := func(arg string) weaver.Draft {
		return builtin.Run.With(builtin.RunInput{Argv: []string{"echo", arg}, Templates: true}, weaver.MaxAttempts(3))
	}
	env := builtin.Run.With(builtin.RunInput{Argv: []string{"env"}, Env: map[string]string{"V": "{{.tasks.first.stdout}}"}, Templates: true})
	header := builtin.Request.With(builtin.RequestInput{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X": "{{.tasks.first.stdout}}"}, Templates: true})
	for _, c := range []struct {
		first  builtin.RunInput
		second weaver.Draft
		says   string
	}{
		{say("x"), with("{{.tasks.other.stdout}}"), `run a command: argv[1]: {{.tasks.other.stdout}}: the task needs no task "other", or it was deleted`},
		{say(`{"a": 1}`), with("{{.tasks.first.json.b}}"), `.tasks.first.json has no "b": it is {"a": 1}`},
		{say(`"\u0000"`), with("{{.tasks.first.json}}"), "argv[1] contains a NUL character"},
		{say("a\nb"), header, "headers.X: {{.tasks.first.stdout}}: it has a line end"},
		{long, with("--x={{.tasks.first.stdout}}"), "argv[1] is 140004 bytes long with {{.tasks.first.stdout}}, and the system takes at most 131071: let the task write a file, and read that"},
		{long, env, "env.V is 140002 bytes long with {{.tasks.first.stdout}}"},
	} {
		if c.first.Shell != "" && !onLinux() {
			continue
		}
		res := s.chain(builtin.Run.With(c.first), c.second)
		if !strings.Contains(res.Error.Message, c.says) || res.AttemptNo != 1 {
			t.Errorf("%s after %d attempts, want %s", res.Error.Message, res.AttemptNo, c.says)
		}
	}
}

func onLinux() bool {
	_, err := os.Stat("/proc/self")
	return err == nil
}

func TestRequestTemplates(t *testing.T) {
	t.Parallel()
	s := newShop(t, weaver.Config{})
	var answer atomic.Value
	answer.Store(`{"id": 7, "tags": ["x"], "next": "NEXT/b c"}`)
	v := &visits{answer: func(w http.ResponseWriter, r *http.Request) { saying(answer.Load().(string))(w, r) }}
	server := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(server.Close)
	get := builtin.Request.With(builtin.RequestInput{URL: server.URL + "/first"})
	res := s.chain(get, builtin.Request.With(builtin.RequestInput{
		URL:       server.URL + "/{{.tasks.first.json.next}}?s={{.tasks.first.status}}&n={{.tasks.first.json.next}}",
		Headers:   map[string]string{"X-Id": "{{.tasks.first.json.id}}"},
		JSON:      json.RawMessage(`{"id": "{{.tasks.first.json.id}}", "text": "no {{.tasks.first.json.id}}", "tags": "{{.tasks.first.json.tags}}"}`),
		Templates: true,
	}))
	if res.State != weaver.StateSucceeded {
		t.Fatal(res.Error.Message)
	}
	last := v.last(t)
	if last.path != "/NEXT%2Fb%20c?s=200&n=NEXT%2Fb+c" || last.header.Get("X-Id") != "7" || last.body != `{"id":7,"text":"no 7","tags":["x"]}` {
		t.Errorf("the request was %+v", last)
	}
	s.chain(get, builtin.Request.With(builtin.RequestInput{Method: "POST", URL: server.URL, Body: "{{.tasks.first.body}}", Templates: true}))
	if last := v.last(t); last.body != `{"id": 7, "tags": ["x"], "next": "NEXT/b c"}` {
		t.Errorf("the body was %s", last.body)
	}
	// A URL that is a single reference is its value, if that is an HTTP URL.
	answer.Store(server.URL + "/whole?a=b")
	whole := builtin.Request.With(builtin.RequestInput{URL: "{{.tasks.first.body}}", Templates: true})
	if res := s.chain(get, whole); res.State != weaver.StateSucceeded || v.last(t).path != "/whole?a=b" {
		t.Errorf("%s, and the request was %+v", res.Error.Message, v.last(t))
	}
	answer.Store("file:///etc/passwd")
	if res := s.chain(get, whole); !strings.Contains(res.Error.Message, "url begins with neither http:// nor https://") {
		t.Errorf("%+v", res.Error)
	}
}

func TestTemplateMistakes(t *testing.T) {
	t.Parallel()
	for says, in := range map[string]interface{ Validate() error }{
		`argv[1]: "{{.tasks.a.stdout | upper}}" has more than the name of a value: `: builtin.RunInput{Argv: []string{"x", "{{.tasks.a.stdout | upper}}"}, Templates: true},
		"env.A: {{.params.x}} is not a value of a task: ":                            builtin.RunInput{Shell: "x", Env: map[string]string{"A": "{{.params.x}}"}, Templates: true},
		"url: {{.tasks.a.body}} stands where it would choose the host: ":             builtin.RequestInput{URL: "http://{{.tasks.a.body}}/", Templates: true},
		"json: {{.tasks.a}} does not say which value":                                builtin.RequestInput{URL: "http://a/", JSON: json.RawMessage(`["{{.tasks.a}}"]`), Templates: true},
		"json: this is not JSON":                                                     builtin.RequestInput{URL: "http://a/", JSON: json.RawMessage(`{{.tasks.a.body}}`), Templates: true},
		"headers: the value of A has a line break":                                   builtin.RequestInput{URL: "http://a/", Headers: map[string]string{"A": "\n{{.tasks.a.body}}"}, Templates: true},
	} {
		if err := in.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", in, err, says)
		}
	}
	good := builtin.RequestInput{URL: "{{.tasks.a.body}}", Headers: map[string]string{"A": "{{.tasks.a.body}}"}, Body: "{{.tasks.a.body}}", Templates: true}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
