package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/mutation"
	"github.com/goweaver/weaver/internal/mutation/mutants/mutant"
)

// target is a package to mutate, and the packages whose tests check it.
type target struct {
	pkg   string
	tests []string
}

// bench runs one target: the chosen mutants, woven into one test binary per
// package of tests.
type bench struct {
	options
	target
	root    string
	overlay *mutation.Overlay // its directory also holds the test binaries
	chosen  []*change
	total   int // number of possible mutants
	units   []*unit
}

// unit is the smallest run of a process: a test, or a first-level subtest of a
// long test.
type unit struct {
	pkg, top, sub string
	took          time.Duration
	reached       map[int]bool
}

func (u *unit) String() string { return strings.TrimSuffix(u.pkg+" "+u.top+"/"+u.sub, "/") }

// sources reads the files of a package that this platform compiles.
func sources(ctx context.Context, root, pkg string) (files []*source, err error) {
	out, err := mutation.Go(ctx, root, "list", "-json=Dir,GoFiles,TestGoFiles", "./"+pkg)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w\n%s", pkg, err, out)
	}
	var list struct {
		Dir                  string
		GoFiles, TestGoFiles []string
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(list.GoFiles, list.TestGoFiles) {
		s, err := readSource(filepath.Join(list.Dir, name), pkg+"/"+name)
		if err != nil {
			return nil, err
		}
		files = append(files, s)
	}
	return files, nil
}

// prepare chooses mutants and compiles the tests with them. It replaces a mutant
// that does not compile: the finder has no types.
func (b *bench) prepare(ctx context.Context) error {
	files, err := sources(ctx, b.root, b.pkg)
	if err != nil {
		return err
	}
	var all []*change
	for _, f := range files {
		if !f.test {
			for _, m := range find(f) {
				if b.only.MatchString(m.String()) {
					all = append(all, m)
				}
			}
		}
	}
	b.total = len(all)
	random := rand.New(rand.NewPCG(b.seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for {
		b.chosen = slices.Clone(all[:min(b.n, len(all))])
		slices.SortFunc(b.chosen, func(a, b *change) int {
			return cmp.Or(cmp.Compare(a.file.name, b.file.name), cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col), cmp.Compare(a.what, b.what))
		})
		if b.list {
			return nil
		}
		for i, m := range b.chosen {
			m.id = i + 1
		}
		woven := weave(files, b.chosen)
		if err := b.overlay.Replace(woven); err != nil {
			return err
		}
		out, err := mutation.Go(ctx, b.root, "build", "-gcflags=-e", "-overlay="+b.overlay.File, "./"+b.pkg)
		if err == nil {
			return b.compile(ctx)
		}
		bad := broken(string(out), woven)
		if len(bad) == 0 {
			return fmt.Errorf("compile %s with mutants: %w\n%s", b.pkg, err, out)
		}
		all = slices.DeleteFunc(all, func(m *change) bool { return bad[m.id] && slices.Contains(b.chosen, m) })
		for _, m := range b.chosen {
			m.id = 0
		}
	}
}

var (
	buildError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)
	switchCall = regexp.MustCompile(`mutant\.[A-Z][A-Za-z]*\(#?(\d+)|mutant\.Use\([A-Za-z0-9_]+, ([0-9, ]+)\)`)
)

// broken returns the mutants on lines with compile errors. A mutant that spans
// lines has its number on an earlier line.
func broken(out string, woven map[string]string) map[int]bool {
	bad := make(map[int]bool)
	for _, m := range buildError.FindAllStringSubmatch(out, -1) {
		number, _ := strconv.Atoi(m[2])
		for path, text := range woven {
			if !mutation.Stands(m[1], path) {
				continue
			}
			lines := strings.Split(text, "\n")
			for i, found := min(number, len(lines))-1, false; i >= 0 && !found; i-- {
				for _, call := range switchCall.FindAllStringSubmatch(lines[i], -1) {
					for _, id := range strings.Split(call[1]+call[2], ",") {
						n, _ := strconv.Atoi(strings.TrimSpace(id))
						bad[n], found = true, true
					}
				}
			}
		}
	}
	return bad
}

