package archtest_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// suites maps a directory to its purpose. The files are test code, although their names do not end in _test.go.
var suites = map[string]string{
	"store/storetest":            "conformance suite of stores",
	"delivery/deliverytest":      "conformance suite of transports",
	"blob/blobtest":              "conformance suite of buckets",
	"order/ordertest":            "conformance suite of order stores",
	"internal/httpcontract":      "holds an API to its document in tests",
	"internal/pgtest":            "servers for tests",
	"internal/redistest":         "servers for tests",
	"internal/s3test":            "servers for tests",
	"internal/faults/refusetest": "write paths of an engine on a store that refuses",
	"weavertest":                 "runs inside users' tests, in a bubble",
}

// mayStartGoroutines maps a directory to the reason why it may start goroutines, in addition to test code.
var mayStartGoroutines = map[string]string{
	"internal/group": "owns every goroutine",
	"examples":       "code of users, who cannot import internal/group",
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

// startsGoroutine reports whether n is a go statement or a call like
// sync.WaitGroup.Go: a method Go with a function as its only argument.
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

// A test that is skipped because the machine lacks something proves nothing: make installs everything a test needs.
// There are three exceptions. A long test checks [testing.Short], and `make test` runs it. A test named TestE2E… checks
// WEAVER_E2E, and `make e2e` runs all of these. A test that needs more than a browser has checks runtime.GOOS, and runs elsewhere.
func TestNothingIsSkipped(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, decl := range f.ast.Decls {
			var allowed []ast.Node
			ast.Inspect(decl, func(n ast.Node) bool {
				if block, ok := n.(*ast.IfStmt); ok && (isShort(block.Cond) || isE2E(decl, block.Cond) || isJS(block.Cond)) {
					allowed = append(allowed, block.Body)
				}
				inside := func(block ast.Node) bool { return block.Pos() <= n.Pos() && n.End() <= block.End() }
				if skips(n) && !slices.ContainsFunc(allowed, inside) {
					t.Errorf("%s skips a test: make the test run everywhere, or let make install what it needs. A long test may be skipped "+
						"where testing.Short() is true, one named TestE2E… where os.Getenv(\"WEAVER_E2E\") is empty, one of what no browser has where "+
						"runtime.GOOS == \"js\"", f.at(n))
				}
				return true
			})
		}
	}
}

func skips(n ast.Node) bool {
	for _, receiver := range []string{"t", "tb", "b", "f"} {
		for _, method := range []string{"Skip", "Skipf", "SkipNow"} {
			if selects(n, receiver, method) {
				return true
			}
		}
	}
	return false
}

// isShort reports whether a condition is testing.Short().
func isShort(cond ast.Expr) bool {
	call, ok := cond.(*ast.CallExpr)
	return ok && selects(call.Fun, "testing", "Short")
}

// isJS reports whether a condition is runtime.GOOS == "js".
func isJS(cond ast.Expr) bool {
	equal, ok := cond.(*ast.BinaryExpr)
	if !ok || equal.Op != token.EQL || !selects(equal.X, "runtime", "GOOS") {
		return false
	}
	name, ok := equal.Y.(*ast.BasicLit)
	return ok && name.Value == `"js"`
}

// isE2E reports whether a condition of a function named TestE2E… is
// os.Getenv("WEAVER_E2E") == "".
func isE2E(decl ast.Decl, cond ast.Expr) bool {
	fn, ok := decl.(*ast.FuncDecl)
	if !ok || !strings.HasPrefix(fn.Name.Name, "TestE2E") {
		return false
	}
	equal, ok := cond.(*ast.BinaryExpr)
	if !ok || equal.Op != token.EQL {
		return false
	}
	call, ok := equal.X.(*ast.CallExpr)
	if !ok || !selects(call.Fun, "os", "Getenv") || len(call.Args) != 1 {
		return false
	}
	name, ok := call.Args[0].(*ast.BasicLit)
	empty, ok2 := equal.Y.(*ast.BasicLit)
	return ok && ok2 && name.Value == `"WEAVER_E2E"` && empty.Value == `""`
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
		if path.Base(f.path) == "schema.sql" {
			continue // written by a test, from the migrations
		}
		if n := strings.Count(f.text, "\n"); n > maxLines {
			t.Errorf("%s has %d lines: split it by role; think about it at 400, %d is the limit", f.path, n, maxLines)
		}
	}
}

// TestLeaseFractions keeps the durations of a lease's life in one file.
func TestLeaseFractions(t *testing.T) {
	t.Parallel()
	isTTL := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return e.Sel.Name == "TTL" || e.Sel.Name == "Lease"
		case *ast.Ident:
			return e.Name == "ttl"
		}
		return false
	}
	for _, f := range goFiles(t) {
		if f.isTest() || f.under(suites) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if e, ok := n.(*ast.BinaryExpr); ok && (e.Op == token.QUO && isTTL(e.X) || e.Op == token.MUL && (isTTL(e.X) || isTTL(e.Y))) {
				t.Errorf("%s takes a part of a lease's life: give it a method of rules.LeaseClock, with the race that it closes", f.at(n))
			}
			return true
		})
	}
}
