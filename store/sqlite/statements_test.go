package sqlite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// scans are the statements that may look at a whole table, each with why.
var scans = map[string]string{
	"sqlOurTables":     "sqlite_schema has a row per table",
	"sqlVersions":      "a row per migration",
	"sqlAllWorkers":    "a worker that joins compares all rows with the lock files",
	"sqlNewGeneration": "writes one row",
}

// whole matches a plan's line that reads a table or an index from end to end.
var whole = regexp.MustCompile(`^SCAN (\S+)`)

// constants returns the string constants of the package's own source, with
// concatenations put together.
func constants(t *testing.T) map[string]string {
	t.Helper()
	exprs := make(map[string]ast.Expr)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					exprs[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	texts := make(map[string]string)
	for name, expr := range exprs {
		if text, ok := textOf(exprs, expr); ok {
			texts[name] = text
		}
	}
	return texts
}

func textOf(exprs map[string]ast.Expr, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if of := exprs[e.Name]; of != nil {
			return textOf(exprs, of)
		}
	case *ast.BinaryExpr:
		left, ok := textOf(exprs, e.X)
		right, also := textOf(exprs, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// Every statement of the package, also one that is new, finds its rows by a
// key or an index: in an empty database, and in one that a user analyzed when
// it held next to nothing, which is when statistics mislead most.
func TestEveryStatementSearches(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	statements := make(map[string]string)
	for name, text := range constants(t) {
		verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch verb {
		case "SELECT", "INSERT", "UPDATE", "DELETE":
			if strings.HasPrefix(name, "sql") {
				statements[name] = text
			}
		}
	}
	if len(statements) < 100 {
		t.Fatalf("found %d statements in the source, want the 100 and more that there are", len(statements))
	}
	check := func(when string) {
		t.Helper()
		for name, sql := range statements {
			plan, err := f.db.Plan(t.Context(), sql)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, line := range plan {
				if m := whole.FindStringSubmatch(line); m != nil && m[1] != "CONSTANT" && scans[name] == "" {
					t.Errorf("%s, %s: %s", name, when, line)
				}
			}
		}
	}
	check("fresh")
	f.finish(f.claim("w", len(f.enqueue(3)))...)
	f.enqueue(2)
	f.exec("ANALYZE")
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	f = fixtureOn(t, openFile(t, f.db.Path())) // statistics are read with the schema
	check("analyzed")
}
