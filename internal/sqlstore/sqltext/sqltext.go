// Package sqltext finds the SQL statements of the stores in their source, for tests
// that look at each of them: at its plan, its namespace, and whether a database reads
// it.
package sqltext

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/sqlstore"
)

// All returns the SQL statements in the source of the verbs and in that of the
// packages in some folders, by their names: those of string constants and of
// concatenations, in variables too. lists are further generated lists in them, by the
// names of their tables. It runs in the folder of a store.
func All(t testing.TB, lists map[string]string, dirs ...string) map[string]string {
	t.Helper()
	exprs := make(map[string]ast.Expr)
	var files []string
	for _, dir := range append(dirs, "../../internal/sqlstore") {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	generated := maps.Clone(sqlstore.ColumnLists)
	maps.Copy(generated, lists)
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
		if !strings.HasPrefix(name, "sql") {
			continue
		}
		text, ok := textOf(exprs, generated, expr)
		if !ok && holdsSeveral(expr) {
			continue
		}
		if !ok {
			t.Errorf("%s: its text is not found in the source; put its generated parts into sqlstore.ColumnLists", name)
		}
		verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch verb {
		case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
			texts[name] = text
		}
	}
	maps.Copy(texts, sqlstore.Chunks())
	if len(texts) < 100 {
		t.Fatalf("found %d statements in the source, want the 100 and more that there are", len(texts))
	}
	return texts
}

// holdsSeveral reports whether a variable holds several statements, which
// sqlstore.Chunks has.
func holdsSeveral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.Ident)
		return ok && fun.Name == "newChunkSQL"
	case *ast.CompositeLit:
		return true
	}
	return false
}

func textOf(exprs map[string]ast.Expr, generated map[string]string, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if of := exprs[e.Name]; of != nil {
			return textOf(exprs, generated, of)
		}
	case *ast.CallExpr: // xColumns.List()
		if fun, ok := e.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "List" {
			if table, ok := fun.X.(*ast.Ident); ok {
				list := generated[table.Name]
				return list, list != ""
			}
		}
	case *ast.BinaryExpr:
		left, ok := textOf(exprs, generated, e.X)
		right, also := textOf(exprs, generated, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
