package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// Package is the input of one count.
type Package struct {
	Path string // "net/http"
	Dir  string // where its files are
}

// Counted is the output of one count.
type Counted struct {
	Files, Lines int
	Functions    int
	Longest      Function
}

// Function is one function and its length.
type Function struct {
	Name  string // "Buffer.grow" for a method
	Lines int
}

// sources is the value of the step "read". A step's value is kept in the
// database, so it holds what later steps need to know and not the text itself.
type sources struct {
	Files []string
	Lines int
}

// count is a handler: a plain function of its input. Between its two steps
// the process may die; the next attempt then begins at the top, gets the value
// of "read" from the store instead of reading, and goes on with "parse".
func (w *worker) count(ctx context.Context, pkg Package) (Counted, error) {
	src, err := step(ctx, w, "read", func(ctx context.Context) (sources, error) {
		if err := pause(ctx, w.cfg.pace/2); err != nil {
			return sources{}, err
		}
		return readPackage(pkg.Dir)
	})
	if err != nil {
		return Counted{}, err
	}
	return step(ctx, w, "parse", func(ctx context.Context) (Counted, error) {
		if err := pause(ctx, w.cfg.pace/2); err != nil {
			return Counted{}, err
		}
		return parsePackage(pkg.Dir, src)
	})
}

// pause is work that takes its time. It ends early when ctx does: handlers
// that heed their context let the engine stop in time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // says why: drained, cancelled, lease lost
	}
}

// readPackage lists the Go files of a folder and counts their lines.
func readPackage(dir string) (sources, error) {
	names, err := goFiles(dir)
	if err != nil {
		return sources{}, err
	}
	src := sources{Files: names}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return sources{}, err
		}
		src.Lines += bytes.Count(text, []byte("\n"))
	}
	return src, nil
}

// goFiles names the Go files of a folder, for every platform, without tests.
// ReadDir sorts, so the order is always the same.
func goFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names, nil
}

// parsePackage counts the functions of the files.
func parsePackage(dir string, src sources) (Counted, error) {
	c := Counted{Files: len(src.Files), Lines: src.Lines}
	for _, name := range src.Files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return Counted{}, weaver.Permanent(err) // trying again cannot help: fail at once
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			c.Functions++
			// Without //line comments: those of the file itself.
			first, last := fset.PositionFor(fn.Pos(), false).Line, fset.PositionFor(fn.End(), false).Line
			if lines := last - first + 1; lines > c.Longest.Lines {
				c.Longest = Function{Name: functionName(fn), Lines: lines}
			}
		}
	}
	return c, nil
}

// functionName puts the type before the name of a method.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr: // a type parameter
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// findGoRoot returns the Go tree to count: the one asked for, or that of the
// go command, or that of the toolchain that built this program.
func findGoRoot(ctx context.Context, asked string) (string, error) {
	root := asked
	if root == "" {
		if out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); err == nil {
			root = strings.TrimSpace(string(out))
		}
	}
	if root == "" {
		root = build.Default.GOROOT
	}
	if root == "" {
		return "", errors.New("no Go source tree found: put go into the PATH, or name one with --goroot")
	}
	return filepath.Abs(root) // the next process may start in another folder
}

// listPackages finds the packages of the standard library, sorted, at most
// limit of them (0: all).
func listPackages(goroot string, limit int) ([]Package, error) {
	src := filepath.Join(goroot, "src")
	var pkgs []Package
	err := filepath.WalkDir(src, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == src {
			return err
		}
		rel, err := filepath.Rel(src, dir)
		if err != nil {
			return err
		}
		path, base := filepath.ToSlash(rel), d.Name()
		if path == "cmd" || base == "testdata" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
			return fs.SkipDir
		}
		files, err := goFiles(dir)
		if len(files) > 0 {
			pkgs = append(pkgs, Package{Path: path, Dir: dir})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", goroot, err)
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("%s contains no Go packages: name a Go tree with --goroot", src)
	}
	slices.SortFunc(pkgs, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	if limit > 0 && limit < len(pkgs) {
		pkgs = pkgs[:limit]
	}
	return pkgs, nil
}
