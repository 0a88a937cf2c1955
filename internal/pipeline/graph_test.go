package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/text"
)

// Lines of the list have at most 80 columns, unless a single name is longer.
func TestListFits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: wide\ntasks:\n")
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("task-%d%s", i, strings.Repeat("x", i)))
		fmt.Fprintf(&b, "  %s: {run: ls, needs: [%s]}\n", names[i], strings.Join(names[:i], ", "))
	}
	list := parse(t, b.String()).Graph().List()
	for line := range strings.Lines(list) {
		if w := text.Width(strings.TrimRight(line, "\n")); w > 80 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	for _, name := range names {
		if !slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,\n", r) }), name) {
			t.Errorf("%s is not in the list:\n%s", name, list)
		}
	}
}

// Names are escaped.
func TestGraphQuotes(t *testing.T) {
	t.Parallel()
	p := parse(t, "name: 'a\"b\\c'\ntasks:\n  'x\"];<b>#quot;`&\\': {run: ls}\n")
	if dot, want := p.Graph().DOT(), `"x\"];<b>#quot;`+"`"+`&\\"`; !strings.Contains(dot, want) || !strings.Contains(dot, `digraph "a\"b\\c" {`) {
		t.Errorf("%s\nhas no %s", dot, want)
	}
	if m, want := p.Graph().Mermaid(), `t1["x#quot;];#lt;b#gt;#35;quot;#96;#amp;#92;"]`; !strings.Contains(m, want) {
		t.Errorf("%s\nhas no %s", m, want)
	}
}

func TestDoes(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`run: "ls | wc"`:               `ls | wc`,
		`run: "set -e\nls\n"`:          "set -e\nls",
		`run: [echo, "a b", "it's"]`:   `echo 'a b' 'it'\''s'`,
		`run: [python3, clean.py, ""]`: `python3 clean.py ''`,
		`http: {url: "https://u:geheim@example.com/a?b=c", headers: {A: geheim}}`: `GET https://example.com/a?b=c`,
		`http: {url: "http://example.com/", json: {a: geheim}}`:                   `POST http://example.com/`,
		`http: {url: "http://example.com/", method: put}`:                         `PUT http://example.com/`,
		`type: acme.billing.charge.v1`:                                            `acme.billing.charge.v1`,
	} {
		p := parse(t, "name: a\ntasks:\n  a: {"+src+"}\n")
		equal(t, src, p.Tasks[0].Does(), want)
	}
}
