package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// change is a possible mutation of the code.
type change struct {
	id    int // from 1 within a package; set when chosen
	file  *source
	line  int // first line
	col   int // of the whole text, if that spans lines
	what  string
	edits []edit
	names []string // package constants with the changed text
}

func (m *change) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.file.name, m.line, m.col, m.what)
}

// edit replaces a range of the source, which is empty for an edit that wraps code.
// #ID is the mutant's number. Edits add no lines: the woven code has the lines of
// the original.
type edit struct {
	from, to int
	text     string
	span     int  // length of the wrapped code: a longer wrap goes outside
	depth    int  // order of wraps of one node: higher is further inside
	closes   bool // it ends a wrap
}

// The depths. The operands of a call that replaces an operation stand inside all
// wraps of the whole operation.
const (
	depthClosure = iota - 1
	depthWrap
	depthCall
)

// Calls without effect on results. A mutant without one is equivalent, hangs, or
// needs the race detector.
var quiet = words("Lock Unlock RLock RUnlock Debug Info Warn Error DebugContext InfoContext WarnContext ErrorContext Helper panic")

// operators maps an operator to its function in package mutant and its
// replacement.
var operators = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"LessEqual", "<"}, token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterEqual", ">"},
	token.ADD: {"Add", "-"}, token.SUB: {"Sub", "+"}, token.MUL: {"Mul", "+"}, token.QUO: {"Div", "*"},
	token.LAND: {"And", "||"}, token.LOR: {"Or", "&&"},
}

// finder walks one file.
type finder struct {
	file    *source
	found   []*change
	results *ast.FieldList // of the enclosing function
	names   []string       // the enclosing package constants or variables
}

// find returns every change of a file, in the order of the source.
func find(file *source) []*change {
	f := &finder{file: file}
	for _, decl := range file.tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			f.function(decl.Type, decl.Body)
		case *ast.GenDecl:
			f.declaration(decl)
		}
	}
	slices.SortStableFunc(f.found, func(a, b *change) int { return a.line - b.line })
	return f.found
}

func (f *finder) add(n ast.Node, what string, edits ...edit) {
	at := f.file.fset.Position(n.Pos())
	f.found = append(f.found, &change{file: f.file, line: at.Line, col: at.Column, what: what, edits: edits, names: f.names})
}

// wrap surrounds a node.
func (f *finder) wrap(n ast.Node, before, after string) []edit {
	return wrapAt(f.file, n, depthWrap, before, after)
}

func wrapAt(s *source, n ast.Node, depth int, before, after string) []edit {
	from, to := s.offset(n.Pos()), s.offset(n.End())
	return []edit{{from, from, before, to - from, depth, false}, {to, to, after, to - from, depth, true}}
}

// operation turns a op b into a call, with b in a closure for && and ||, and
// negates comparisons.
func (f *finder) operation(n *ast.BinaryExpr) {
	text := f.file.text(n)
	if op, ok := operators[n.Op]; ok && !(n.Op == token.ADD && isText(n)) {
		at := f.file.offset(n.OpPos)
		edits := append(wrapAt(f.file, n, depthCall, "mutant."+op[0]+"(#ID, ", ")"), edit{from: at, to: at + len(n.Op.String()), text: ","})
		if n.Op == token.LAND || n.Op == token.LOR {
			edits = append(edits, wrapAt(f.file, n.Y, depthClosure, "func() bool { return ", " }")...)
		}
		f.add(n, text+": "+n.Op.String()+" becomes "+op[1], edits...)
	}
	switch n.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !f.isErrorCheck(n, n.Op) {
			f.add(n, text+": negated", f.wrap(n, "mutant.Not(#ID, ", ")")...)
		}
	}
}

// isErrorCheck reports whether an expression compares an error with nil.
func (f *finder) isErrorCheck(e ast.Expr, op token.Token) bool {
	b, ok := e.(*ast.BinaryExpr)
	return ok && b.Op == op && strings.HasSuffix(f.file.text(b.X), "err") && f.file.text(b.Y) == "nil"
}

// declaration handles constants and variables of a package, and constants of a
// function.
func (f *finder) declaration(decl *ast.GenDecl) {
	if decl.Tok != token.CONST && decl.Tok != token.VAR {
		return
	}
	around := f.names
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if f.results == nil || decl.Tok == token.CONST {
			f.names = namesOf(spec)
		}
		for _, v := range spec.Values {
			if decl.Tok == token.VAR {
				ast.Walk(f, v)
			} else if convertible(decl) {
				f.literals(v)
			}
		}
	}
	f.names = around
}

func namesOf(spec *ast.ValueSpec) (names []string) {
	for _, n := range spec.Names {
		names = append(names, n.Name)
	}
	return names
}

// convertible reports whether constants can become variables: all of them are
// texts or made of other constants.
func convertible(decl *ast.GenDecl) bool {
	return !slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
		values := spec.(*ast.ValueSpec)
		text := len(values.Values) > 0
		for _, v := range values.Values {
			ast.Inspect(v, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					text = text && n.Kind == token.STRING
				case *ast.Ident:
					text = text && n.Name != "iota"
				case *ast.CallExpr:
					text = false
				}
				return true
			})
		}
		return !text
	})
}

