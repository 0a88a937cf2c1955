package sqlite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/sqlite"
)

// statements returns the SQL statements in the source of the store, by their
// names: those of string constants and of concatenations, in variables too.
func statements(t *testing.T) map[string]string {
	t.Helper()
	exprs := make(map[string]ast.Expr)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../../internal/sqlstore/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, shared...)
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
		text, ok := textOf(exprs, expr)
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

func textOf(exprs map[string]ast.Expr, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if of := exprs[e.Name]; of != nil {
			return textOf(exprs, of)
		}
	case *ast.CallExpr: // xColumns.List()
		if fun, ok := e.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "List" {
			if table, ok := fun.X.(*ast.Ident); ok {
				list := sqlstore.ColumnLists[table.Name]
				if table.Name == "versionColumns" {
					list = sqlite.VersionColumns
				}
				return list, list != ""
			}
		}
	case *ast.BinaryExpr:
		left, ok := textOf(exprs, e.X)
		right, also := textOf(exprs, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// crossNamespaces are the statements that may touch a table of ours without a
// namespace, each with why.
var crossNamespaces = map[string]string{
	"sqlVersions":    "the schema is of all namespaces",
	"sqlAddVersion":  "the schema is of all namespaces",
	"sqlAddAdditive": "the schema is of all namespaces",
	"sqlKeepClock":   "time is the same in all namespaces",
	"sqlProbe":       "the schema is of all namespaces",
	"sqlUnprobe":     "the schema is of all namespaces",
	"sqlAllWorkers":  "lock files are of all namespaces",
}

var (
	// ours matches a use of one of our tables, with its alias.
	ours = regexp.MustCompile(`(?:FROM|INTO|UPDATE|JOIN)\s+(weaver_\w+)(?:\s+([a-z])\b)?`)
	// literals are SQL texts, whose words are no part of the statement.
	literals = regexp.MustCompile(`'[^']*'`)
)

// No statement reads or writes rows of two namespaces: wherever it uses a
// table of ours it compares the namespace of that table, or sets it.
func TestEveryStatementHasANamespace(t *testing.T) {
	t.Parallel()
	for name, sql := range statements(t) {
		if crossNamespaces[name] != "" {
			continue
		}
		sql := literals.ReplaceAllString(sql, "''")
		uses := ours.FindAllStringSubmatchIndex(sql, -1)
		for i, use := range uses {
			// What is said of a table stands between its use and the end of its
			// own SELECT: the next use may be a subquery, whose predicate counts for
			// itself, so that each use needs one of its own.
			end := len(sql)
			if i+1 < len(uses) {
				end = uses[i+1][0]
			}
			alias := `(?:\w+\.)?`
			if use[4] >= 0 {
				alias = regexp.QuoteMeta(sql[use[4]:use[5]]) + `\.`
			}
			predicate := regexp.MustCompile(`\b` + alias + `namespace = (?:\?1|''|[a-z]\.namespace)`)
			inserted := strings.HasPrefix(strings.TrimSpace(sql), "INSERT") && i == 0
			switch {
			case inserted && regexp.MustCompile(`(?s)\(\s*namespace\b.*(?:VALUES \(|SELECT )(?:\?1|namespace)\b`).MatchString(sql):
			case predicate.MatchString(sql[use[0]:end]), use[4] >= 0 && predicate.MatchString(sql), i == 0 && endsWithNamespace(sql):
			default:
				t.Errorf("%s uses %s without its namespace:\n%s", name, sql[use[2]:use[3]], sql)
			}
		}
	}
}

// endsWithNamespace reports whether the outermost WHERE, which comes after
// subqueries in a SET or a SELECT list, compares the namespace.
func endsWithNamespace(sql string) bool {
	i := strings.LastIndex(sql, "\nWHERE namespace = ?1")
	return i >= 0
}
