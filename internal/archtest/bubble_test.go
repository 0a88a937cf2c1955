package archtest_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// bubbles are the parts of a package that run only in testing/synctest bubbles. They are functions passed to
// synctest.Test or to a function that runs them there (an opener), and code used only by them. Names are compared,
// not objects: two methods with one name count as one.
type bubbles struct {
	uses     map[string][]*ast.Ident // of functions and variables; methods and fields begin with a dot, types whose values are created with a *
	fields   map[string][]ast.Node   // values of fields
	types    map[string]ast.Expr
	literals []literal
	calls    []*ast.CallExpr
	defs     []*definition
	openers  map[string][]ast.Node // names of openers → scopes of the name; nil is the package
	regions  []ast.Node
	merged   [][2]token.Pos // the regions, in order
}

// literal is a composite literal with its type, which an outer literal may state.
type literal struct {
	*ast.CompositeLit
	typ ast.Expr
}

// definition is a function, a type with its methods, or a field or local variable that holds functions.
type definition struct {
	name   string
	scope  ast.Node // nil is the package
	nodes  []ast.Node
	params *ast.FieldList // of a function
	entry  bool           // called from outside the package
	inside bool
}

func bubblesOf(files []*file) *bubbles {
	b := &bubbles{uses: map[string][]*ast.Ident{}, fields: map[string][]ast.Node{}, types: map[string]ast.Expr{}, openers: map[string][]ast.Node{}}
	methods := make(map[string][]ast.Node) // type → methods
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			b.read(decl)
			if fn, ok := decl.(*ast.FuncDecl); ok {
				def := &definition{name: fn.Name.Name, nodes: []ast.Node{fn}, params: fn.Type.Params, entry: isEntry(f, fn.Name.Name)}
				if fn.Recv != nil {
					def.name = "." + def.name
					methods[receiver(fn)] = append(methods[receiver(fn)], fn)
				}
				b.defs = append(b.defs, def)
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				nodes := append(methods[spec.Name.Name], spec)
				b.defs = append(b.defs, &definition{name: "*" + spec.Name.Name, nodes: nodes, entry: isEntry(f, spec.Name.Name)})
			}
			return true
		})
	}
	for _, lit := range b.literals {
		b.readFields(lit.typ, lit.CompositeLit)
	}
	for name, values := range b.fields {
		b.defs = append(b.defs, &definition{name: name, nodes: values})
	}
	for b.grow() || b.growTogether() {
	}
	return b
}

// isEntry reports whether go test or another package calls a function.
func isEntry(f *file, name string) bool {
	if !f.isTest() {
		return ast.IsExported(name) || name == "main" || name == "init"
	}
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example", "init"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// receiver returns the name of the type of a method.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// read collects the identifiers, calls and local definitions of a declaration.
func (b *bubbles) read(decl ast.Decl) {
	selected := make(map[*ast.Ident]bool)
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected[n.Sel] = true
		case *ast.Ident:
			name := n.Name
			if selected[n] {
				name = "." + name
			}
			b.uses[name] = append(b.uses[name], n)
		case *ast.CallExpr:
			b.calls = append(b.calls, n)
			if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "new" {
				b.makes(n.Args[0])
			}
		case *ast.CompositeLit:
			b.makes(n.Type)
			b.literals = append(b.literals, literal{n, n.Type})
		case *ast.ValueSpec:
			b.makes(n.Type)
		case *ast.TypeSpec:
			b.makes(n.Type)
			b.types[n.Name.Name] = n.Type
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if i < len(n.Rhs) {
					b.local(decl, left, n.Rhs[i])
				}
			}
		case *ast.RangeStmt:
			b.local(decl, n.Value, n.X)
		}
		return true
	})
}

// readFields records the field values of a struct literal, or of the struct literals in a list or map.
func (b *bubbles) readFields(typ ast.Expr, lit *ast.CompositeLit) {
	if id, ok := typ.(*ast.Ident); ok {
		typ = b.types[id.Name]
	}
	var inner ast.Expr
	var names []string
	switch typ := typ.(type) {
	case *ast.ArrayType:
		inner = typ.Elt
	case *ast.MapType:
		inner = typ.Value
	case *ast.StructType:
		for _, f := range typ.Fields.List {
			for _, name := range f.Names {
				names = append(names, name.Name)
			}
		}
	}
	for i, value := range lit.Elts {
		pair, keyed := value.(*ast.KeyValueExpr)
		if keyed {
			value = pair.Value
		}
		if element, ok := value.(*ast.CompositeLit); ok && inner != nil && element.Type == nil {
			b.readFields(inner, element)
		}
		name := ""
		if keyed {
			if key, ok := pair.Key.(*ast.Ident); ok && inner == nil {
				name = key.Name
			}
		} else if i < len(names) {
			name = names[i]
		}
		if name != "" {
			b.fields["."+name] = append(b.fields["."+name], value)
		}
	}
}

