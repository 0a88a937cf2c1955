package archtest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module   = "github.com/goweaver/weaver"
	repoRoot = "../.."
)

// pkg is the source information about one package of this module, independent of build tags: a rule holds on every
// platform. Packages are named from the module's root, which is ".".
type pkg struct {
	doc bool // it has a package comment
	// Direct imports of the package and of its tests.
	imports, testImports map[string]bool
}

// listPackages joins the Go files of each directory.
var listPackages = sync.OnceValues(func() (map[string]*pkg, error) {
	read, err := readFiles()
	if err != nil {
		return nil, err
	}
	all := make(map[string]*pkg)
	for _, f := range read {
		if f.ast == nil {
			continue
		}
		name := path.Dir(f.path)
		p := all[name]
		if p == nil {
			p = &pkg{imports: map[string]bool{}, testImports: map[string]bool{}}
			all[name] = p
		}
		into := p.imports
		if f.isTest() {
			into = p.testImports
		} else if f.ast.Doc != nil {
			p.doc = true
		}
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.at(spec), err)
			}
			into[imported] = true
		}
	}
	return all, nil
})

// deps returns the packages of this module linked with one of them, each with a package that imports it.
func deps(all map[string]*pkg, name string) map[string]string {
	found := make(map[string]string)
	for next := []string{name}; len(next) > 0; next = next[1:] {
		p := all[next[0]]
		if p == nil {
			continue
		}
		for imported := range p.imports {
			dep, ours := relative(imported)
			if _, known := found[dep]; ours && !known {
				found[dep] = next[0]
				next = append(next, dep)
			}
		}
	}
	return found
}

// relative returns the name of one of our packages inside the module.
func relative(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// standard reports whether a package belongs to the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	all, err := listPackages()
	if err != nil {
		t.Fatalf("the packages cannot be read, so no rule can be checked; make this work first:\n%v", err)
	}
	return all
}

// file is one Go, SQL or shell file of the module.
type file struct {
	path string // from the root, with slashes
	text string
	ast  *ast.File // of a Go file
}

// fileSet holds all files, so that a position tells its file.
var fileSet = token.NewFileSet()

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns the position of a node, for messages.
func (f *file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, fileSet.Position(n.Pos()).Line)
}

// under reports whether the file is below one of the directories of a table.
func (f *file) under(exceptions map[string]string) bool {
	for dir := range exceptions {
		if strings.HasPrefix(f.path, dir+"/") {
			return true
		}
	}
	return false
}

var readFiles = sync.OnceValues(func() ([]*file, error) {
	var all []*file
	err := filepath.WalkDir(repoRoot, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(repoRoot, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return skipDir(name, rel, d)
		}
		if ext := path.Ext(rel); !d.Type().IsRegular() || ext != ".go" && ext != ".sql" && ext != ".sh" {
			return nil
		}
		f, err := readFile(name, rel)
		if err != nil {
			return err
		}
		all = append(all, f)
		return nil
	})
	return all, err
})

// skipDir skips directories outside the module: hidden ones and testdata, as the go command does, and those with
// their own go.mod, except the system tests.
func skipDir(name, rel string, d fs.DirEntry) error {
	if rel == "." {
		return nil
	}
	if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
		return fs.SkipDir
	}
	switch _, err := os.Stat(filepath.Join(name, "go.mod")); {
	case err == nil && rel != "internal/systemtest":
		return fs.SkipDir
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

func readFile(name, rel string) (*file, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &file{path: rel, text: string(text)}
	if path.Ext(rel) == ".go" {
		f.ast, err = parser.ParseFile(fileSet, rel, text, parser.ParseComments)
	}
	return f, err
}

// files returns every Go, SQL and shell file of the module.
func files(t *testing.T) []*file {
	t.Helper()
	all, err := readFiles()
	if err != nil {
		t.Fatalf("the files cannot be read, so no rule can be checked; make this work first:\n%v", err)
	}
	return all
}

// goFiles returns every Go file of the module.
func goFiles(t *testing.T) []*file {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(f *file) bool {
		return f.ast == nil
	})
}

// selects reports whether n is the expression pkg.name.
func selects(n ast.Node, pkg, name string) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
