package value_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline/template"
	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// outputs returns the outputs of a job.
var outputs = map[string]*value.Output{
	"day":    {Task: "day", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"exit_code":0,"stdout":"2026-11-22\n\n","stderr":"w\n","stdout_bytes":12,"stderr_bytes":2}`)},
	"odd":    {Task: "odd", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"a/b {{.tasks.day.stdout}}?","stdout_bytes":26}`)},
	"up":     {Task: "up", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"..\n","stdout_bytes":3}`)},
	"none":   {Task: "none", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"exit_code":0,"stdout_bytes":0,"stderr_bytes":0}`)},
	"lines":  {Task: "lines", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"a\nb\n","stdout_bytes":4}`)},
	"cut":    {Task: "cut", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"end","stdout_bytes":99,"stdout_truncated":true,"stderr":"whole","stderr_bytes":5}`)},
	"binary": {Task: "binary", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"a\ufffd","stdout_bytes":2}`)},
	"get":    {Task: "get", Kind: value.Request, State: task.Succeeded, Raw: json.RawMessage(`{"status":201,"body":"{\"items\": [{\"id\": 1.50, \"say\": \"{{x\"}], \"a b\": null}\n","body_bytes":53}`)},
	"long":   {Task: "long", Kind: value.Request, State: task.Succeeded, Raw: json.RawMessage(`{"status":200,"body":"beginning","body_bytes":99,"truncated":true}`)},
	"own":    {Task: "own", Kind: value.Other, State: task.Succeeded, Raw: json.RawMessage(`{"id": "x"}`)},
	"seven":  {Task: "seven", Kind: value.Command, State: task.Failed, Error: "exit status 7: no access\nIt wrote 2 lines"},
	"killed": {Task: "killed", Kind: value.Command, State: task.Failed, Error: "ended by signal: killed; it wrote nothing"},
	"undone": {Task: "undone", Kind: value.Command, State: task.Cancelled},
	"late":   {Task: "late", Kind: value.Command, State: task.Running},
}

func find(name string) (*value.Output, error) { return outputs[name], nil }

// An argument is the value itself.
func TestFill(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.tasks.day.stdout}}!":                "2026-11-22!",
		"{{.tasks.day.stderr}}":                 "w",
		"{{.tasks.day.exit_code}}":              "0",
		"{{.tasks.none.stdout}}":                "",
		"{{.tasks.odd.stdout}}":                 "a/b {{.tasks.day.stdout}}?",
		"{{.tasks.cut.stderr}}":                 "whole",
		"{{.tasks.get.status}}":                 "201",
		"{{.tasks.get.body}}":                   "{\"items\": [{\"id\": 1.50, \"say\": \"{{x\"}], \"a b\": null}\n",
		"{{.tasks.get.json}}":                   `{"items":[{"id":1.50,"say":"{{x"}],"a b":null}`,
		"{{.tasks.get.json.items[0].id}}":       "1.50",
		"{{.tasks.get.json.items.0.say}}":       "{{x",
		`{{.tasks.get.json["a b"]}}`:            "null",
		"{{.tasks.own.json.id}}":                "x",
		"{{.tasks.seven.exit_code}}":            "7",
		`{{"{{"}}.tasks {{.tasks.own.json.id}}`: "{{.tasks x",
	} {
		got, err := value.Texts{Args: []string{text}}.Fill(find)
		if err != nil || got.Args[0] != want {
			t.Errorf("%s: %q, %v; want %q", text, got.Args, err, want)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{.tasks.nobody.stdout}}":        `argv[0]: {{.tasks.nobody.stdout}}: the task needs no task "nobody", or it was deleted`,
		"{{.tasks.get.stdout}}":           `does not exist: task "get" is a request: write {{.tasks.get.body}}`,
		"{{.tasks.cut.stdout}}":           `task "cut" wrote 99 bytes, of which only the end was kept: let it write them to a file, and read that`,
		"{{.tasks.cut.json.x}}":           `task "cut" wrote 99 bytes`,
		"{{.tasks.long.body}}":            `task "long" wrote 99 bytes, of which only the beginning was kept`,
		"{{.tasks.binary.stdout}}":        `what task "binary" wrote is not UTF-8`,
		"{{.tasks.day.json}}":             `the output of task "day" is no JSON: it is 2026-11-22`,
		"{{.tasks.none.json}}":            `the output of task "none" is no JSON: it is empty`,
		"{{.tasks.own.json.name}}":        `.tasks.own.json has no "name": it is {"id": "x"}`,
		"{{.tasks.own.json.id.x}}":        `.tasks.own.json.id is not an object, and has no "x": it is "x"`,
		"{{.tasks.get.json.items[1]}}":    `.tasks.get.json.items has no [1], but 1 entries: it is [{"id": 1.50`,
		"{{.tasks.get.json.items.-1}}":    `.tasks.get.json.items is an array, and has no "-1"`,
		"{{.tasks.get.json.items.first}}": `.tasks.get.json.items is an array, and has no "first"`,
		"{{.tasks.seven.stdout}}":         `task "seven" failed, and keeps no .stdout: exit status 7: no access It wrote`,
		"{{.tasks.killed.exit_code}}":     `task "killed" failed without an exit status: ended by signal: killed`,
		"{{.tasks.undone.stdout}}":        `task "undone" was cancelled, and has no output`,
		"{{.tasks.late.stdout}}":          `task "late" has not ended`,
		"{{.tasks.day}}":                  `does not say which value of the task`,
	} {
		_, err := value.Texts{Args: []string{text}}.Fill(find)
		var wrong *value.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	long, err := value.Texts{Args: []string{"{{.tasks.x.json}}"}}.Fill(func(string) (*value.Output, error) {
		return &value.Output{Task: "x", Kind: value.Command, State: task.Succeeded, Raw: json.RawMessage(`{"stdout":"` + strings.Repeat("é", 100) + `","stdout_bytes":200}`)}, nil
	})
	if err == nil || !strings.HasSuffix(err.Error(), " is "+strings.Repeat("é", 80)+"…") {
		t.Errorf("an error of a long text: %v, %v", long, err)
	}
	broken := errors.New("the disk is on fire")
	if _, err := (value.Texts{Body: "{{.tasks.x.json}}"}).Fill(func(string) (*value.Output, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("an error of the store: %v", err)
	}
}

// In a URL a value stays one segment or one query value.
func TestFillURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://a.test/x/{{.tasks.odd.stdout}}/y":                      "https://a.test/x/a%2Fb%20%7B%7B.tasks.day.stdout%7D%7D%3F/y",
		"https://a.test/?q={{.tasks.odd.stdout}}&r=1":                   "https://a.test/?q=a%2Fb+%7B%7B.tasks.day.stdout%7D%7D%3F&r=1",
		"https://a.test?q={{.tasks.day.stdout}}":                        "https://a.test?q=2026-11-22",
		"https://a.test/x?q={{.tasks.none.stdout}}":                     "https://a.test/x?q=",
		"https://a.test/v{{.tasks.none.stdout}}":                        "https://a.test/v",
		"https://a.test/{{.tasks.up.stdout}}.txt":                       "https://a.test/...txt",
		"{{.tasks.odd.stdout}}":                                         "a/b {{.tasks.day.stdout}}?",
		"https://a.test/x/{{.tasks.up.stdout}}/y":                       `error: {{.tasks.up.stdout}}: it makes a segment of the URL's path "..", which names another folder`,
		"https://a.test/x/{{.tasks.none.stdout}}":                       "error: {{.tasks.none.stdout}}: it is empty, and would leave a segment of the URL's path empty",
		"https://a.test/.{{.tasks.none.stdout}}./{{.tasks.day.stdout}}": `"..", which names another folder`,
	} {
		got, err := value.Texts{URL: text}.Fill(find)
		said := got.URL
		if err != nil {
			said = "error: " + strings.TrimPrefix(err.Error(), "url: ")
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %s", text, said, want)
		}
	}
	for text, ok := range map[string]bool{
		"https://a.test/{{.tasks.day.stdout}}": true,
		"HTTP://a.test?{{.tasks.day.stdout}}":  true,
		"{{.tasks.get.json.next}}":             true,
		"https://{{.tasks.day.stdout}}/":       false,
		"https://a.test{{.tasks.day.stdout}}/": false,
		"https://u:{{.tasks.day.stdout}}@a.b/": false,
		"{{.tasks.day.stdout}}/x":              false,
		"{{.tasks.a.json}}{{.tasks.b.json}}":   false,
	} {
		if problems := (value.Texts{URL: text}).Check(); (len(problems) == 0) != ok {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// A JSON string stays one, unless it is a single reference to a JSON value.
func TestFillJSON(t *testing.T) {
	t.Parallel()
	in := value.Texts{JSON: json.RawMessage(`{"{{.tasks.day.stdout}}": "{{.tasks.day.stdout}} \"", "n": 1.50, "all": ["{{.tasks.get.json.items}}", "{{.tasks.get.status}}", "{{.tasks.own.json.id}}", "<{{.tasks.get.status}}>"], "u": "\u007b{.tasks.none.stdout}}"}`)}
	got, err := in.Fill(find)
	want := `{"{{.tasks.day.stdout}}": "2026-11-22 \"", "n": 1.50, "all": [[{"id":1.50,"say":"{{x"}], 201, "x", "<201>"], "u": ""}`
	if err != nil || string(got.JSON) != want {
		t.Errorf("%s, %v; want %s", got.JSON, err, want)
	}
}

func TestFillHeader(t *testing.T) {
	t.Parallel()
	got, err := value.Texts{Headers: map[string]string{"X-Day": "{{.tasks.day.stdout}}", "X": "plain"}}.Fill(find)
	if err != nil || got.Headers["X-Day"] != "2026-11-22" || got.Headers["X"] != "plain" {
		t.Errorf("%v, %v", got.Headers, err)
	}
	_, err = value.Texts{Headers: map[string]string{"X": "{{.tasks.lines.stdout}}"}}.Fill(find)
	if err == nil || !strings.Contains(err.Error(), "headers.X: {{.tasks.lines.stdout}}: it has a line end") {
		t.Errorf("a header of two lines: %v", err)
	}
}

// Filling in two steps has the same result as filling in one, for all values.
func TestFillSome(t *testing.T) {
	t.Parallel()
	in := value.Texts{
		Args:    []string{"{{.tasks.odd.stdout}} {{.tasks.day.stdout}}", "{{.tasks.odd.stdout}}", "{ {{\"{{\"}} {{.tasks.day.stdout}}"},
		Env:     map[string]string{"A": "{{.tasks.odd.stdout}}", "B": "{{.tasks.day.stdout}}"},
		URL:     "https://a.test/{{.tasks.odd.stdout}}?q={{.tasks.day.stdout}}{{.tasks.odd.stdout}}",
		Headers: map[string]string{"X": "{{.tasks.odd.stdout}}"},
		JSON:    json.RawMessage(`{"a": "{{.tasks.get.json.items}}", "b": ["{{.tasks.day.stdout}}", "{{.tasks.odd.stdout}}"]}`),
		Body:    "{{.tasks.get.body}}{{.tasks.day.stdout}}",
	}
	want, err := in.Fill(find)
	if err != nil {
		t.Fatal(err)
	}
	some, err := in.FillSome(func(name string) (*value.Output, error) {
		if name == "day" {
			return nil, nil
		}
		return find(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range some.Paths() {
		if p[1] != "day" {
			t.Errorf("%s is left", p)
		}
	}
	if n := len(some.Paths()); n != 6 {
		t.Errorf("%d values are left, want 6", n)
	}
	got, err := some.Fill(find)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("in two steps %+v, %v; want %+v", got, err, want)
	}
}

// Check accepts exactly the values of each kind.
func TestCheck(t *testing.T) {
	t.Parallel()
	members := map[value.Kind]string{value.Command: "stdout stderr exit_code json", value.Request: "body status json", value.Other: "json"}
	for kind, has := range members {
		for _, member := range strings.Fields("stdout stderr exit_code json body status output x") {
			problem := kind.Check(template.Path{"tasks", "a", member})
			if known := slices.Contains(strings.Fields(has), member); known != (problem == nil) {
				t.Errorf("%s of %s: %v", member, kind, problem)
			} else if !known && problem.Hint == "" {
				t.Errorf("%s of %s: no hint", member, kind)
			}
		}
	}
	if kinds := slices.Collect(maps.Keys(members)); len(kinds) != 3 {
		t.Errorf("%v", kinds)
	}
}

func FuzzFill(f *testing.F) {
	f.Add("a {{.tasks.v.stdout}} b", "{{.tasks.v.stdout}} \"\n")
	f.Add(`{{"{{"}}{{.tasks.v.json}}`, `{"a":"{{x"}`)
	f.Fuzz(func(t *testing.T, text, content string) {
		raw, err := json.Marshal(map[string]any{"stdout": content, "stdout_bytes": len(content)})
		if err != nil {
			t.Fatal(err)
		}
		v := func(string) (*value.Output, error) {
			return &value.Output{Task: "v", Kind: value.Command, State: task.Succeeded, Raw: raw}, nil
		}
		quoted, _ := json.Marshal(text)
		in := value.Texts{Args: []string{text}, JSON: quoted, URL: "https://a.test/" + text}
		if len(in.Check()) > 0 {
			return
		}
		got, err := in.Fill(v)
		if err != nil {
			return
		}
		if !json.Valid(got.JSON) {
			t.Errorf("%s became %s", in.JSON, got.JSON)
		}
		some, err := in.FillSome(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(some.Paths()) > 0 {
			t.Errorf("%+v has values left", some)
		}
		again, err := some.Fill(v)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%+v, and by FillSome %+v, %v", got, again, err)
		}
	})
}
