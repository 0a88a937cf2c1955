package archtest_test

import (
	"go/ast"
	"path"
	"reflect"
	"testing"

	"github.com/goweaver/weaver/store"
)

// maxPort keeps the port small enough to implement in a week: add a field or a command to an existing method.
const maxPort = 43

func TestThePortIsSmall(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[store.Store]().NumMethod(); n > maxPort {
		t.Errorf("store.Store has %d methods, at most %d are wanted", n, maxPort)
	}
}

// What a store can do its Capabilities say: a wrapper need not have the method set of the
// store below.
func TestNoStoreIsAsserted(t *testing.T) {
	t.Parallel()
	ports := make(map[string]bool)
	files := goFiles(t)
	for _, f := range files {
		if path.Dir(f.path) != "store" || f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, is := spec.Type.(*ast.InterfaceType); is {
					ports[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	if !ports["Core"] || !ports["Observe"] {
		t.Fatalf("the interfaces of the port are not found: %v", ports)
	}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var types []ast.Expr
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				types = []ast.Expr{n.Type}
			case *ast.CaseClause:
				types = n.List
			}
			for _, typ := range types {
				if sel, ok := typ.(*ast.SelectorExpr); ok && ports[sel.Sel.Name] && selects(sel, "store", sel.Sel.Name) {
					t.Errorf("%s asserts store.%s: ask Store.Capabilities", f.at(n), sel.Sel.Name)
				}
			}
			return true
		})
	}
}
