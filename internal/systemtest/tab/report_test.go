package tab_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	namedLine = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(\S+)`)
	saidLine  = regexp.MustCompile(`^ +\S+\.go:\d+: (.+)`)
	endedLine = regexp.MustCompile(`^ *--- (PASS|SKIP): (\S+)`)
)

// check reads what tests printed with -test.v: it logs how many passed and who was skipped why, and fails if one was
// skipped without a reason or if one in want did not run.
func check(t *testing.T, out string, want []string) {
	t.Helper()
	var test string
	passed, skipped := 0, 0
	ended := make(map[string]bool)
	said := make(map[string]string) // the last line of each test
	for line := range strings.Lines(out) {
		if m := namedLine.FindStringSubmatch(line); m != nil {
			test = m[1]
		} else if m := saidLine.FindStringSubmatch(line); m != nil {
			said[test] = m[1]
		} else if m := endedLine.FindStringSubmatch(line); m != nil {
			ended[m[2]] = true
			if m[1] == "PASS" {
				passed++
				continue
			}
			skipped++
			if said[m[2]] == "" {
				t.Errorf("%s was skipped without a reason", m[2])
			}
			t.Logf("skipped: %s: %s", m[2], said[m[2]])
		}
	}
	t.Logf("%d tests passed, %d skipped", passed, skipped)
	if passed < 10 {
		t.Errorf("only %d tests passed", passed)
	}
	for _, name := range want {
		if !ended[name] {
			t.Errorf("%s did not run", name)
		}
	}
}

// declared returns the tests of a package and its examples that have an output, but those whose names match skip.
func declared(t *testing.T, pkg, skip string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
				names = append(names, fn.Name.Name)
			}
		}
	}
	for _, e := range doc.Examples(parsed...) {
		if e.Output != "" || e.EmptyOutput {
			names = append(names, "Example"+e.Name)
		}
	}
	not := regexp.MustCompile(skip)
	return slices.DeleteFunc(names, not.MatchString)
}
