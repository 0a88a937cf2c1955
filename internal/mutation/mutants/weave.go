package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// switchPackage is the import of woven code.
const switchPackage = "github.com/goweaver/weaver/internal/mutation/mutants/mutant"

// source is one file.
type source struct {
	path, name string // on disk, and relative to the module's root
	whole      string
	fset       *token.FileSet
	tree       *ast.File
	test       bool
}

func readSource(path, name string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseSource(path, name, string(text))
}

func parseSource(path, name, text string) (*source, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	return &source{path, name, text, fset, tree, strings.HasSuffix(name, "_test.go")}, err
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) exact(n ast.Node) string { return s.whole[s.offset(n.Pos()):s.offset(n.End())] }

// text returns a node's source on one line, shortened.
func (s *source) text(n ast.Node) string { return short(s.exact(n)) }

// weave returns the changed files of a package with the mutants woven in.
// Constants that depend on a mutant's text become variables, and their uses in
// functions are noted.
func weave(files []*source, chosen []*change) map[string]string {
	edits := make(map[*source][]edit)
	vars := make(map[string][]int) // name → mutants that its value depends on
	for _, m := range chosen {
		for _, e := range m.edits {
			e.text = strings.ReplaceAll(e.text, "#ID", strconv.Itoa(m.id))
			edits[m.file] = append(edits[m.file], e)
		}
		for _, name := range m.names {
			vars[name] = append(vars[name], m.id)
		}
	}
	for known := -1; known < count(vars); {
		known = count(vars)
		for _, f := range files {
			f.spread(vars)
		}
	}
	woven := make(map[string]string)
	for _, f := range files {
		edits[f] = append(edits[f], f.variables(vars)...)
		if !f.test {
			edits[f] = append(edits[f], f.uses(vars)...)
		}
		if len(edits[f]) > 0 {
			woven[f.path] = f.apply(edits[f])
		}
	}
	return woven
}

func count(vars map[string][]int) (n int) {
	for _, ids := range vars {
		n += 1 + len(ids)
	}
	return n
}

// know adds a name, perhaps without mutants of its own.
func know(vars map[string][]int, name string) {
	if _, known := vars[name]; !known {
		vars[name] = nil
	}
}

// spread adds the constants and variables that depend on known names, and the
// constants declared together with them: they become variables too.
func (s *source) spread(vars map[string][]int) {
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if decl, ok := n.(*ast.GenDecl); ok && becomesVar(decl, vars) {
			for _, spec := range decl.Specs {
				for _, name := range namesOf(spec.(*ast.ValueSpec)) {
					know(vars, name)
				}
			}
		}
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, name := range namesOf(spec) {
			for _, used := range namesIn(spec) {
				ids, known := vars[used]
				if known {
					know(vars, name)
				}
				for _, id := range ids {
					if !slices.Contains(vars[name], id) {
						vars[name] = append(vars[name], id)
					}
				}
			}
		}
		return true
	})
}

// namesIn returns the names in the values of a declaration.
func namesIn(spec *ast.ValueSpec) (names []string) {
	for _, v := range spec.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
			_, function := n.(*ast.FuncLit)
			return !function
		})
	}
	return names
}

// variables turns constants that depend on mutants into variables.
func (s *source) variables(vars map[string][]int) (edits []edit) {
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if decl, ok := n.(*ast.GenDecl); ok && becomesVar(decl, vars) {
			from := s.offset(decl.Pos())
			edits = append(edits, edit{from: from, to: from + len("const"), text: "var"})
		}
		return true
	})
	return edits
}

// becomesVar reports whether a declaration has a constant that depends on mutants.
func becomesVar(decl *ast.GenDecl, vars map[string][]int) bool {
	return decl.Tok == token.CONST && slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
		return slices.ContainsFunc(namesOf(spec.(*ast.ValueSpec)), func(name string) bool {
			_, ok := vars[name]
			return ok
		})
	})
}

// uses wraps the variables that functions read.
func (s *source) uses(vars map[string][]int) (edits []edit) {
	skip := make(map[*ast.Ident]bool)
	for _, decl := range s.tree.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, id := range n.Names {
					skip[id] = true
				}
			case *ast.SelectorExpr:
				skip[n.Sel] = true
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					skip[id] = true
				}
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						skip[id] = true
					}
				}
			case *ast.UnaryExpr:
				if id, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
					skip[id] = true
				}
			case *ast.Ident:
				if ids := vars[n.Name]; len(ids) > 0 && !skip[n] {
					list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ", "), "[]")
					edits = append(edits, wrapAt(s, n, depthCall, "mutant.Use(", ", "+list+")")...)
				}
			}
			return true
		})
	}
	return edits
}

// apply applies the edits and imports package mutant.
func (s *source) apply(edits []edit) string {
	// Wraps of one node nest: the first is outermost and ends last.
	ends := make(map[*edit]int)
	list := make([]*edit, len(edits))
	for i := range edits {
		list[i] = &edits[i]
		ends[list[i]] = -i
	}
	slices.SortStableFunc(list, func(a, b *edit) int {
		switch {
		case a.from != b.from:
			return cmp.Compare(a.from, b.from)
		case a.closes && b.closes:
			return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(b.depth, a.depth), cmp.Compare(ends[a], ends[b]))
		case a.closes:
			return -1
		case b.closes:
			return 1
		}
		return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.depth, b.depth))
	})
	var text strings.Builder
	done := s.offset(s.tree.Name.End())
	text.WriteString(s.whole[:done])
	if slices.ContainsFunc(list, func(e *edit) bool { return strings.Contains(e.text, "mutant.") }) {
		text.WriteString("; import " + strconv.Quote(switchPackage))
	}
	for _, e := range list {
		text.WriteString(s.whole[done:e.from] + e.text)
		done = e.to
	}
	text.WriteString(s.whole[done:])
	return text.String()
}
