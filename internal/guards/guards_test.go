package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// laws are the rules that the lists must cover. NS is the separation of
// namespaces, IK the uniqueness of idempotency keys; all others are named as
// in the lease law.
var laws = strings.Fields("R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R12 R13 R16 R17 R18 W1 W2 W3 W5 §3 §4 §6 NS IK")

func all(t *testing.T) []guard {
	t.Helper()
	list, err := readLists(lists, "lists")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("the lists are empty")
	}
	return list
}

// Whoever changes a guard changes its entry: text that is not where the list
// says, or stands there twice, would be taken out in the wrong place or never.
func TestEveryGuardIsWhereItsEntrySays(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, g := range all(t) {
		text, ok := texts[g.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(g.file)))
			if err != nil {
				t.Errorf("%s: guard %q: %v", g.at, g.name, err)
				continue
			}
			text = string(read)
			texts[g.file] = text
		}
		without, err := g.without(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if without == text {
			t.Errorf("%s: guard %q: nothing changes", g.at, g.name)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	first := map[string]string{}
	for _, g := range all(t) {
		if at, ok := first[g.name]; ok {
			t.Errorf("%s: guard %q stands at %s already", g.at, g.name, at)
		}
		first[g.name] = g.at
	}
}

func TestEveryLawHasGuards(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, g := range all(t) {
		for _, law := range g.laws {
			if !slices.Contains(laws, law) {
				t.Errorf("%s: guard %q upholds %q, which is no rule: want some of %v", g.at, g.name, law, laws)
			}
			covered[law] = covered[law] || g.spare == ""
		}
	}
	for _, law := range laws {
		if !covered[law] {
			t.Errorf("no guard upholds %s", law)
		}
	}
}

// The names of subtests are texts of the test's package, or of a suite that it
// plays. The command itself finds out whether the test runs.
func TestTheNamedTestsExist(t *testing.T) {
	t.Parallel()
	known := map[string]tests{}
	for _, g := range all(t) {
		if g.spare != "" {
			continue
		}
		in, ok := known[g.dies.pkg]
		if !ok {
			in = testsOf(t, g.dies.pkg)
			known[g.dies.pkg] = in
		}
		levels := strings.Split(strings.ReplaceAll(g.dies.run, " ", "_"), "/")
		for i, level := range levels {
			re, err := regexp.Compile(level)
			if err != nil {
				t.Errorf("%s: guard %q: %v", g.at, g.name, err)
				break
			}
			names := in.names
			if i > 0 {
				names = in.texts
			}
			if !slices.ContainsFunc(names, re.MatchString) {
				t.Errorf("%s: guard %q: no test in %s is named %q", g.at, g.name, g.dies.pkg, level)
			}
		}
	}
}

// tests are the names of a package's tests, and the texts that may name their
// subtests.
type tests struct{ names, texts []string }

// suites are played by the tests of several packages.
const suites = "store/storetest"

func testsOf(t *testing.T, pkg string) (found tests) {
	t.Helper()
	for _, pattern := range []string{pkg + "/*_test.go", suites + "/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
						found.names = append(found.names, n.Name.Name)
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						found.texts = append(found.texts, strings.ReplaceAll(text, " ", "_"))
					}
				}
				return true
			})
		}
	}
	return found
}

const sample = `# a remark

file a.go

guard  one
law    R2 NS
why    because
dies   store/sqlite TestX/y z
@@ T.f
-if a {
+if false {
@@
 keep
-drop
`

func TestListsAreRead(t *testing.T) {
	t.Parallel()
	list, err := parseList("x.txt", sample)
	if err != nil || len(list) != 1 {
		t.Fatalf("parseList = %v, %v", list, err)
	}
	g := list[0]
	if g.name != "one" || g.file != "a.go" || g.at != "x.txt:5" || !slices.Equal(g.laws, []string{"R2", "NS"}) ||
		g.dies != (test{"store/sqlite", "TestX/y z"}) || len(g.hunks) != 2 || g.hunks[1].new != "keep\n" {
		t.Errorf("the guard was read as %+v", g)
	}
	for what, broken := range map[string]string{
		"no dies":        strings.Replace(sample, "dies ", "why ", 1),
		"no law":         strings.Replace(sample, "law ", "why ", 1),
		"no change":      strings.Replace(sample, "+if false {", "+if a {", 1),
		"no @@":          strings.Replace(sample, "@@ T.f\n", "", 1),
		"unknown key":    strings.Replace(sample, "law ", "rule ", 1),
		"dies, spare":    strings.Replace(sample, "why ", "spare x\nwhy ", 1),
		"hangs for ever": strings.Replace(sample, "why ", "hangs ever\nwhy ", 1),
		"no file":        strings.Replace(sample, "file a.go", "", 1),
		"nothing left":   "guard one\n",
	} {
		if list, err := parseList("x.txt", broken); err == nil {
			t.Errorf("%s: read as %+v", what, list)
		}
	}
}

