// Command stdlib is Weaver's first example: a durable job on real input. It
// counts the lines and functions of every package of the Go standard library
// that is installed here, and needs nothing but Go:
//
//	go run ./examples/stdlib
//
// It takes about 15 seconds, so that you can do the one thing that it is made
// for: end it in the middle, as rudely as you like (it says how), and start it
// again with the same command. It goes on where it was.
//
// # What it shows
//
//   - One job of 400 tasks, submitted at once: a count per package, and a
//     report that needs them all and joins their outputs (job.go).
//   - An engine that works until the job has ended, and stops in good order at
//     Ctrl-C (run.go).
//   - Steps: a step that returned is stored and never runs again, in whichever
//     process the task goes on (count.go).
//   - A task that fails twice and is retried, and one that sleeps without
//     occupying anything (trouble.go).
//   - Output that is right however often its step is cut off (report.go).
//   - Live progress from events (progress.go).
//
// # What it leaves behind
//
// Everything is in one folder, ./weaver-stdlib unless --dir names another:
//
//	weaver-stdlib.db        the job, its tasks, their steps and attempts
//	report.md, report.csv   the result: the same bytes, however often it was killed
//	steps.log               one line per start of a step's function
//
// Nothing in the engine reads steps.log. It is the witness from outside:
//
//	go run ./examples/stdlib verify
//
// compares it with the database and fails if any step was started after its
// value had been stored (verify.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// config is what the command line says.
type config struct {
	dir     string        // the work folder
	goroot  string        // the Go source tree to count
	limit   int           // packages at most; 0: all
	slots   int           // tasks at once
	pace    time.Duration // pause in every count, so that there is time to kill
	nap     time.Duration // how long the sleeping task sleeps
	fresh   bool          // give an unfinished job up and start anew
	verbose bool          // log what the engine does
	out     io.Writer     // progress and results
}

// database is the one file that holds the state.
func (c config) database() string { return filepath.Join(c.dir, "weaver-stdlib.db") }

// Exit codes: done, the work failed, bad usage, and the shells' own for Ctrl-C.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	// The first Ctrl-C ends ctx and with it the engine, which lets running
	// tasks finish. The second one ends the process: that is safe as well.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the program and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, verb, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage // package flag has said why
	}
	cfg.out = stdout
	switch verb {
	case "run":
		err = run(ctx, cfg)
	case "verify":
		err = verify(ctx, cfg)
	}
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "stdlib:", err)
		return exitFailed
	}
	return exitDone
}

// parse reads the command line: [verify] [flags].
func parse(args []string, stderr io.Writer) (cfg config, verb string, err error) {
	verb = "run"
	if len(args) > 0 && args[0] == "verify" {
		verb, args = args[0], args[1:]
	}
	fs := flag.NewFlagSet("stdlib "+verb, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&cfg.dir, "dir", "weaver-stdlib", "the `folder` for database, report and steps.log")
	if verb == "run" {
		fs.StringVar(&cfg.goroot, "goroot", "", "the Go `tree` to count (default: what go env GOROOT says)")
		fs.IntVar(&cfg.limit, "limit", 0, "count at most `n` packages (default: all)")
		fs.IntVar(&cfg.slots, "slots", 4, "run `n` tasks at once")
		fs.DurationVar(&cfg.pace, "pace", 150*time.Millisecond, "pause this long in every package; 0 runs at full speed")
		fs.DurationVar(&cfg.nap, "nap", 1500*time.Millisecond, "how long the sleeping task sleeps")
		fs.BoolVar(&cfg.fresh, "fresh", false, "give an unfinished job up and start a new one")
		fs.BoolVar(&cfg.verbose, "v", false, "log what the engine does")
	}
	if err := fs.Parse(args); err != nil {
		return cfg, verb, err
	}
	if fs.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q: the only verb is verify, and it comes first", fs.Arg(0))
		fmt.Fprintln(stderr, err)
		return cfg, verb, err
	}
	if verb == "run" && (cfg.limit < 0 || cfg.slots < 1 || cfg.pace < 0 || cfg.nap < 0) {
		err := errors.New("--limit, --pace and --nap cannot be negative, and --slots must be at least 1")
		fmt.Fprintln(stderr, err)
		return cfg, verb, err
	}
	return cfg, verb, nil
}

// killCommand is what ends this process at once. The pid is its own: `go run`
// starts the program as a child, and killing `go run` leaves the child alive.
func killCommand() string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf("taskkill /F /PID %d", os.Getpid())
	}
	return fmt.Sprintf("kill -9 %d", os.Getpid())
}
