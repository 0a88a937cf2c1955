package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/pipeline/template"
)

func fill(t *testing.T, text string) string {
	t.Helper()
	parsed, err := template.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	filled, err := parsed.Fill(func(p template.Path) (string, error) { return "<" + strings.Join(p, "|") + ">", nil })
	if err != nil {
		t.Fatal(err)
	}
	return filled
}

func TestFill(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain {text} }}":                    "plain {text} }}",
		"{{.item}}":                          "<item>",
		"a-{{ .params.day }}.csv":            "a-<params|day>.csv",
		"{{.tasks.clean-up.stdout}}!":        "<tasks|clean-up|stdout>!",
		`{{.tasks["a b"].json.items[0].id}}`: "<tasks|a b|json|items|0|id>",
		`{{"{{"}}.State}}`:                   "{{.State}}",
		"{{`{{`}}{{.item}}":                  "{{<item>",
		`{{.tasks["x}}y"].stdout}}`:          "<tasks|x}}y|stdout>",
	} {
		if got := fill(t, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"ab {{.item":            `"{{" has no "}}" after it`,
		"{{}}":                  "names no value",
		"{{item}}":              "names no value",
		"{{.}}":                 "names no value",
		"{{.a[]}}":              "names no value",
		`{{.a[""]}}`:            "names no value",
		"{{.a[1}}":              "names no value",
		`{{"x}}`:                "a text that does not end",
		"{{.item | upper}}":     "more than the name of a value",
		"{{if .item}}x{{end}}":  "names no value",
		"{{.item .params.day}}": "more than the name of a value",
	} {
		_, err := template.Parse(text)
		var syntax *template.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Problem, want) || syntax.Hint == "" {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if at := strings.Index(text, "{{"); syntax.At != at {
			t.Errorf("%s: the mistake is at %d, want %d", text, syntax.At, at)
		}
	}
}

func TestFillSome(t *testing.T) {
	parsed, err := template.Parse(`{{"{{"}}x {{.item}} {{.tasks["a b"].json.items[0]}}`)
	if err != nil {
		t.Fatal(err)
	}
	some := parsed.FillSome(func(p template.Path) (string, bool) { return "{{.params.day}} {", p[0] == "item" })
	if got, want := fill(t, some), `{{x {{.params.day}} { <tasks|a b|json|items|0>`; got != want {
		t.Errorf("%q reads as %q, want %q", some, got, want)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("{{.item}}", "{")
	f.Add(`{{"`, "}}")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got := fill(t, template.Escape(a)+template.Escape(b)); got != a+b {
			t.Errorf("%q and %q read as %q", a, b, got)
		}
		if parsed, err := template.Parse(a); err == nil {
			again, err := template.Parse(parsed.FillSome(func(template.Path) (string, bool) { return "", false }))
			if err != nil || len(again.Paths()) != len(parsed.Paths()) {
				t.Errorf("%q written again: %v", a, err)
			}
		}
	})
}
