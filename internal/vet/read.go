package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checker collects the uses of task types in packages.
type checker struct {
	fset  *token.FileSet
	types map[string]*taskType // by name
	byKey map[string]*taskType // by the variable that holds the result of Define; see key
}

// source is a package with its syntax.
type source struct {
	path  string
	files []*ast.File
	info  *types.Info
}

// read reads the packages of the main module: definitions first, then uses.
func (c *checker) read(pkgs []*listed) error {
	exports := make(map[string]string, len(pkgs))
	for _, p := range pkgs {
		exports[p.ImportPath] = p.Export
	}
	var sources []source
	imported := importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range pkgs {
		if p.Standard || p.Module == nil || !p.Module.Main || p.ImportPath == module || !slices.Contains(p.Deps, module) {
			continue
		}
		s := source{path: p.ImportPath, info: &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("read %s: %w", p.ImportPath, err)
			}
			s.files = append(s.files, f)
		}
		conf := types.Config{Importer: mapped{imported, p.ImportMap}, FakeImportC: true, Error: func(error) {}} // the go command has already compiled it
		_, _ = conf.Check(p.ImportPath, c.fset, s.files, s.info)
		sources = append(sources, s)
	}
	for _, look := range []func(*source, ast.Node, []ast.Node){c.define, c.use} {
		for i := range sources {
			for _, f := range sources[i].files {
				ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
					look(&sources[i], n, stack)
					return true
				})
			}
		}
	}
	return nil
}

// mapped is an importer for a package with an import map, such as vendored imports.
type mapped struct {
	types.Importer
	to map[string]string
}

// Import implements types.Importer.
func (m mapped) Import(path string) (*types.Package, error) {
	if to := m.to[path]; to != "" {
		path = to
	}
	return m.Importer.Import(path)
}

func (c *checker) named(name string) *taskType {
	if c.types[name] == nil {
		c.types[name] = &taskType{name: name}
	}
	return c.types[name]
}

// key returns the same name for a variable or field in its own package and in packages that import it.
func (c *checker) key(obj types.Object) string {
	if obj == nil || obj.Pkg() == nil {
		return ""
	}
	if v, ok := obj.(*types.Var); ok && (v.IsField() || obj.Parent() != obj.Pkg().Scope()) {
		pos := c.fset.Position(obj.Pos())
		return obj.Pkg().Path() + "." + obj.Name() + "@" + filepath.Base(pos.Filename) + ":" + strconv.Itoa(pos.Line)
	}
	return obj.Pkg().Path() + "." + obj.Name()
}

// of returns the object of a name or a qualified name.
func (s *source) of(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if obj := s.info.Defs[e]; obj != nil {
			return obj
		}
		return s.info.Uses[e]
	case *ast.SelectorExpr:
		return s.info.Uses[e.Sel]
	case *ast.IndexExpr: // type arguments
		return s.of(e.X)
	case *ast.IndexListExpr:
		return s.of(e.X)
	}
	return nil
}

// called returns the name of the called function of package weaver, or "" for another function. ours reports whether
// the function belongs to weaver's module.
func (s *source) called(call *ast.CallExpr) (name string, ours bool) {
	f, ok := s.of(call.Fun).(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil {
		return "", false
	}
	if f.Pkg().Path() == module {
		return f.Name(), true
	}
	return "", strings.HasPrefix(f.Pkg().Path(), module+"/")
}

// text returns the value of an argument that is a constant string.
func (s *source) text(call *ast.CallExpr, i int) (string, bool) {
	if i >= len(call.Args) {
		return "", false
	}
	v := s.info.Types[call.Args[i]].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// define records the type of a Define call and the variable that holds it.
func (c *checker) define(s *source, n ast.Node, stack []ast.Node) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return
	}
	fn, _ := s.called(call)
	name, known := s.text(call, 0)
	if !known || fn != "Define" && fn != "NewDraft" {
		return
	}
	t := c.named(name)
	if fn == "NewDraft" {
		t.enqueuedAt(call.Pos())
		return
	}
	if !t.defined.IsValid() {
		t.defined = call.Pos()
	}
	if key := c.key(s.holder(call, stack)); key != "" {
		c.byKey[key] = t
		return
	}
	if sel, ok := stack[len(stack)-1].(*ast.SelectorExpr); ok {
		c.method(s, t, sel)
		return
	}
	t.unknown = true
}

// holder returns the variable or field that gets a value, or nil if the value goes elsewhere.
func (s *source) holder(value ast.Expr, stack []ast.Node) types.Object {
	switch parent := stack[len(stack)-1].(type) {
	case *ast.ValueSpec:
		if i := slices.Index(parent.Values, value); i >= 0 && len(parent.Names) == len(parent.Values) {
			return s.info.Defs[parent.Names[i]]
		}
	case *ast.AssignStmt:
		if i := slices.Index(parent.Rhs, value); i >= 0 && len(parent.Lhs) == len(parent.Rhs) {
			return s.of(parent.Lhs[i])
		}
	case *ast.KeyValueExpr:
		if key, ok := parent.Key.(*ast.Ident); ok && parent.Value == value {
			if v, ok := s.info.Uses[key].(*types.Var); ok && v.IsField() {
				return v
			}
		}
	}
	return nil
}

func (t *taskType) enqueuedAt(pos token.Pos) {
	if !t.enqueued.IsValid() {
		t.enqueued = pos
	}
}

// method records the use of a type by one of its methods.
func (c *checker) method(s *source, t *taskType, sel *ast.SelectorExpr) {
	switch sel.Sel.Name {
	case "Handler":
		if !slices.Contains(t.handled, s.path) {
			t.handled = append(t.handled, s.path)
		}
	case "Enqueue", "EnqueueAndWait", "EnqueueMany", "With", "WithJSON":
		t.enqueuedAt(sel.Pos())
	}
}

// use records the use of a variable that holds a type.
func (c *checker) use(s *source, n ast.Node, stack []ast.Node) {
	id, ok := n.(*ast.Ident)
	if !ok || s.info.Uses[id] == nil {
		return
	}
	t := c.byKey[c.key(s.info.Uses[id])]
	if t == nil {
		return
	}
	var value ast.Expr = id
	if sel, ok := stack[len(stack)-1].(*ast.SelectorExpr); ok && sel.Sel == id { // qualified by a package or struct
		value, stack = sel, stack[:len(stack)-1]
	}
	switch parent := stack[len(stack)-1].(type) {
	case *ast.SelectorExpr:
		c.method(s, t, parent)
		return
	case *ast.KeyValueExpr:
		if parent.Key == value {
			return
		}
	case *ast.AssignStmt:
		if slices.Contains(parent.Lhs, value) {
			return
		}
	case *ast.CallExpr:
		switch name, ours := s.called(parent); {
		case slices.Contains([]string{"Start", "Call", "CallAll", "CallEach", "OnCall"}, name):
			t.enqueuedAt(value.Pos())
			return
		case ours:
			return
		}
	}
	t.unknown = true
}
