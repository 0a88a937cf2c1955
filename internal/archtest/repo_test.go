package archtest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module   = "github.com/goweaver/weaver"
	repoRoot = "../.."
)

// pkg is what `go list` says about one package of ours, joined over the
// platforms of listedPlatforms. Names are relative to the module; the root is ".".
type pkg struct {
	name string
	doc  string // first sentence of the package comment
	// What it imports directly, what its tests import directly, and
	// everything that is linked with it.
	imports, testImports, deps map[string]bool
}

// listedPlatforms are those whose files are looked at: build tags must not
// hide an import from the rules.
var listedPlatforms = []string{"linux/amd64", "windows/amd64", "js/wasm"}

var listPackages = sync.OnceValues(func() (map[string]*pkg, error) {
	all := make(map[string]*pkg)
	for _, platform := range listedPlatforms {
		if err := listInto(all, platform); err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
	}
	return all, nil
})

func listInto(all map[string]*pkg, platform string) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	out, err := run([]string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0"},
		"go", "list", "-deps", "-json=ImportPath,Name,Doc,Imports,TestImports,XTestImports,Deps", "./...")
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath, Name, Doc                    string
			Imports, TestImports, XTestImports, Deps []string
		}
		if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		name, ours := relative(listed.ImportPath)
		if !ours {
			continue
		}
		p := all[name]
		if p == nil {
			p = &pkg{name: listed.Name, imports: map[string]bool{}, testImports: map[string]bool{}, deps: map[string]bool{}}
			all[name] = p
		}
		p.doc = cmp.Or(p.doc, listed.Doc)
		add(p.imports, listed.Imports)
		add(p.testImports, listed.TestImports)
		add(p.testImports, listed.XTestImports)
		add(p.deps, listed.Deps)
	}
}

func add(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
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
		t.Fatalf("the packages cannot be listed, so no rule can be checked; make this work first:\n%v", err)
	}
	return all
}

// run runs a command at the root of the repository. Its error carries what
// the command said on stderr.
func run(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = repoRoot
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// file is one text file of the repository.
type file struct {
	path string // from the root, with slashes
	text string
	ast  *ast.File // of a Go file
	fset *token.FileSet
}

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns where a node stands, for messages.
func (f *file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// importsPackage reports whether the file imports a package.
func (f *file) importsPackage(importPath string) bool {
	return slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Path.Value == `"`+importPath+`"`
	})
}

// under reports whether the file is below one of the tables' directories.
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
			if rel == ".git" || rel == "bin" { // bin: what `go build -o bin/` leaves, ignored by git
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := readFile(name, rel)
		if err != nil || f == nil {
			return err
		}
		all = append(all, f)
		return nil
	})
	return all, err
})

// readFile returns nil for a file that is not text.
func readFile(name, rel string) (*file, error) {
	text, err := os.ReadFile(name)
	if err != nil || bytes.IndexByte(text, 0) >= 0 {
		return nil, err
	}
	f := &file{path: rel, text: string(text)}
	if path.Ext(rel) == ".go" && !strings.Contains(rel, "/testdata/") {
		f.fset = token.NewFileSet()
		f.ast, err = parser.ParseFile(f.fset, rel, text, parser.ParseComments)
	}
	return f, err
}

// files returns every text file of the repository.
func files(t *testing.T) []*file {
	t.Helper()
	all, err := readFiles()
	if err != nil {
		t.Fatalf("the repository cannot be read, so no rule can be checked; make this work first:\n%v", err)
	}
	return all
}

// goFiles returns every Go file of the main module. bench is a module of its
// own: its programs are measuring tools, not the product.
func goFiles(t *testing.T) []*file {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(f *file) bool {
		return f.ast == nil || strings.HasPrefix(f.path, "bench/")
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
