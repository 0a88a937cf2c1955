// Package vet reads the Go packages of programs, without running them, and reports task types that no program
// handles. The go command lists and compiles the packages; vet follows variables that hold the result of
// weaver.Define. A type whose variable goes elsewhere, such as into a function of the program or a map, counts as
// handled. So vet reports no false findings, and misses some.
package vet

import (
	"cmp"
	"context"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// module is the module path of package weaver.
const module = "github.com/goweaver/weaver"

// Finding is a task type that no program handles.
type Finding struct {
	File    string `json:"file"` // relative to the checked folder, if it is below that
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Type    string `json:"task_type"`
	Message string `json:"message"`
}

// String formats the finding like a compiler error.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Report is the result of a check.
type Report struct {
	Findings []Finding
	Types    int // task types that the packages define or name
	Programs int // main packages among the patterns
}

// Check reads the packages that match patterns in a folder, with their imports of the same module. If the patterns
// match main packages, a handler counts only if one of them imports its package. Otherwise every handler counts.
func Check(ctx context.Context, dir string, patterns ...string) (Report, error) {
	pkgs, err := load(ctx, dir, patterns)
	if err != nil {
		return Report{}, err
	}
	c := &checker{fset: token.NewFileSet(), types: make(map[string]*taskType), byKey: make(map[string]*taskType)}
	if err := c.read(pkgs); err != nil {
		return Report{}, err
	}
	linked := make(map[string]bool)
	r := Report{Types: len(c.types)}
	for _, p := range pkgs {
		if p.Name == "main" && !p.DepOnly {
			r.Programs++
			linked[p.ImportPath] = true
			for _, d := range p.Deps {
				linked[d] = true
			}
		}
	}
	for _, t := range c.types {
		if msg, at := t.problem(linked, r.Programs > 0); msg != "" {
			pos := c.fset.Position(at)
			r.Findings = append(r.Findings, Finding{relative(dir, pos.Filename), pos.Line, pos.Column, t.name, msg})
		}
	}
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Type, b.Type))
	})
	return r, nil
}

// relative returns the path of a file relative to dir, if it is below dir.
func relative(dir, file string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		if rel, err := filepath.Rel(abs, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return file
}

// taskType is a task type by its name.
type taskType struct {
	name     string
	defined  token.Pos // zero if the type is only named
	enqueued token.Pos // the first place
	handled  []string  // packages that create a handler
	unknown  bool      // its variable goes where vet does not follow it
}

// problem returns the reason for reporting the type and its position; "" if the type is not reported.
func (t *taskType) problem(linked map[string]bool, programs bool) (string, token.Pos) {
	runs := slices.ContainsFunc(t.handled, func(pkg string) bool { return linked[pkg] || !programs })
	if runs || t.unknown || strings.HasPrefix(t.name, "weaver.") {
		return "", 0
	}
	why, hint := "no package creates a handler for it", "add its Handler to Config.Handlers of the program that runs it"
	if len(t.handled) > 0 {
		why, hint = "its handler is created in "+strings.Join(t.handled, " and ")+", which no program here imports", "import that in the program that runs it, or name that program too"
	}
	what, at := "defined", t.defined
	if t.enqueued.IsValid() {
		what, at = "enqueued", t.enqueued
	}
	return fmt.Sprintf("the task type %s is %s, and %s: %s", t.name, what, why, hint), at
}
