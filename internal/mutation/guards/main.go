// Command guards shows that each rule of leases, dispatch and fencing has a test
// that fails without its guard.
//
// guards.txt and postgres.txt list the guards: the rule, the declaration with the
// guard, and the change that removes it. The command removes one guard at a time,
// in an overlay for the go command, and runs the tests of the packages in the
// entry. The source tree stays unchanged.
//
//	go run ./internal/mutation/guards              # all
//	go run ./internal/mutation/guards -only R7     # those whose rule, name or package matches
//	go run ./internal/mutation/guards -list        # rules, names and reasons
//	go run ./internal/mutation/guards -proofs -repeat 20   # the defects of proofs.txt, 20 runs each
//
// proofs.txt lists defects for the proofs of docs/reliability.md. The proofs run
// in their size of `make test` (with -race, of `make race`). The command prints
// the number of runs that found the defect.
//
// It prints a line for each guard. It exits with 1 if no test fails without a
// guard, if an anchor is not found, or if the code without a guard does not
// compile. The lists have one or a few guards per rule; internal/mutation/mutants
// measures the tests beyond that.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/mutation"
)

//go:embed guards.txt
var listed string

//go:embed postgres.txt
var onPostgres string

// list has all guards.
var list = listed + "\n" + onPostgres

//go:embed proofs.txt
var proofs string

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	fs := flag.NewFlagSet("guards", flag.ContinueOnError)
	only := fs.String("only", "", "only guards whose rules, name or anchor match this `regexp`")
	show := fs.Bool("list", false, "list the guards and remove none")
	short := fs.Bool("short", false, "run the tests with -short only")
	planted := fs.Bool("proofs", false, "plant the defects of proofs.txt in place of removing guards")
	repeat := fs.Int("repeat", 1, "with -proofs: runs of each proof")
	race := fs.Bool("race", false, "with -proofs: run under the race detector")
	timeout := fs.Duration("timeout", 3*time.Minute, "for the tests of one guard; tests that do not end have failed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	matching, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	text, label := list, ruleName
	if *planted {
		text, label = proofs, proofName
	}
	all, err := parseList(text, label)
	if err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	root, err := mutation.Root(ctx)
	if err != nil {
		return err
	}
	b := &bench{code: newModule(root), timeout: *timeout, flags: []string{"-vet=off", "-failfast", "-timeout=" + timeout.String()}, sizes: []string{"-short"}}
	if !*short {
		b.sizes = append(b.sizes, "-short=false")
	}
	if *race {
		b.flags = append(b.flags, "-race")
	}
	counts := make(map[verdict]int)
	for i := range all {
		g := &all[i]
		if !matching.MatchString(strings.Join(g.rules, " ") + " " + g.name + " " + g.edits[0].anchor) {
			continue
		}
		if *show {
			fmt.Fprintf(out, "%-12s %-28s %s\n", strings.Join(g.rules, " "), g.name, g.why)
			continue
		}
		began := time.Now()
		var v verdict
		var by string
		if *planted {
			v, by = b.plant(ctx, g, *repeat)
		} else {
			v, by = b.try(ctx, g)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		counts[v]++
		fmt.Fprintf(out, "%-9s %-28s %5.1f s  %s\n", v, g.name, time.Since(began).Seconds(), by)
	}
	if *show {
		return nil
	}
	fmt.Fprintf(out, "%d killed, %d survived, %d wrong\n", counts[killed], counts[survived], counts[wrong])
	switch {
	case counts[wrong] > 0:
		return errors.New("some entries do not fit the code: update their anchors")
	case counts[survived] > 0 && *planted:
		return errors.New("some planted defects are missed: make the proof larger")
	case counts[survived] > 0:
		return errors.New("some guards can be removed unnoticed: write the test that fails without them")
	}
	return nil
}

// bench runs tests.
type bench struct {
	code    *module
	timeout time.Duration
	flags   []string
	sizes   []string // flags of the rounds: a round runs if the previous one found nothing
}

// verdict is the result for a guard.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	wrong    verdict = "WRONG"
)

// try removes a guard and runs its tests. Before that it runs the tests with the
// guard; the go command caches their result. The text names the failed test or the
// problem.
func (b *bench) try(ctx context.Context, g *guard) (verdict, string) {
	files, err := b.code.without(g)
	if err != nil {
		return wrong, err.Error()
	}
	overlay, err := mutation.NewOverlay(files)
	if err != nil {
		return wrong, err.Error()
	}
	defer overlay.Remove()
	for _, size := range b.sizes {
		if out, err := b.test(ctx, g, size); err != nil {
			return wrong, fmt.Sprintf("the tests fail with the guard in place: %v\n%s", err, out)
		}
		out, err := b.test(ctx, g, size, "-overlay="+overlay.File)
		if v, by := outcome(out, err); v != survived {
			return v, by
		}
	}
	return survived, ""
}

// outcome interprets the output of tests without their guard.
func outcome(out string, err error) (verdict, string) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, ""
	case !errors.As(err, &exit), strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return wrong, fmt.Sprintf("%v\n%s", err, out)
	case mutation.TimedOut(out):
		return killed, "by a test that does not end"
	}
	return killed, "by " + mutation.FirstFailure(out)
}

func (b *bench) test(ctx context.Context, g *guard, more ...string) (string, error) {
	args := append(append([]string{"test"}, b.flags...), more...)
	if g.run != "" {
		args = append(args, "-run="+g.run)
	}
	for _, p := range g.tests {
		args = append(args, "./"+p)
	}
	out, err := mutation.Go(ctx, b.code.root, args...)
	return string(out), err
}
