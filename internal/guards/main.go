// Command guards shows that every guard of the lease law has a test that
// fails without it.
//
// The folder lists holds the guards, by topic: where each stands, the change
// that takes it out, and the test that must notice. The command takes them out
// one at a time, in an overlay for the go command, so the tree is never
// touched, and runs that test:
//
//	go run ./internal/guards                # all: some minutes
//	go run ./internal/guards -only claim    # those whose name matches
//	go run ./internal/guards -run . -only x # with every test of the package: who notices?
//	go run ./internal/guards -list          # names, rules and reasons
//
// It prints a line for each and exits with 1 when a guard can be taken out
// unnoticed. What must hold for a guard to count: its test passes while the
// guard is in place, the code compiles without it, and the test ends.
//
// An entry marked spare is a guard that nothing can notice, with the reason.
// The command leaves those alone unless it is asked for them (-spare); then it
// is their survival that is expected.
//
// The package does not invent mutations: what is not in the lists is not
// shown. Its own test keeps the lists in step with the code.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/group"
)

//go:embed lists/*.txt
var lists embed.FS

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only    *regexp.Regexp
	list    bool
	run     string
	spare   bool
	workers int
	timeout time.Duration
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("guards", flag.ContinueOnError)
	only := fs.String("only", "", "only guards whose name, law or file matches this `regexp`")
	fs.BoolVar(&o.list, "list", false, "list the guards and take none out")
	fs.StringVar(&o.run, "run", "", "run the tests of the package that match this `regexp` instead, and name all that fail")
	fs.BoolVar(&o.spare, "spare", false, "take out those marked spare, which must survive all tests of their package")
	fs.IntVar(&o.workers, "p", 2, "how many at a time")
	fs.DurationVar(&o.timeout, "timeout", time.Minute, "for one guard's test")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	if o.spare && o.run == "" {
		o.run = "."
	}
	return o, nil
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	all, err := readLists(lists, "lists")
	if err != nil {
		return err
	}
	var chosen []guard
	for _, g := range all {
		if (g.spare != "") == (o.spare && !o.list) && o.only.MatchString(g.name+" "+strings.Join(g.laws, " ")+" "+g.file) {
			chosen = append(chosen, g)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no guard matches")
	}
	if o.list {
		for _, g := range chosen {
			fmt.Fprintf(out, "%-32s %-12s %s\n", g.name, strings.Join(g.laws, " "), g.why)
		}
		return nil
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "guards")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // it is the system's folder for such
	return tryAll(ctx, out, newBench(root, temp, o.timeout), chosen, o)
}

// moduleRoot finds the module that the command is run in.
func moduleRoot(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(file))), nil
}

// tryAll takes the guards out, some at a time, and sums up.
func tryAll(ctx context.Context, out io.Writer, b *bench, guards []guard, o options) error {
	began := time.Now()
	var mu sync.Mutex // guards the rest
	next, killed, survived, wrong := 0, 0, 0, 0
	take := func() *guard {
		mu.Lock()
		defer mu.Unlock()
		if next == len(guards) {
			return nil
		}
		next++
		return &guards[next-1]
	}
	report := func(g *guard, v verdict, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case v.err != nil:
			wrong++
			fmt.Fprintf(out, "WRONG     %-32s %v\n", g.name, v.err)
		case v.killed:
			killed++
			fmt.Fprintf(out, "killed    %-32s %5.1f s  by %s\n", g.name, took.Seconds(), v.by)
		default:
			survived++
			fmt.Fprintf(out, "SURVIVED  %-32s %5.1f s  %s\n", g.name, took.Seconds(), g.dies)
		}
	}
	hands := group.New(ctx)
	for range max(1, o.workers) {
		hands.Go("guards", func(ctx context.Context) error {
			for g := take(); g != nil && ctx.Err() == nil; g = take() {
				start := time.Now()
				v := b.try(ctx, g, o.run)
				report(g, v, time.Since(start))
			}
			return ctx.Err()
		})
	}
	if err := hands.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d guards, %d killed, %d survived, %d wrong, in %.0f s\n", len(guards), killed, survived, wrong, time.Since(began).Seconds())
	switch {
	case wrong > 0:
		return errors.New("some entries say nothing about their guard: mend the lists")
	case o.spare && killed > 0:
		return errors.New("some guards marked spare have a test: name it in their entry")
	case !o.spare && survived > 0:
		return errors.New("some guards can be taken out unnoticed: write the test that fails without them")
	}
	return nil
}
