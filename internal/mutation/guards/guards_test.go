package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/mutation"
)

// Every anchor occurs exactly once, and the code without its guard parses. The
// command shows that tests fail then.
func TestAnchors(t *testing.T) {
	t.Parallel()
	all, err := parseList(list, ruleName)
	if err != nil {
		t.Fatal(err)
	}
	planted, err := parseList(proofs, proofName)
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, planted...)
	root, err := mutation.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, names := newModule(root), make(map[string]bool)
	for i := range all {
		g := &all[i]
		if _, err := code.without(g); err != nil {
			t.Error(err)
		}
		if names[g.name] {
			t.Errorf("line %d: the name %s is used twice", g.line, g.name)
		}
		names[g.name] = true
	}
}

// Rules without an entry, and the reason.
var without = map[string]string{
	"R14": "a property of several processes: internal/systemtest/soak runs them",
}

func TestEveryRuleHasAnEntry(t *testing.T) {
	t.Parallel()
	all, err := parseList(list, ruleName)
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[string]bool)
	for _, g := range all {
		for _, r := range g.rules {
			have[r] = true
		}
	}
	for _, rule := range strings.Fields("R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 R17 R18 W1 W2 W3 W4 W5 " +
		"§3 §4 §6 NS IK B I1 I2 I3 I4 I5 I6 I7 I8 I9 I10 I11 I12 I15") {
		if have[rule] == (without[rule] != "") {
			t.Errorf("%s: want an entry in guards.txt, or a reason why there is none", rule)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code, text string
		want             []string
	}{
		{"an expression", "if a && b.ok() {\n}", "&& b.ok()", []string{"&& b.ok()"}},
		{"layout and comments", "f(\n\ta, // first\n\tb,\n)", "f(a, b)", []string{"f(\n\ta, // first\n\tb,\n)"}},
		{"statements", "x := 1\n\ny++ // why\nz()", "y++\nz()", []string{"y++ // why\nz()"}},
		{"a part of a name is no name", "ab(); b()", "b()", []string{"b()"}},
		{"twice", "n++; n++", "n++", []string{"n++", "n++"}},
		{"SQL in a literal", "const q = `\nWHERE a = ?1\n  AND b = ?2`", "a = ?1 AND b = ?2", []string{"a = ?1\n  AND b = ?2"}},
		{"a part of a parameter", "q(`a = ?12`)", "a = ?1", nil},
		{"no code in a comment", "// n++", "n++", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range matches(c.code, c.text) {
				got = append(got, c.code[m[0]:m[1]])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	got, err := parseList("# a remark\n\nR2 W1 a.b: goes wrong\n@ x/y.f\n- a\n- b\n+ c\n- d\n@ z.sql\n- e\n+ f\n+ g\ntests p q\nrun TestX|TestY\n", ruleName)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	g := got[0]
	edits := []edit{{"x/y.f", "a\nb", "c"}, {"x/y.f", "d", ""}, {"z.sql", "e", "f\ng"}}
	if !slices.Equal(g.edits, edits) || g.name != "a.b" || !slices.Equal(g.tests, []string{"p", "q"}) || g.run != "TestX|TestY" || len(g.rules) != 2 {
		t.Errorf("read %+v", g)
	}
	for _, bad := range []string{"R2 a", "R99 a: b", "R2 a: b", "R2 a: b\n- c", "R2 a: b\n@ x\n+ c", "R2 a: b\n@ x\nwhy"} {
		if _, err := parseList(bad, ruleName); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSplitAnchor(t *testing.T) {
	t.Parallel()
	for anchor, want := range map[string][2]string{
		"store/sqlite.claim.serves":        {"store/sqlite", "claim.serves"},
		"internal/engine":                  {"internal/engine", ""},
		"decide.Backoff":                   {"decide", "Backoff"},
		".Client.Run":                      {".", "Client.Run"},
		".":                                {".", ""},
		"store/sqlite/migrations/0001.sql": {"store/sqlite", ""},
	} {
		pkg, decl := splitAnchor(anchor)
		if pkg != want[0] || decl != want[1] {
			t.Errorf("%s is %s and %s, want %v", anchor, pkg, decl, want)
		}
	}
}