const code = `package p

import "errors"

func g(text string) error { return errors.New(text) }

const (
	x = "a AND b"
	y = "a AND b AND c"
)

type T struct{}

func (t *T) f(a bool) int {
	if a {
		return 1
	}
	return 2
}

func f(a bool) int {
	if a {
		return 1
	}
	return 2
}
`

func TestGuardsAreTakenOut(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		hunks []hunk
		text  string // in what is left; "": an error
	}{
		"in a method":        {[]hunk{{in: "T.f", old: "if a {\n return 1", new: "if false {\n\t\treturn 1"}}, "func (t *T) f(a bool) int {\n\tif false {"},
		"in a function":      {[]hunk{{in: "f", old: "a {", new: "!a {"}}, "func f(a bool) int {\n\tif !a {"},
		"in a constant":      {[]hunk{{in: "x", old: "AND b", new: ""}}, `x = "a "`},
		"in two places":      {[]hunk{{in: "x", old: "AND b", new: ""}, {in: "y", old: "AND c", new: ""}}, `y = "a AND b "`},
		"twice there":        {[]hunk{{in: "", old: "return 1", new: ""}}, ""},
		"twice in y":         {[]hunk{{in: "y", old: "AND", new: "OR"}}, ""},
		"not there":          {[]hunk{{in: "x", old: "AND c", new: ""}}, ""},
		"not declared":       {[]hunk{{in: "h", old: "a", new: "b"}}, ""},
		"overlapping":        {[]hunk{{in: "x", old: "a AND b", new: ""}, {in: "x", old: "AND b", new: ""}}, ""},
		"an import too many": {[]hunk{{in: "g", old: "errors.New(text)", new: "nil"}}, ""},
		"no Go any more":     {[]hunk{{in: "f", old: "a {", new: "a"}}, ""},
		"across a string":    {[]hunk{{in: "x", old: `b"`, new: ""}}, ""},
	} {
		g := guard{name: name, file: "p.go", hunks: want.hunks}
		left, err := g.without(code)
		if (err == nil) != (want.text != "") || !strings.Contains(left, want.text) {
			t.Errorf("%s: %v\n%s", name, err, left)
		}
	}
}

func TestSQLIsLookedAt(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"CREATE TABLE t (a, PRIMARY KEY (a));": true,
		"CREATE TABLE t (a, -- (\n b);":        true,
		"CREATE TABLE t (a, PRIMARY KEY (a);":  false,
		"CREATE TABLE t (a, );":                false,
		"CREATE TABLE t (a, , b);":             false,
	} {
		if err := readable("x.sql", "", text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOutcomesAreJudged(t *testing.T) {
	t.Parallel()
	text := "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        --- FAIL: TestA/b/c (0.00s)\n--- FAIL: TestD (0.00s)\n"
	if got := leaves(text); !slices.Equal(got, []string{"TestA/b/c", "TestD"}) {
		t.Errorf("the failed tests are %q", got)
	}
	o := outcome{text: "=== RUN   TestA\n=== RUN   TestA/b\n"}
	if !o.ran(1) || o.ran(2) {
		t.Error("a subtest ran, and nothing below it")
	}
	if v := (outcome{}).judge(false); v.killed || v.err != nil {
		t.Errorf("tests that pass kill nothing: %+v", v)
	}
	late := outcome{err: os.ErrDeadlineExceeded, late: true}
	if v := late.judge(false); v.killed || v.err == nil {
		t.Errorf("a test that hangs says nothing: %+v", v)
	}
	if v := late.judge(true); !v.killed {
		t.Errorf("a test that may hang kills: %+v", v)
	}
}
