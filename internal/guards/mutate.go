package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// without returns the text of the guard's file with the guard taken out.
func (g *guard) without(whole string) (string, error) {
	text := whole
	type edit struct {
		start, end int
		text       string
	}
	var edits []edit
	for _, h := range g.hunks {
		from, to, err := region(g.file, text, h.in)
		if err != nil {
			return "", fmt.Errorf("%s: guard %q: %w", g.at, g.name, err)
		}
		found := pattern(h.old).FindAllStringIndex(text[from:to], -1)
		if len(found) != 1 {
			return "", fmt.Errorf("%s: guard %q: its text occurs %d times in %s %s, want once: bring the list up to date", g.at, g.name, len(found), g.file, h.in)
		}
		edits = append(edits, edit{from + found[0][0], from + found[0][1], strings.TrimSpace(h.new)})
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.start, a.start) })
	for i, e := range edits {
		if i > 0 && e.end > edits[i-1].start {
			return "", fmt.Errorf("%s: guard %q: two of its changes overlap", g.at, g.name)
		}
		text = text[:e.start] + e.text + text[e.end:]
	}
	if err := readable(g.file, whole, text); err != nil {
		return "", fmt.Errorf("%s: guard %q: what is left cannot be compiled: %w", g.at, g.name, err)
	}
	return text, nil
}

// pattern finds a text whatever white space stands between its words.
func pattern(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// region returns where the declaration named in is, or the whole text.
func region(file, text, in string) (from, to int, err error) {
	if in == "" {
		return 0, len(text), nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	found := 0
	mark := func(n ast.Node) {
		found++
		from, to = fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if nameOf(decl) == in {
				mark(decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if slices.Contains(namesOf(spec), in) {
					mark(spec)
				}
			}
		}
	}
	if found != 1 {
		return 0, 0, fmt.Errorf("%s declares %q %d times, want once: bring the list up to date", file, in, found)
	}
	return from, to, nil
}

// nameOf is a function's name, after that of its receiver's type if it has one.
func nameOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := ""
	ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && receiver == "" {
			receiver = id.Name
		}
		return receiver == ""
	})
	return receiver + "." + decl.Name.Name
}

func namesOf(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// readable finds mistakes of an entry without a compiler: what cannot be
// parsed, and imports that nothing uses any more.
func readable(file, whole, text string) error {
	switch path.Ext(file) {
	case ".go":
		before, err := imported(file, whole)
		if err != nil {
			return err
		}
		after, err := imported(file, text)
		if err != nil {
			return err
		}
		for name := range before {
			if !after[name] {
				return fmt.Errorf("%q is imported and not used", name)
			}
		}
		return nil
	case ".sql":
		return readableSQL(text)
	}
	return errors.New("only Go and SQL files have guards")
}

// imported returns the packages that a file uses, by name.
func imported(file, text string) (map[string]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, spec := range f.Imports {
		name := strings.TrimPrefix(path.Base(strings.Trim(spec.Path.Value, `"`)), "go-")
		if spec.Name != nil {
			name = spec.Name.Name
		}
		known[name] = true
	}
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && known[x.Name] {
				used[x.Name] = true
			}
		}
		return true
	})
	return used, nil
}

var sqlComment = regexp.MustCompile(`--.*`)

// readableSQL looks at parentheses and commas; SQLite itself judges the rest
// when the guard's test opens a store.
func readableSQL(text string) error {
	text = sqlComment.ReplaceAllString(text, "")
	if o, c := strings.Count(text, "("), strings.Count(text, ")"); o != c {
		return fmt.Errorf("%d opening and %d closing parentheses", o, c)
	}
	if bad := regexp.MustCompile(`,\s*\)|,\s*,|\(\s*,`).FindString(text); bad != "" {
		return fmt.Errorf("a comma too many: %q", bad)
	}
	return nil
}