// compile builds the test binaries and records the mutants that each test reaches.
func (b *bench) compile(ctx context.Context) error {
	for _, pkg := range b.tests {
		if out, err := mutation.Go(ctx, b.root, "test", "-c", "-vet=off", "-overlay="+b.overlay.File, "-o", b.binary(pkg), "./"+pkg); err != nil {
			return fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, out)
		}
		if _, err := os.Stat(b.binary(pkg)); err != nil {
			continue // it has no tests
		}
		out := b.run(ctx, pkg, "", "", time.Minute, "-test.list=.")
		if out.err != nil {
			return fmt.Errorf("list the tests of %s: %w\n%s", pkg, out.err, out.text)
		}
		for _, name := range strings.Fields(out.text) {
			if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz") {
				if err := b.explore(ctx, &unit{pkg: pkg, top: name}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bench) binary(pkg string) string {
	return filepath.Join(b.overlay.Dir, strings.NewReplacer("/", "-", ".", "root").Replace(pkg)+".exe")
}

var subtest = regexp.MustCompile(`(?m)^=== RUN   [^/\s]+/([^/\s]+)$`)

// splitAbove is the duration from which the subtests of a test are units.
const splitAbove = 5 * time.Second

// explore runs a unit without a mutant and records the mutants it reaches.
func (b *bench) explore(ctx context.Context, u *unit) error {
	notes := filepath.Join(b.overlay.Dir, "reached")
	if err := os.RemoveAll(notes); err != nil {
		return err
	}
	began := time.Now()
	out := b.run(ctx, u.pkg, mutant.Reached, notes, b.timeout, groups([]*unit{u})[0].pattern(), "-test.v")
	u.took = time.Since(began)
	if out.err != nil {
		fmt.Fprintf(b.log, "left out, it fails without a mutant: %s\n", u)
		return nil
	}
	if subs := subtest.FindAllStringSubmatch(out.text, -1); u.sub == "" && u.took > splitAbove && len(subs) > 1 {
		for _, s := range subs {
			if err := b.explore(ctx, &unit{pkg: u.pkg, top: u.top, sub: s[1]}); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	u.reached = make(map[int]bool)
	for _, id := range strings.Fields(string(text)) {
		n, _ := strconv.Atoi(id)
		u.reached[n] = true
	}
	b.units = append(b.units, u)
	return nil
}

// output is the result of a test binary.
type output struct {
	text string
	err  error // nil: everything passed
	late bool  // it did not end
}

// run runs a test binary in the folder of its package, with one environment
// variable.
func (b *bench) run(ctx context.Context, pkg, key, value string, limit time.Duration, args ...string) output {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	args = append(args, "-test.timeout="+limit.String(), "-test.failfast", "-test.short="+strconv.FormatBool(b.short))
	cmd := exec.CommandContext(ctx, b.binary(pkg), args...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.WaitDelay = time.Second
	if key != "" {
		cmd.Env = append(os.Environ(), key+"="+value)
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	return output{text.String(), err, ctx.Err() != nil || mutation.TimedOut(text.String())}
}

// verdict is the result for a mutant.
type verdict string

const (
	killed     verdict = "killed"
	timedOut   verdict = "timed out" // counts as killed
	survived   verdict = "survived"
	notReached verdict = "not reached" // no test runs it: it survives
)

// try activates a mutant and runs the tests that reach it, short ones first, up to
// the first failure.
func (b *bench) try(ctx context.Context, m *change) (verdict, string) {
	var reach []*unit
	for _, u := range b.units {
		if u.reached[m.id] {
			reach = append(reach, u)
		}
	}
	if len(reach) == 0 {
		return notReached, ""
	}
	slices.SortStableFunc(reach, func(a, b *unit) int { return cmp.Compare(a.took, b.took) })
	for _, g := range groups(reach) {
		out := b.run(ctx, g.pkg, mutant.Active, strconv.Itoa(m.id), 10*time.Second+10*g.took, g.pattern())
		switch {
		case out.err == nil:
		case out.late:
			return timedOut, g.pkg
		default:
			return killed, mutation.FirstFailure(out.text)
		}
	}
	return survived, ""
}

// group is the tests of one process.
type group struct {
	pkg        string
	tops, subs []string
	took       time.Duration
}

// pattern selects the group's tests.
func (g *group) pattern() string {
	quote := func(names []string) string {
		list := make([]string, len(names))
		for i, n := range names {
			list[i] = regexp.QuoteMeta(n)
		}
		return "^(" + strings.Join(list, "|") + ")$"
	}
	if len(g.subs) == 0 {
		return "-test.run=" + quote(g.tops)
	}
	return "-test.run=" + quote(g.tops) + "/" + quote(g.subs)
}

// groups combines tests: a first second of them, then ten times as many each. Most
// mutants fail any test, and a process has a cost.
func groups(units []*unit) []*group {
	var list []*group
	open := make(map[[2]string]*group)
	spent, budget := time.Duration(0), time.Second
	for _, u := range units {
		if spent > budget {
			spent, budget = 0, budget*10
			clear(open)
		}
		key := [2]string{u.pkg}
		if u.sub != "" {
			key[1] = u.top
		}
		g := open[key]
		if g == nil {
			g = &group{pkg: u.pkg}
			open[key] = g
			list = append(list, g)
		}
		if u.sub == "" || len(g.tops) == 0 {
			g.tops = append(g.tops, u.top)
		}
		if u.sub != "" {
			g.subs = append(g.subs, u.sub)
		}
		g.took += u.took
		spent += u.took
	}
	return list
}
