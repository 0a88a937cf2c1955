package archtest_test

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// suites: directory → what it is. Their files are test code without the name.
var suites = map[string]string{
	"store/storetest":       "conformance suite of stores",
	"delivery/deliverytest": "conformance suite of transports",
	"blob/blobtest":         "conformance suite of buckets",
	"order/ordertest":       "conformance suite of order stores",
	"weavertest":            "runs inside users' tests, in a bubble",
}

// mayStartGoroutines: directory → why it may, beside test code.
var mayStartGoroutines = map[string]string{
	"internal/group": "it owns every goroutine",
	"examples":       "shows users' code, which cannot import internal/group",
}

func TestGoroutinesAreOwned(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || f.under(suites) || f.under(mayStartGoroutines) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if startsGoroutine(n) {
				t.Errorf("%s starts a goroutine: use internal/group, which waits for it, names it and turns its panic into an error", f.at(n))
			}
			return true
		})
	}
}

// startsGoroutine finds go statements, and sync.WaitGroup.Go, which is one in
// disguise: a method Go with the function as its only argument.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// In the bubble of testing/synctest a sleep advances the clock and costs
// nothing, so test code may sleep where a file beside it opens one.
func TestNoSleep(t *testing.T) {
	t.Parallel()
	bubbles := make(map[string]bool) // directories
	for _, f := range goFiles(t) {
		if f.importsPackage("testing/synctest") {
			bubbles[path.Dir(f.path)] = true
		}
	}
	for _, f := range goFiles(t) {
		if bubbles[path.Dir(f.path)] && (f.isTest() || f.under(suites)) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if selects(n, "time", "Sleep") {
				t.Errorf("%s uses time.Sleep: in code wait for a timer or the context's end, whichever comes first; in a test use testing/synctest", f.at(n))
			}
			return true
		})
	}
}

// A skipped test is a promise nobody checks: what a test needs is installed
// by make, or the test does not exist.
func TestNothingIsSkipped(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, receiver := range []string{"t", "tb", "b", "f"} {
				for _, method := range []string{"Skip", "Skipf", "SkipNow"} {
					if selects(n, receiver, method) {
						t.Errorf("%s skips a test: make the test run everywhere, or let make install what it needs", f.at(n))
					}
				}
			}
			if selects(n, "testing", "Short") {
				t.Errorf("%s asks for -short: make the test fast enough to run always, or move it to make soak", f.at(n))
			}
			return true
		})
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !selects(call.Fun, "fmt", "Errorf") && !selects(call.Fun, "errors", "New") {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.HasPrefix(strings.ToLower(text), "failed to") {
				t.Errorf("%s: an error text begins with %q: say what was being done (\"claim tasks: %%w\"); that it failed is known", f.at(lit), "failed to")
			}
			return true
		})
	}
}

const maxLines = 500

func TestFileLength(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		if f.ast == nil && !strings.HasSuffix(f.path, ".sql") && !strings.HasSuffix(f.path, ".sh") {
			continue
		}
		if n := strings.Count(f.text, "\n"); n > maxLines {
			t.Errorf("%s has %d lines: split it by role; at 400 is the time to think, %d is the end", f.path, n, maxLines)
		}
	}
}
