package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// splitAnchor returns the package and the declaration of an anchor:
// "store/sqlite.claim.serves" is the method serves of the type claim. An anchor
// without a declaration means the whole package; an SQL file means that file.
func splitAnchor(anchor string) (pkg, decl string) {
	dir, last := path.Split(anchor)
	if strings.HasSuffix(last, ".sql") {
		return path.Dir(path.Clean(dir)), "" // next to the package that applies it
	}
	if strings.HasPrefix(last, ".") { // the root package
		return ".", strings.TrimPrefix(last, ".")
	}
	name, decl, _ := strings.Cut(last, ".")
	return dir + name, decl
}

// place is a range of a file.
type place struct {
	file     string // on disk
	from, to int
}

// module caches the files of the module.
type module struct {
	root     string
	packages map[string][]*goFile
	texts    map[string]string
}

// goFile is a file compiled on this platform, without tests.
type goFile struct {
	path, text string
	fset       *token.FileSet
	tree       *ast.File
}

func newModule(root string) *module {
	return &module{root, make(map[string][]*goFile), make(map[string]string)}
}

// text returns a file by its name on disk.
func (m *module) text(path string) (string, error) {
	if text, ok := m.texts[path]; ok {
		return text, nil
	}
	text, err := os.ReadFile(path)
	m.texts[path] = string(text)
	return string(text), err
}

func (m *module) files(pkg string) ([]*goFile, error) {
	if list, ok := m.packages[pkg]; ok {
		return list, nil
	}
	dir, err := build.ImportDir(filepath.Join(m.root, filepath.FromSlash(pkg)), 0)
	if err != nil {
		return nil, err
	}
	var list []*goFile
	for _, name := range dir.GoFiles {
		f := &goFile{path: filepath.Join(dir.Dir, name), fset: token.NewFileSet()}
		if f.text, err = m.text(f.path); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(f.fset, f.path, f.text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	m.packages[pkg] = list
	return list, nil
}

// find returns the place of an edit's text, which must occur exactly once.
func (m *module) find(e *edit) (place, error) {
	var found []place
	if strings.HasSuffix(e.anchor, ".sql") {
		path := filepath.Join(m.root, filepath.FromSlash(e.anchor))
		text, err := m.text(path)
		if err != nil {
			return place{}, err
		}
		for _, at := range fragment(e.old).FindAllStringIndex(text, -1) {
			found = append(found, place{path, at[0], at[1]})
		}
	} else {
		pkg, decl := splitAnchor(e.anchor)
		files, err := m.files(pkg)
		if err != nil {
			return place{}, err
		}
		declared := false
		for _, f := range files {
			for _, span := range f.declarations(decl) {
				declared = true
				for _, at := range matches(f.text[span[0]:span[1]], e.old) {
					found = append(found, place{f.path, span[0] + at[0], span[0] + at[1]})
				}
			}
		}
		if !declared {
			return place{}, fmt.Errorf("%s is not declared: was it renamed?", e.anchor)
		}
	}
	if len(found) != 1 {
		return place{}, fmt.Errorf("%s contains %q %d times, want once", e.anchor, e.old, len(found))
	}
	return found[0], nil
}

// declarations returns the ranges where the file declares a name, or the whole
// file for an empty name.
func (f *goFile) declarations(name string) (spans [][2]int) {
	if name == "" {
		return [][2]int{{0, len(f.text)}}
	}
	add := func(n ast.Node) {
		spans = append(spans, [2]int{f.fset.Position(n.Pos()).Offset, f.fset.Position(n.End()).Offset})
	}
	for _, decl := range f.tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if nameOf(decl) == name {
				add(decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.Name == name {
						add(spec)
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(spec.Names, func(id *ast.Ident) bool { return id.Name == name }) {
						add(spec)
					}
				}
			}
		}
	}
	return spans
}

// nameOf returns a function's name, with the name of its receiver's type before
// it.
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

// matches returns the ranges where Go code, or a string literal in it, contains a
// text. It compares code by tokens, so that layout and comments do not matter, and
// SQL in literals by words.
func matches(code, text string) (found [][2]int) {
	tokens, wanted := scan(code), scan(text)
	for i := 0; len(wanted) > 0 && i+len(wanted) <= len(tokens); i++ {
		same := slices.EqualFunc(tokens[i:i+len(wanted)], wanted, func(a, b lexeme) bool { return a.text == b.text })
		if same {
			found = append(found, [2]int{tokens[i].from, tokens[i+len(wanted)-1].to})
		}
	}
	if len(found) > 0 {
		return found
	}
	words := fragment(text)
	for _, t := range tokens {
		if strings.HasPrefix(t.text, "`") || strings.HasPrefix(t.text, `"`) {
			for _, m := range words.FindAllStringIndex(t.text, -1) {
				found = append(found, [2]int{t.from + m[0], t.from + m[1]})
			}
		}
	}
	return found
}

var isWord = regexp.MustCompile(`\w`)

// fragment matches a text with any white space between its words. It does not
// match a part of a longer word or parameter.
func fragment(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	pattern := strings.Join(words, `\s+`)
	if isWord.MatchString(words[0][:1]) {
		pattern = `\b` + pattern
	}
	if isWord.MatchString(pattern[len(pattern)-1:]) {
		pattern += `\b`
	}
	return regexp.MustCompile(pattern)
}

// lexeme is one token of Go.
type lexeme struct {
	text     string
	from, to int
}

// scan returns the tokens of Go code without comments, and without commas and
// semicolons that only the layout needs.
func scan(code string) (list []lexeme) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, []byte(code), func(token.Position, string) {}, 0) // SQL is not Go
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		from := file.Offset(pos)
		if tok == token.SEMICOLON {
			literal = ";"
		}
		text := cmp.Or(literal, tok.String())
		if n := len(list); n > 0 && (text == ")" || text == "}") && (list[n-1].text == "," || list[n-1].text == ";") {
			list = list[:n-1]
		}
		list = append(list, lexeme{text, from, min(len(code), from+len(text))})
	}
	if n := len(list); n > 0 && list[n-1].text == ";" {
		list = list[:n-1]
	}
	return list
}

// without returns the changed files, by path, after removing a guard.
func (m *module) without(g *guard) (map[string]string, error) {
	type change struct {
		place
		text string
	}
	var changes []change
	for i := range g.edits {
		at, err := m.find(&g.edits[i])
		if err != nil {
			return nil, fmt.Errorf("line %d: guard %s: %w", g.line, g.name, err)
		}
		changes = append(changes, change{at, g.edits[i].new})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(b.from, a.from) }) // from the end
	files := make(map[string]string)
	for _, c := range changes {
		if _, ok := files[c.file]; !ok {
			files[c.file] = m.texts[c.file]
		}
		files[c.file] = files[c.file][:c.from] + c.text + files[c.file][c.to:]
	}
	for file, text := range files {
		if strings.HasSuffix(file, ".go") {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				return nil, fmt.Errorf("line %d: guard %s: what is left is not Go: %w", g.line, g.name, err)
			}
		}
	}
	return files, nil
}
