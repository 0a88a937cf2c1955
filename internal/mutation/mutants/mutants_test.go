package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// sourceOf returns a file with one function.
func sourceOf(t *testing.T, signature, body string) *source {
	t.Helper()
	s, err := parseSource("x.go", "x.go", "package x\n\nfunc f"+signature+" {\n"+body+"\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, signature, body, want string }{
		{"a condition", "()", "if ok {\n}", "if ok: always | if ok: never"},
		{"a check for an error is only left out", "()", "if err != nil {\n}", "if err != nil: never"},
		{"a bound", "() bool", "return a < b", "return a < b: returns zero values | a < b: < becomes <= | a < b: negated"},
		{"both and either", "()", "x = a && (b || c)", "left out: x = a && (b || c) | a && (b || c): && becomes || | b || c: || becomes &&"},
		{"a sum", "()", "_ = n + 1", "n + 1: + becomes -"},
		{"a concatenation is no sum", "()", `_ = s + "x"`, ""},
		{"a constant", "()", "g(2)", "left out: g(2) | 2 becomes 2+1"},
		{"room in a slice", "()", "x := make([]int, 0, 8)", ""},
		{"a loop", "()", "for ok {\nbreak\n}", "for ok: no turn | left out: break"},
		{"an early return", "() (n int, err error)", "return n, err", "return n, err: returns zero values"},
		{"of zero values already", "() (*T, error)", "return nil, nil", ""},
		{"a truth value", "() bool", "return true", "true: negated"},
		{"inside a function literal", "()", "_ = func() error {\nreturn err\n}", "return err: returns zero values"},
		{"locks and logs", "()", "mu.Lock()\nlog.Warn(x)", ""},
		{"cases", "()", "switch {\ncase !ok:\nn++\n}", "!ok: negated | left out: n++"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range find(sourceOf(t, c.signature, c.body)) {
				got = append(got, m.what)
			}
			if text := strings.Join(got, " | "); text != c.want {
				t.Errorf("found  %s\nwanted %s", text, c.want)
			}
		})
	}
}

func TestSQLVariants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"no SQL", "a < 1 and more", nil},
		{"conditions", "WHERE a = ?1 AND b IS NULL ORDER BY a", []string{
			"WHERE (a = ?1 OR 1=1) AND b IS NULL ORDER BY a",
			"WHERE a = ?1 AND (b IS NULL OR 1=1) ORDER BY a",
		}},
		{"nested ones", "WHERE a IN (SELECT b FROM t WHERE c) LIMIT 5", []string{
			"WHERE (a IN (SELECT b FROM t WHERE c) OR 1=1) LIMIT 5",
			"WHERE a IN (SELECT b FROM t WHERE (c OR 1=1)) LIMIT 5",
		}},
		{"one that goes on elsewhere", "WHERE a IN (", nil},
		{"one without its right side", "WHERE a = ", nil},
		{"a range is one condition", "WHERE a BETWEEN 1 AND 2", []string{"WHERE (a BETWEEN 1 AND 2 OR 1=1)"}},
		{"a bound", "SELECT a <= b", []string{"SELECT a < b"}},
		{"a step", "SELECT a + 1", []string{"SELECT a + 0"}},
		{"columns", "UPDATE t SET a = ?1, b = max(b, ?2) WHERE c", []string{
			"UPDATE t SET a = CASE WHEN 1=1 THEN a ELSE (?1) END, b = max(b, ?2) WHERE c",
			"UPDATE t SET a = ?1, b = CASE WHEN 1=1 THEN b ELSE (max(b, ?2)) END WHERE c",
			"UPDATE t SET a = ?1, b = max(b, ?2) WHERE (c OR 1=1)",
		}},
		{"conflicts are no condition", "INSERT INTO t ON CONFLICT DO NOTHING", nil},
		{"texts are not read", "SELECT ' WHERE a AND b '", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, v := range sqlVariants(c.text) {
				got = append(got, v.text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Any combination of woven mutants parses and keeps the lines of the original.
func TestWeave(t *testing.T) {
	t.Parallel()
	s := sourceOf(t, "(a, b int) (int, error)", `	const q = "SELECT a " +
		"WHERE b AND c"
	if a < b &&
		(g(q, 1) || !ok) {
		return a + b, err
	}
	n++
	return g(func() bool { return a*2 > b && ok })`)
	all := find(s)
	for i, m := range all {
		m.id = i + 1
	}
	for n := range all {
		text := weave([]*source{s}, all[:n+1])[s.path]
		if _, err := parser.ParseFile(token.NewFileSet(), "", text, 0); err != nil {
			t.Fatalf("with the mutant %s: %v\n%s", all[n], err, text)
		}
		if got, want := strings.Count(text, "\n"), strings.Count(s.whole, "\n"); got != want {
			t.Errorf("with the mutant %s there are %d lines, not %d:\n%s", all[n], got, want, text)
		}
	}
}

// One package from its source to the table: compiled mutants, reached tests, and
// verdicts.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, []string{"-v", "./internal/mutation/mutants/testdata/sample"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"killed      7:37: SQL condition always true: a = 1  TestQuery",
		"survived    7:37: SQL condition always true: b = 2",
		"killed      14:5: n > limit: negated  TestClamp",
		"survived    14:5: n > limit: > becomes >=",
		"killed      22:9: a && !b: && becomes ||  TestBoth",
		"killed      23:3: !b: negated  TestBoth",
		"not reached 27:35: n + 1: + becomes -",
		"killed      31:11: SQL condition always true: c = 1  TestFew",
	} {
		if text := strings.ReplaceAll(out.String(), "internal/mutation/mutants/testdata/sample/sample.go:", ""); !strings.Contains(text, line) {
			t.Errorf("the output does not say %q:\n%s", line, &out)
			break
		}
	}
}