// literals handles the texts of a constant.
func (f *finder) literals(expr ast.Expr) {
	ast.Inspect(expr, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			f.literal(lit)
		}
		return true
	})
}

func (f *finder) literal(lit *ast.BasicLit) {
	text, err := strconv.Unquote(lit.Value)
	if lit.Kind != token.STRING || err != nil {
		return
	}
	call := "mutant.Text(#ID, "
	if f.names != nil {
		call = "mutant.Var(#ID, "
	}
	for _, v := range sqlVariants(text) {
		f.add(lit, v.what, f.wrap(lit, call, ", "+strconv.Quote(v.text)+")")...)
		if lit.Value[0] == '`' {
			f.found[len(f.found)-1].line += v.line
		}
	}
}

// function walks a function body.
func (f *finder) function(typ *ast.FuncType, body *ast.BlockStmt) {
	if body == nil {
		return
	}
	results, names := f.results, f.names
	f.results, f.names = typ.Results, nil
	if f.results == nil {
		f.results = &ast.FieldList{}
	}
	ast.Walk(f, body)
	f.results, f.names = results, names
}

// Visit implements ast.Visitor.
func (f *finder) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.FuncLit:
		f.function(n.Type, n.Body)
		return nil
	case *ast.GenDecl:
		f.declaration(n)
		return nil
	case *ast.ArrayType, *ast.FuncType, *ast.StructType:
		return nil
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.IfStmt:
		f.condition(n)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.add(n.Cond, "for "+f.file.text(n.Cond)+": no turn", f.wrap(n.Cond, "mutant.Force(#ID, false, ", ")")...)
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n, f.file.text(n)+": negated", f.wrap(n, "mutant.Not(#ID, ", ")")...)
		}
	case *ast.BinaryExpr:
		f.operation(n)
	case *ast.BasicLit:
		f.literal(n)
	case *ast.AssignStmt:
		f.values(n.Rhs)
	case *ast.CallExpr:
		if name := callee(n); name != "make" && name != "Errorf" && name != "New" {
			f.values(n.Args)
		}
	case *ast.ReturnStmt:
		f.values(n.Results)
	case *ast.KeyValueExpr:
		f.values([]ast.Expr{n.Value})
	}
	return f
}

// condition handles an if. A check for an error is only forced to "never": every
// test notices a check that always fires.
func (f *finder) condition(n *ast.IfStmt) {
	text := f.file.text(n.Cond)
	if !f.isErrorCheck(n.Cond, token.NEQ) {
		f.add(n.Cond, "if "+text+": always", f.wrap(n.Cond, "mutant.Force(#ID, true, ", ")")...)
	}
	f.add(n.Cond, "if "+text+": never", f.wrap(n.Cond, "mutant.Force(#ID, false, ", ")")...)
}

// isText reports whether a sum is visibly a concatenation. Others do not compile
// as a mutant and are dropped then.
func isText(expr ast.Expr) (text bool) {
	ast.Inspect(expr, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		text = text || ok && lit.Kind == token.STRING
		return true
	})
	return text
}

// values handles constants that stand alone as a value.
func (f *finder) values(list []ast.Expr) {
	for _, v := range list {
		switch v := v.(type) {
		case *ast.BasicLit:
			if v.Kind == token.INT {
				f.add(v, v.Value+" becomes "+v.Value+"+1", f.wrap(v, "mutant.Plus(#ID, ", ")")...)
			}
		case *ast.Ident:
			if v.Name == "true" || v.Name == "false" {
				f.add(v, v.Name+": negated", f.wrap(v, "mutant.Not(#ID, ", ")")...)
			}
		}
	}
}

// statements handles removable statements and early returns.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || quiet[callee(call)] {
				continue
			}
		case *ast.AssignStmt:
			if id, ok := s.Lhs[0].(*ast.Ident); s.Tok == token.DEFINE || ok && id.Name == "_" {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.ReturnStmt:
			f.returned(s)
			continue
		case *ast.IncDecStmt, *ast.SendStmt:
		default:
			continue
		}
		f.add(s, "left out: "+f.file.text(s), f.wrap(s, "if !mutant.On(#ID) { ", " }")...)
	}
}

// returned replaces results by zero values. A single truth value is negated
// elsewhere.
func (f *finder) returned(s *ast.ReturnStmt) {
	var zeros []string
	for _, field := range f.results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+f.file.exact(field.Type)+")")
		}
	}
	zero := strings.Join(zeros, ", ")
	if strings.Contains(zero, "\n") || len(s.Results) == 0 || !slices.ContainsFunc(s.Results, func(e ast.Expr) bool { return !isZero(e) }) {
		return
	}
	if id, ok := s.Results[0].(*ast.Ident); ok && len(s.Results) == 1 && id.Name == "true" {
		return
	}
	at := f.file.offset(s.Pos())
	f.add(s, f.file.text(s)+": returns zero values", edit{from: at, to: at, text: "if mutant.On(#ID) { return " + zero + " }; "})
}

func isZero(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "false"
	case *ast.BasicLit:
		return e.Value == "0" || e.Value == `""`
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	}
	return false
}

// callee returns the last name of the called function.
func callee(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}
