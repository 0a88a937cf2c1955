// Command mutants measures which part of the code's behaviour the tests check. It
// makes small changes, one at a time, and counts those that no test notices. `make
// mutants` runs it.
//
//	go run ./internal/mutation/mutants                          # a sample of every package
//	go run ./internal/mutation/mutants -n 200 -seed 7 ./decide  # another sample, of one
//	go run ./internal/mutation/mutants -only 'finish.go:1[0-9]:' -n 1000 store/memstore
//	go run ./internal/mutation/mutants -list decide             # list the mutants only
//
// The changes: it forces or negates a condition, swaps && and || or the bounds of
// a comparison, changes an operator or a constant, removes a statement, or returns
// zero values early. In SQL it makes a condition always true, swaps a bound, or
// skips a column. The changes are in an overlay for the go command; the source
// tree stays unchanged. One binary has all mutants of a package (package mutant).
// The tests that reach a mutant run in order of duration, up to the first failure.
//
// The score is killed / all; a mutant whose tests do not end counts as killed. A
// survivor is an equivalent mutant, which no test can notice, or a missing test:
// see docs/reliability.md. The command exits with 0 in both cases.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"time"

	"github.com/goweaver/weaver/internal/mutation"
)

// targets are the packages with the rules, and the packages whose tests check
// them. The client tests the engine, and a store tests the port.
var targets = []target{
	{"task", []string{"task"}},
	{"decide", []string{"decide"}},
	{"store", []string{"store", "store/memstore"}},
	{"internal/rules", []string{"internal/rules", "store/memstore"}},
	{"internal/propagate", []string{"internal/propagate"}},
	{"internal/lane", []string{"internal/lane", "store/sqlite"}},
	{"internal/batch", []string{"internal/batch"}},
	{"internal/migrate", []string{"internal/migrate"}},
	{"internal/engine", []string{"internal/engine", "."}},
	{"store/memstore", []string{"store/memstore"}},
	{"store/sqlite", []string{"store/sqlite"}},
	{"store/sqlite/internal/commit", []string{"store/sqlite/internal/commit", "store/sqlite"}},
	{"store/sqlite/internal/conn", []string{"store/sqlite/internal/conn", "store/sqlite"}},
	{"internal/sqlstore", []string{"store/sqlite", "store/postgres"}},
	{"store/postgres", []string{"store/postgres"}},
}

// options holds the flags.
type options struct {
	n       int
	seed    uint64
	short   bool
	list    bool
	verbose bool
	only    *regexp.Regexp
	timeout time.Duration
	log     io.Writer
}

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o := options{log: out}
	fs := flag.NewFlagSet("mutants", flag.ContinueOnError)
	fs.IntVar(&o.n, "n", 60, "how many mutants of a package")
	fs.Uint64Var(&o.seed, "seed", 1, "which sample")
	fs.BoolVar(&o.short, "short", false, "run the tests with -short, which notice less")
	fs.BoolVar(&o.list, "list", false, "list the mutants and run none")
	fs.BoolVar(&o.verbose, "v", false, "name the test that notices, for each mutant")
	only := fs.String("only", "", "only mutants whose `file:line:column: what` matches")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "for one test without a mutant")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	root, err := mutation.Root(ctx)
	if err != nil {
		return err
	}
	return tryAll(ctx, root, o, fs.Args())
}

// choose returns the named targets, or all existing ones. Another package is
// tested by its own tests.
func choose(root string, names []string) (list []target) {
	known := make(map[string]target)
	for _, t := range targets {
		known[t.pkg] = t
		if _, err := os.Stat(filepath.Join(root, t.pkg)); err == nil && len(names) == 0 {
			list = append(list, t)
		}
	}
	for _, name := range names {
		name = path.Clean(filepath.ToSlash(name))
		if t, ok := known[name]; ok {
			list = append(list, t)
		} else {
			list = append(list, target{name, []string{name}})
		}
	}
	return list
}

// result counts the verdicts of a package.
type result struct {
	pkg    string
	total  int
	counts map[verdict]int
	took   time.Duration
}

func (r *result) mutants() (n int) {
	for _, c := range r.counts {
		n += c
	}
	return n
}

func (r *result) score() float64 {
	return 100 * float64(r.counts[killed]+r.counts[timedOut]) / float64(max(1, r.mutants()))
}

func tryAll(ctx context.Context, root string, o options, names []string) error {
	var results []*result
	for _, t := range choose(root, names) {
		r, err := tryOne(ctx, &bench{options: o, target: t, root: root})
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if o.list {
		return nil
	}
	if len(results) == 0 {
		return errors.New("no such package")
	}
	fmt.Fprintf(o.log, "\n%-28s %9s %7s %7s %9s %9s %11s %6s %6s\n", "package", "possible", "mutants", "killed", "timed out", "survived", "not reached", "score", "took")
	for _, r := range results {
		fmt.Fprintf(o.log, "%-28s %9d %7d %7d %9d %9d %11d %5.0f%% %5.0fs\n", r.pkg, r.total, r.mutants(), r.counts[killed],
			r.counts[timedOut], r.counts[survived], r.counts[notReached], r.score(), r.took.Seconds())
	}
	return nil
}

func tryOne(ctx context.Context, b *bench) (*result, error) {
	began := time.Now()
	var err error
	if b.overlay, err = mutation.NewOverlay(nil); err != nil {
		return nil, err
	}
	defer b.overlay.Remove()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	r := &result{pkg: b.pkg, total: b.total, counts: make(map[verdict]int)}
	for _, m := range b.chosen {
		if b.list {
			fmt.Fprintln(b.log, m)
			continue
		}
		start := time.Now()
		v, by := b.try(ctx, m)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.counts[v]++
		if b.verbose || v == survived || v == notReached {
			fmt.Fprintf(b.log, "%-11s %s  %s (%.1f s)\n", v, m, by, time.Since(start).Seconds())
		}
	}
	r.took = time.Since(began)
	return r, nil
}
