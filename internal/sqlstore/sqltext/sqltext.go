// Package sqltext extracts the SQL statements of the stores from their source. Tests use it to
// check each statement: its plan, its namespace, and that a database accepts it.
package sqltext

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/goweaver/weaver/internal/sqlstore"
)

// All returns the SQL statements in the source of the verbs and of the packages in some
// folders, by name. It reads string constants and concatenations, also in variables. lists
// holds further generated column lists by the names of their tables, and generated statements
// by their names. Statement names are unique across packages, because tests use them without a
// package name. All must run in the folder of a store.
func All(t testing.TB, lists map[string]string, dirs ...string) map[string]string {
	t.Helper()
	generated := maps.Clone(sqlstore.ColumnLists)
	maps.Copy(generated, lists)
	texts, err := read(generated, append(slices.Clone(dirs), "../../internal/sqlstore")...)
	if err != nil {
		t.Error(err)
	}
	maps.Copy(texts, sqlstore.Chunks())
	if len(texts) < 100 {
		t.Fatalf("found %d statements in the source, want the 100 and more that there are", len(texts))
	}
	return texts
}

// source is the declarations of packages.
type source struct {
	packages []map[string]ast.Expr // by name
	lists    map[string]string     // generated
}

// read returns the statements of the packages in some folders, and an error for unreadable
// ones.
func read(lists map[string]string, dirs ...string) (map[string]string, error) {
	src := source{lists: lists}
	texts, declared := make(map[string]string), make(map[string]string)
	var problems []error
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return texts, err
		}
		exprs := make(map[string]ast.Expr)
		src.packages = append(src.packages, exprs)
		fset := token.NewFileSet()
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				return texts, err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Names) != len(spec.Values) {
					return true
				}
				for i, name := range spec.Names {
					at := fset.Position(name.Pos()).String()
					if was := declared[name.Name]; was != "" && isStatement(name.Name) {
						problems = append(problems, fmt.Errorf("%s: %s is the name of a statement at %s too; rename one of them", at, name.Name, was))
						continue
					}
					declared[name.Name], exprs[name.Name] = at, spec.Values[i]
				}
				return true
			})
		}
	}
	for pkg, exprs := range src.packages {
		for name, expr := range exprs {
			if !isStatement(name) {
				continue
			}
			text, ok := src.lists[name]
			if !ok {
				text, ok = src.text(pkg, expr)
			}
			if !ok && holdsSeveral(expr) {
				continue
			}
			if !ok {
				problems = append(problems, fmt.Errorf("%s: the text of %s is not found in the source; put its generated parts, or the whole of it, into sqlstore.ColumnLists", declared[name], name))
				continue
			}
			verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")
			switch verb {
			case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
				texts[name] = text
			}
		}
	}
	return texts, errors.Join(problems...)
}

// isStatement reports whether a name is the name of one or several statements.
func isStatement(name string) bool {
	rest, ok := strings.CutPrefix(name, "sql")
	return ok && rest != "" && unicode.IsUpper(rune(rest[0]))
}

// holdsSeveral reports whether a variable holds several statements, which sqlstore.Chunks
// returns.
func holdsSeveral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.Ident)
		return ok && slices.Contains([]string{"newChunkSQL", "newIDSQL", "eraseFrom", "repeat"}, fun.Name)
	case *ast.CompositeLit:
		return true
	}
	return false
}

// text evaluates an expression in a package to its text.
func (s *source) text(pkg int, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if of := s.packages[pkg][e.Name]; of != nil {
			return s.text(pkg, of)
		}
	case *ast.SelectorExpr: // sqlstore.TaskSelect
		found := -1
		for other, exprs := range s.packages {
			if other != pkg && exprs[e.Sel.Name] != nil {
				if found >= 0 {
					return "", false
				}
				found = other
			}
		}
		if found >= 0 {
			return s.text(found, s.packages[found][e.Sel.Name])
		}
	case *ast.CallExpr: // xColumns.List()
		if fun, ok := e.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "List" {
			var table string
			switch x := fun.X.(type) {
			case *ast.Ident:
				table = x.Name
			case *ast.SelectorExpr: // sqlstore.XColumns.List()
				table = x.Sel.Name
			}
			list := s.lists[table]
			return list, list != ""
		}
	case *ast.BinaryExpr:
		left, ok := s.text(pkg, e.X)
		right, also := s.text(pkg, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