// makes records the types whose values are created.
func (b *bubbles) makes(typ ast.Expr) {
	if typ == nil {
		return
	}
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr, *ast.FuncType:
			return false
		case *ast.Ident:
			b.uses["*"+n.Name] = append(b.uses["*"+n.Name], n)
		}
		return true
	})
}

// local adds a variable that holds functions.
func (b *bubbles) local(decl ast.Decl, left, right ast.Expr) {
	id, ok := left.(*ast.Ident)
	if _, isFunc := decl.(*ast.FuncDecl); !ok || !isFunc || !contains(right, func(n ast.Node) bool { _, ok := n.(*ast.FuncLit); return ok }) {
		return
	}
	def := &definition{name: id.Name, scope: decl, nodes: []ast.Node{right, id}}
	if fn, ok := right.(*ast.FuncLit); ok {
		def.params = fn.Type.Params
	}
	b.defs = append(b.defs, def)
}

// grow adds code that the known regions show to be in bubbles, and reports whether it found any.
func (b *bubbles) grow() bool {
	known, openers := len(b.regions), len(b.openers)
	b.calls = slices.DeleteFunc(b.calls, func(call *ast.CallExpr) bool {
		if !b.opens(call.Fun) {
			return false
		}
		for _, arg := range call.Args {
			b.regions = append(b.regions, arg)
		}
		return true
	})
	b.merge()
	for _, def := range b.defs {
		if def.params != nil && b.isOpener(def) {
			b.openers[def.name] = append(b.openers[def.name], def.scope)
			def.params = nil
		}
		if !def.entry && !def.inside && b.usedInside(def) {
			def.inside = true
			b.regions = append(b.regions, def.nodes...)
		}
	}
	return len(b.regions) > known || len(b.openers) > openers
}

// growTogether adds definitions that use one another and are otherwise used only in bubbles.
func (b *bubbles) growTogether() bool {
	known := len(b.regions)
	assumed := slices.DeleteFunc(slices.Clone(b.defs), func(def *definition) bool { return def.entry || def.inside })
	for more := true; more; {
		b.regions = b.regions[:known]
		for _, def := range assumed {
			b.regions = append(b.regions, def.nodes...)
		}
		b.merge()
		n := len(assumed)
		assumed = slices.DeleteFunc(assumed, func(def *definition) bool { return !b.usedInside(def) })
		more = len(assumed) < n
	}
	for _, def := range assumed {
		def.inside = true
	}
	return len(assumed) > 0
}

func (b *bubbles) opens(fun ast.Expr) bool {
	name := ""
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if selects(fun, "synctest", "Test") || selects(fun, "rapid", "SyncTest") {
			return true
		}
		name = "." + fun.Sel.Name
	}
	return slices.ContainsFunc(b.openers[name], func(scope ast.Node) bool { return scope == nil || within(scope, fun) })
}

// isOpener reports whether a function uses one of its function parameters in a bubble.
func (b *bubbles) isOpener(def *definition) bool {
	for _, p := range def.params.List {
		if _, ok := p.Type.(*ast.FuncType); !ok {
			continue
		}
		for _, name := range p.Names {
			if slices.ContainsFunc(b.uses[name.Name], func(id *ast.Ident) bool { return def.owns(id) && b.in(id) }) {
				return true
			}
		}
	}
	return false
}

// usedInside reports whether all uses of a definition are in bubbles.
func (b *bubbles) usedInside(def *definition) bool {
	n := 0
	for _, id := range b.uses[def.name] {
		if def.owns(id) || def.scope != nil && !within(def.scope, id) {
			continue
		}
		if !b.in(id) {
			return false
		}
		n++
	}
	return n > 0
}

func (def *definition) owns(n ast.Node) bool {
	return slices.ContainsFunc(def.nodes, func(node ast.Node) bool { return within(node, n) })
}

// in reports whether a node runs only in bubbles.
func (b *bubbles) in(n ast.Node) bool {
	for _, at := range []token.Pos{n.Pos(), n.End() - 1} {
		i, found := slices.BinarySearchFunc(b.merged, at, func(r [2]token.Pos, at token.Pos) int { return cmp.Compare(r[0], at) })
		if !found && (i == 0 || b.merged[i-1][1] <= at) {
			return false
		}
	}
	return true
}

// merge joins overlapping regions.
func (b *bubbles) merge() {
	sorted := slices.SortedFunc(slices.Values(b.regions), func(x, y ast.Node) int { return cmp.Compare(x.Pos(), y.Pos()) })
	b.merged = b.merged[:0]
	for _, r := range sorted {
		if last := len(b.merged) - 1; last >= 0 && r.Pos() <= b.merged[last][1] {
			b.merged[last][1] = max(b.merged[last][1], r.End())
		} else {
			b.merged = append(b.merged, [2]token.Pos{r.Pos(), r.End()})
		}
	}
}

func within(outer, inner ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

// contains reports whether is holds for a node or one below it.
func contains(n ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}
