package httpapi_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/httpapi"
)

// notOverHTTP lists the sentinels that are not problems, with the reasons. If one occurs anyway the
// response is an "internal" problem, and the error is logged.
var notOverHTTP = map[string]string{
	"store.ErrCancelRequested": "an attempt gets it",
	"store.ErrGone":            "it is an ErrUnavailable",
	"store.ErrForeignTx":       "the API begins no transaction of a caller",
	"store.ErrNilTx":           "the API begins no transaction of a caller",
	"store.ErrLeaseLost":       "an attempt gets it",
	"store.ErrStepConflict":    "an attempt gets it",
	"store.ErrStepTxEnded":     "an attempt gets it",
	"store.ErrStepTxRefused":   "an attempt gets it",
	"store.ErrStepTxTooLong":   "an attempt gets it",
	"weaver.ErrAttemptOver":    "an attempt gets it",
	"weaver.ErrCancelled":      "why the context of an attempt ended",
	"weaver.ErrCleanupTooLong": "an attempt gets it",
	"weaver.ErrConfig":         "New returns it",
	"weaver.ErrDeadline":       "why the context of an attempt ended",
	"weaver.ErrDraining":       "why the context of an attempt ended",
	"weaver.ErrDuplicateStep":  "an attempt gets it",
	"weaver.ErrLeaseUncertain": "why the context of an attempt ended",
	"weaver.ErrNestedStep":     "an attempt gets it",
	"weaver.ErrNestedTx":       "a client inside StepTx gets it",
	"weaver.ErrNoAnswer":       "an attempt gets it",
	"weaver.ErrNoTask":         "an attempt gets it",
	"weaver.ErrRunning":        "an engine returns it",
	"weaver.ErrSuspended":      "an attempt gets it",
	"weaver.ErrTimeout":        "why the context of an attempt ended",
	"weaver.ErrTxType":         "an attempt gets it",
	"weaver.ErrUnbound":        "a handle of a transaction returns it",
	"weaver.ErrUndoing":        "why the context of an attempt ended",
}

// Every exported error has a problem, or a reason why it has not.
func TestEverySentinelIsAProblem(t *testing.T) {
	t.Parallel()
	alias := make(map[string]string) // names of the root package, to those of package store
	all := make(map[string]bool)
	for pkg, dir := range map[string]string{"weaver": "..", "store": "../store", "ops": "../ops"} {
		for name, value := range exportedErrors(t, dir) {
			if of, is := value.(*ast.SelectorExpr); is && pkg == "weaver" && sourceOf(of.X) == "store" {
				alias["weaver."+name] = "store." + of.Sel.Name
				continue
			}
			all[pkg+"."+name] = true
		}
	}
	if len(all) < 50 || len(alias) < 5 {
		t.Fatalf("the packages have only %d errors and %d aliases", len(all), len(alias))
	}
	rows := make(map[string]bool)
	ast.Inspect(parseFile(t, "../httpapi/wire/kind.go"), func(n ast.Node) bool {
		if row, is := n.(*ast.CompositeLit); is && len(row.Elts) == 5 {
			name := sourceOf(row.Elts[0])
			if of, is := alias[name]; is {
				name = of
			}
			rows[name] = true
		}
		return true
	})
	for name := range all {
		switch reason, left := notOverHTTP[name]; {
		case !rows[name] && !left:
			t.Errorf("%s has no row in the table kinds (httpapi/wire/kind.go): add one, and a section to docs/problems.md, or say in notOverHTTP why no answer has it", name)
		case rows[name] && left:
			t.Errorf("%s has a row, and is in notOverHTTP: %s", name, reason)
		}
	}
	for name := range notOverHTTP {
		if !all[name] {
			t.Errorf("notOverHTTP has %s, which does not exist", name)
		}
	}
}

// exportedErrors returns the variables Err… of a package, with their values.
func exportedErrors(t *testing.T, dir string) map[string]ast.Expr {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]ast.Expr)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parseFile(t, file).Decls {
			vars, is := d.(*ast.GenDecl)
			if !is || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				v, _ := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					if strings.HasPrefix(name.Name, "Err") && i < len(v.Values) {
						all[name.Name] = v.Values[i]
					}
				}
			}
		}
	}
	return all
}

func parseFile(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sourceOf returns a name or a qualified name as source text.
func sourceOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return sourceOf(e.X) + "." + e.Sel.Name
	}
	return ""
}

// A problem received over HTTP matches the error from which it was made.
func TestProblemIsItsSentinel(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, k := range httpapi.Problems() {
		if names[k.Name] {
			t.Errorf("two problems are named %s", k.Name)
		}
		names[k.Name] = true
		if k.Status < 400 || k.Status > 599 || !strings.HasSuffix(k.Title, ".") {
			t.Errorf("%s has the status %d and the title %q", k.Name, k.Status, k.Title)
		}
		if k.Sentinel == nil {
			continue
		}
		var err error = &httpapi.Problem{Type: httpapi.ProblemBase + k.Name}
		if !errors.Is(fmt.Errorf("get: %w", err), k.Sentinel) {
			t.Errorf("the problem %s is not %v", k.Name, k.Sentinel)
		}
	}
}

// docs/problems.md has a section for each problem, in the order of the names.
func TestProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(raw), "\n## ")
	written := make(map[string]string)
	var order []string
	for section := range strings.SplitSeq(sections, "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		written[name] = strings.TrimSpace(text)
		order = append(order, name)
	}
	if !slices.IsSorted(order) {
		t.Error("the sections are not in the order of their names")
	}
	for _, k := range httpapi.Problems() {
		text, there := written[k.Name]
		delete(written, k.Name)
		head := fmt.Sprintf("%d. %s", k.Status, k.Title)
		first, rest, _ := strings.Cut(text, "\n")
		switch {
		case !there:
			t.Errorf("there is no section %q; it begins with %q", k.Name, head)
		case first != head:
			t.Errorf("the section %s begins with %q, want %q", k.Name, first, head)
		case len(strings.TrimSpace(rest)) < 40:
			t.Errorf("the section %s does not say what it means and what to do", k.Name)
		}
	}
	for name := range written {
		t.Errorf("there is no problem %s", name)
	}
}
