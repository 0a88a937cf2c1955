package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// The task types: a name that outlives this program, types of input and output.
var (
	Count  = weaver.Define[Package, Counted]("example.stdlib.count.v1")
	Report = weaver.Define[[]string, int]("example.stdlib.report.v1") // package paths; lines in all
)

const jobName = "stdlib" // finds the job again in the next process

// Package is the input of one count.
type Package struct{ Path, Dir string } // such as "net/http", and the folder of its files

// Counted is the output of one count.
type Counted struct{ Files, Lines, Functions int }

// newJob returns a graph of tasks: a count per package, and a report that runs when all counts have succeeded.
func newJob(pkgs []Package) *weaver.Job {
	job := weaver.NewJob(jobName)
	var paths []string
	var counts []*weaver.Node
	for _, pkg := range pkgs {
		paths = append(paths, pkg.Path)
		counts = append(counts, job.Add("count/"+pkg.Path, Count.With(pkg)))
	}
	job.Add("report", Report.With(paths), weaver.Needs(counts...))
	return job
}

// count is a handler: a plain function of its input. A completed step is stored and never runs again. If the process
// dies between the two steps, the next attempt starts at the top, gets the value of "lines" from the store, and
// continues with "functions".
func (cfg config) count(ctx context.Context, pkg Package) (Counted, error) {
	c, err := weaver.Step(ctx, "lines", func(ctx context.Context) (c Counted, err error) {
		cfg.pause(ctx)
		return c, eachFile(pkg.Dir, func(_ string, text []byte) error {
			c.Files++
			c.Lines += bytes.Count(text, []byte("\n"))
			return nil
		})
	})
	if err != nil {
		return c, err
	}
	c.Functions, err = weaver.Step(ctx, "functions", func(ctx context.Context) (n int, err error) {
		cfg.pause(ctx)
		return n, eachFile(pkg.Dir, func(name string, text []byte) error {
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			if err != nil {
				return weaver.Permanent(err) // another attempt cannot help
			}
			for _, decl := range file.Decls {
				if _, ok := decl.(*ast.FuncDecl); ok {
					n++
				}
			}
			return nil
		})
	})
	return c, err
}

// report joins the outputs of the tasks that it needs, by their names. An interrupted step runs again, so the file is
// replaced atomically: a reader finds the old one or the new one, with the same bytes every time.
func (cfg config) report(ctx context.Context, paths []string) (lines int, err error) {
	var rows bytes.Buffer
	for _, path := range paths {
		c, err := Count.Output(ctx, "count/"+path)
		if err != nil {
			return 0, err
		}
		lines += c.Lines
		fmt.Fprintf(&rows, "| %s | %d | %d | %d |\n", path, c.Files, c.Lines, c.Functions)
	}
	text := fmt.Sprintf("# %d packages, %d lines\n\n| package | files | lines | functions |\n|---|---:|---:|---:|\n%s", len(paths), lines, &rows)
	return weaver.Step(ctx, "write", func(ctx context.Context) (int, error) {
		cfg.pause(ctx)
		temporary := fmt.Sprintf("%s.%d.tmp", cfg.reportFile(), os.Getpid())
		if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
			return 0, err
		}
		return lines, os.Rename(temporary, cfg.reportFile())
	})
}

// pause simulates work that takes a while and ends early with its context.
func (cfg config) pause(ctx context.Context) {
	select {
	case <-time.After(cfg.pace):
	case <-ctx.Done():
	}
}

// eachFile reads the Go files of a folder without tests, sorted.
func eachFile(dir string, fn func(name string, text []byte) error) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := fn(name, text); err != nil {
			return err
		}
	}
	return err
}

// listPackages asks the go command for the packages of the standard library,
// at most limit of them (0: all).
func listPackages(ctx context.Context, limit int) (pkgs []Package, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "std").Output()
	if err != nil {
		return nil, fmt.Errorf("go list std: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t"); limit == 0 || len(pkgs) < limit {
			pkgs = append(pkgs, Package{path, dir})
		}
	}
	return pkgs, nil
}
