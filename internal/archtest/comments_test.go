package archtest_test

import (
	"go/ast"
	"testing"
)

func TestPackageComments(t *testing.T) {
	t.Parallel()
	for name, p := range packages(t) {
		if !p.doc {
			t.Errorf("package %s has no package comment: say what it is for, what always holds in it and what it does not do "+
				"(a package of tests only gets a doc.go)", name)
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no doc comment: say what it means, its units, its errors", f.at(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration without a comment. The comment of a group of constants or
// variables counts for each.
func undocumented(decl ast.Decl) []*ast.Ident {
	var bare []*ast.Ident
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc == nil && decl.Name.IsExported() && exportedReceiver(decl) {
			bare = append(bare, decl.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if decl.Doc == nil && spec.Doc == nil && spec.Comment == nil && spec.Name.IsExported() {
					bare = append(bare, spec.Name)
				}
			case *ast.ValueSpec:
				if decl.Doc != nil || spec.Doc != nil || spec.Comment != nil {
					continue
				}
				for _, name := range spec.Names {
					if name.IsExported() {
						bare = append(bare, name)
					}
				}
			}
		}
	}
	return bare
}

// exportedReceiver reports whether a function is one of the package or a
// method of an exported type.
func exportedReceiver(decl *ast.FuncDecl) bool {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return true
	}
	exported := false
	ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok && !exported {
			exported = id.IsExported()
		}
		return !ok
	})
	return exported
}
