package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// bench is where guards are taken out: the module, and a folder for what is
// made on the way.
type bench struct {
	root, temp string
	timeout    time.Duration // for one test; compiling takes its own time

	mu      sync.Mutex
	healthy map[test]func() error // tests that were asked to pass with all guards in
	whole   map[string]func() (string, error)
}

func newBench(root, temp string, timeout time.Duration) *bench {
	return &bench{root: root, temp: temp, timeout: timeout, healthy: map[test]func() error{}, whole: map[string]func() (string, error){}}
}

// verdict is what became of one guard.
type verdict struct {
	killed bool
	by     string // the tests that failed, or what else ended the process
	err    error  // the entry is wrong: nothing is known about the guard
}

// try takes a guard out and runs its test, or those of the package that match
// instead, if that is not empty.
func (b *bench) try(ctx context.Context, g *guard, instead string) verdict {
	t := g.dies
	if t.pkg == "" {
		t.pkg = filepath.ToSlash(filepath.Dir(g.file))
	}
	if instead != "" {
		t.run = instead
	} else if err := b.passes(ctx, t); err != nil {
		return verdict{err: err}
	}
	dir, err := os.MkdirTemp(b.temp, "guard")
	if err != nil {
		return verdict{err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }() // the whole of temp goes at the end
	overlay, err := b.overlay(g, dir)
	if err != nil {
		return verdict{err: err}
	}
	binary, err := b.build(ctx, t.pkg, filepath.Join(dir, "test.exe"), "-overlay="+overlay)
	if err != nil {
		return verdict{err: fmt.Errorf("%s: guard %q: without it the code does not compile: %w", g.at, g.name, err)}
	}
	out := b.run(ctx, binary, t, instead == "", cmp.Or(g.hangs, b.timeout))
	return out.judge(g.hangs > 0)
}

// overlay writes the file without the guard, and what tells the go command to
// read it in the place of the real one.
func (b *bench) overlay(g *guard, dir string) (string, error) {
	real := filepath.Join(b.root, filepath.FromSlash(g.file))
	text, err := os.ReadFile(real)
	if err != nil {
		return "", err
	}
	without, err := g.without(string(text))
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "without"+filepath.Ext(g.file))
	if err := os.WriteFile(copied, []byte(without), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {real: copied}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, replace, 0o600)
}

// build compiles the tests of a package.
func (b *bench) build(ctx context.Context, pkg, binary string, flags ...string) (string, error) {
	args := append([]string{"test", "-c", "-vet=off", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// passes reports whether a test passes while all guards are in place, and
// that there is such a test at all: without it a guard is killed by nothing.
func (b *bench) passes(ctx context.Context, t test) error {
	b.mu.Lock()
	check := b.healthy[t]
	if check == nil {
		check = sync.OnceValue(func() error { return b.passesNow(ctx, t) })
		b.healthy[t] = check
	}
	b.mu.Unlock()
	return check()
}

func (b *bench) passesNow(ctx context.Context, t test) error {
	b.mu.Lock()
	build := b.whole[t.pkg]
	if build == nil {
		build = sync.OnceValues(func() (string, error) {
			name := "whole-" + strings.NewReplacer("/", "-", ".", "root").Replace(t.pkg) + ".exe"
			return b.build(ctx, t.pkg, filepath.Join(b.temp, name))
		})
		b.whole[t.pkg] = build
	}
	b.mu.Unlock()
	binary, err := build()
	if err != nil {
		return err
	}
	out := b.run(ctx, binary, t, false, b.timeout)
	switch {
	case out.err != nil:
		return fmt.Errorf("%s fails with all guards in place: %w\n%s", t, out.err, out.text)
	case !out.ran(strings.Count(t.run, "/")):
		return fmt.Errorf("%s names no test", t)
	}
	return nil
}

// outcome is what a test binary said.
type outcome struct {
	text string
	err  error // nil: everything passed
	late bool  // it did not end
}

// run runs a test, to its first failure or all of it.
func (b *bench) run(ctx context.Context, binary string, t test, first bool, limit time.Duration) outcome {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args := []string{"-test.v", "-test.run=" + t.run, "-test.timeout=" + limit.String()}
	if first {
		args = append(args, "-test.failfast")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(t.pkg))
	cmd.WaitDelay = time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	late := ctx.Err() != nil || strings.Contains(text.String(), "panic: test timed out after")
	return outcome{text.String(), err, late}
}

// ran reports whether a test ran that is nested so deep.
func (o outcome) ran(depth int) bool {
	for line := range strings.Lines(o.text) {
		if name, ok := strings.CutPrefix(line, "=== RUN   "); ok && strings.Count(name, "/") >= depth {
			return true
		}
	}
	return false
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// judge says whether the tests noticed.
func (o outcome) judge(mayHang bool) verdict {
	var exit *exec.ExitError
	switch {
	case o.err == nil:
		return verdict{}
	case o.late && !mayHang:
		return verdict{err: errors.New("the test did not end: let it fail instead, or say that it hangs")}
	case o.late:
		return verdict{killed: true, by: "a test that does not end"}
	case !errors.As(o.err, &exit):
		return verdict{err: o.err}
	}
	names := leaves(o.text)
	if len(names) == 0 {
		names = []string{"the end of the process"}
	}
	return verdict{killed: true, by: strings.Join(names, " | ")}
}

// leaves returns the failed tests that have no failed test inside.
func leaves(text string) []string {
	var names []string
	for _, m := range failed.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	var list []string
	for _, n := range names {
		inner := false
		for _, other := range names {
			inner = inner || strings.HasPrefix(other, n+"/")
		}
		if !inner {
			list = append(list, n)
		}
	}
	return list
}
