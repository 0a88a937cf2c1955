package archtest_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each name in ALONE of the Makefile, which `make race` skips in every package, is that of
// one test: a second one of this name would not be run under the race detector.
func TestMakeRaceSkipsOneTestByName(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repoRoot, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ALONE := ((?:.*\\\n)*.*)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the Makefile has no ALONE")
	}
	found, known := make(map[string]int), map[string]int{"TestPlans": 2} // of each database
	for _, name := range strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " ")) {
		if _, twice := found[name]; twice {
			t.Errorf("ALONE has %s twice", name)
		}
		found[name] = 0
	}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() && fn.Recv == nil {
				if _, listed := found[fn.Name.Name]; listed {
					found[fn.Name.Name]++
				}
			}
		}
	}
	for name, n := range found {
		if want := max(1, known[name]); n != want {
			t.Errorf("%s of ALONE in the Makefile is a test in %d packages, want %d", name, n, want)
		}
	}
}
