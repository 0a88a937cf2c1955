package value_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// said returns the output of a task that wrote a text.
func said(t *testing.T, kind value.Kind, text string) *value.Output {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"stdout": text, "stdout_bytes": len(text), "body": text, "body_bytes": len(text)})
	if kind == value.Other {
		raw = json.RawMessage(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &value.Output{Task: "list", Kind: kind, State: task.Succeeded, Raw: raw}
}

// List returns the entries of an array, or lines.
func TestList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind value.Kind
		text string
		want string // each between <>
	}{
		{value.Command, "a\n\n b c \r\n\t\nd", "<a>< b c ><d>"},
		{value.Command, "", ""},
		{value.Command, " [\"a b\", 1.50, true, {\"x\": [1, 2]}, null, \"\"]\n", `<a b><1.50><true><{"x":[1,2]}><null>`},
		{value.Command, "[]", ""},
		{value.Command, "[1,\n2", "<[1,><2>"},
		{value.Command, `{"a": 1}`, `<{"a": 1}>`},
		{value.Command, "\"a\"", `<"a">`},
		{value.Request, "[\"x\"]", "<x>"},
		{value.Request, "x\ny", "<x><y>"},
		{value.Other, `["x", 7]`, "<x><7>"},
		{value.Other, `"x\ny"`, "<x><y>"},
		{value.Other, `{"a": ["x"]}`, `error: {{.tasks.list.json}}: it is not an array: it is {"a":["x"]}`},
	} {
		list, err := said(t, tc.kind, tc.text).List()
		var got strings.Builder
		for _, v := range list {
			if !json.Valid(v) {
				t.Errorf("%s: %s is no JSON", tc.text, v)
			}
			got.WriteString("<" + value.ItemText(v) + ">")
		}
		if err != nil {
			got.WriteString("error: " + err.Error())
		}
		if got.String() != tc.want {
			t.Errorf("%s of %s: %s, want %s", tc.text, tc.kind, got.String(), tc.want)
		}
	}
	for name, want := range map[string]string{"cut": "only the end was kept", "seven": "keeps no .stdout: exit status 7", "late": "has not ended", "binary": "is not UTF-8"} {
		if _, err := outputs[name].List(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A filled-in value stays one argument, segment or string.
func TestFillWithItem(t *testing.T) {
	t.Parallel()
	texts := value.Texts{
		Args: []string{"{{.item}} {{.tasks.odd.stdout}}"}, Env: map[string]string{"A": "<{{.item}}>"},
		URL: "https://a.test/{{.item}}?q={{.item}}", JSON: json.RawMessage(`{"v": "{{.item}}", "t": "x{{.item}}"}`),
	}
	for item, want := range map[string]string{
		`"a/b {{.item}}"`: `a/b {{.item}} a/b {{.tasks.day.stdout}}?|<a/b {{.item}}>|https://a.test/a%2Fb%20%7B%7B.item%7D%7D?q=a%2Fb+%7B%7B.item%7D%7D|{"v": "a/b {{.item}}", "t": "xa/b {{.item}}"}`,
		`{"n": 7}`:        `{"n":7} a/b {{.tasks.day.stdout}}?|<{"n":7}>|https://a.test/%7B%22n%22:7%7D?q=%7B%22n%22%3A7%7D|{"v": {"n":7}, "t": "x{\"n\":7}"}`,
	} {
		got, err := texts.FillWithItem(json.RawMessage(item), find)
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join([]string{got.Args[0], got.Env["A"], got.URL, string(got.JSON)}, "|"); all != want {
			t.Errorf("%s:\n%s, want\n%s", item, all, want)
		}
	}
	for want, texts := range map[string]value.Texts{
		"headers.X: {{.item}}: it has a line end":                 {Headers: map[string]string{"X": "{{.item}}"}},
		"{{.item.name}} names a part of a value":                  {Args: []string{"{{.item.name}}"}},
		`{{.item}}: it makes a segment of the URL's path ".."`:    {URL: "https://a.test/{{.item}}/x"},
		`{{.tasks.other.stdout}}: the task needs no task "other"`: {Args: []string{"{{.tasks.other.stdout}}"}},
	} {
		item := json.RawMessage(`"a\nb"`)
		if texts.URL != "" {
			item = json.RawMessage(`".."`)
		}
		if _, err := texts.FillWithItem(item, find); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// FillSome leaves the item.
	some, err := texts.FillSome(find)
	if err != nil || !strings.HasPrefix(some.Args[0], "{{.item}} a/b ") {
		t.Errorf("%q, %v", some.Args, err)
	}
	if problems := (value.Texts{URL: "https://{{.item}}/"}).CheckForeach(); len(problems) != 1 || len(texts.CheckForeach()) != 0 || len(texts.Check()) == 0 {
		t.Errorf("%v, %v, %v", problems, texts.CheckForeach(), texts.Check())
	}
}
