// Command stdlib is a durable job on real input. It counts the lines and functions of every package of the installed
// Go standard library, and needs nothing but Go:
//
//	go run ./examples/stdlib
//
// It takes about 15 seconds, so that there is time to kill it; it prints how. The same command continues the job.
// State and result are in one folder, by default ./weaver-stdlib (--dir).
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
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// config holds the command line flags.
type config struct {
	dir    string
	limit  int
	pace   time.Duration
	events bool
	out    io.Writer
}

func (cfg config) reportFile() string { return filepath.Join(cfg.dir, "report.md") }

func main() {
	cfg := config{out: os.Stdout}
	flag.StringVar(&cfg.dir, "dir", "weaver-stdlib", "`folder` for the database and the report")
	flag.IntVar(&cfg.limit, "limit", 0, "maximum `number` of packages (default: all)")
	flag.DurationVar(&cfg.pace, "pace", 75*time.Millisecond, "pause in every step; 0 for full speed")
	flag.BoolVar(&cfg.events, "events", false, "print every event as JSON")
	flag.Parse()
	// The first Ctrl-C ends ctx: running tasks finish. The second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "stdlib:", err)
		os.Exit(1)
	}
}

// run works on the unfinished job, or on a new one, until it has ended.
func run(ctx context.Context, cfg config) (err error) {
	if err = os.MkdirAll(cfg.dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(cfg.dir, "weaver-stdlib.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	show := &display{config: cfg}
	eng, err := weaver.New(db, weaver.Config{
		Handlers:    []weaver.Handler{Count.Handler(cfg.count), Report.Handler(cfg.report)},
		Concurrency: 4,
		Sink:        show,
		CrashBudget: -1, // a task whose process is killed repeatedly fails as poison; kills are expected here
	})
	if err != nil {
		return err
	}
	job, err := show.job(ctx, eng.Client)
	if err != nil {
		return err
	}
	fmt.Fprintf(cfg.out, "pid %d: kill it at any moment (kill -9 %[1]d); the same command continues\n", os.Getpid())

	work, stop := context.WithCancel(ctx)
	var waiter sync.WaitGroup
	var res weaver.JobResult
	var waitErr error
	waiter.Go(func() {
		res, waitErr = eng.WaitJob(work, job)
		stop()
	})
	err = eng.Run(work) // until the work has ended and running tasks have finished
	stop()
	waiter.Wait()
	switch {
	case err != nil:
		return err
	case waitErr != nil:
		return fmt.Errorf("stopped, the same command continues: %w", waitErr)
	case res.State != task.JobSucceeded:
		return fmt.Errorf("job %s %s: `go run ./cmd/weaver --store sqlite:%s why %[1]s` tells why", job, res.State, db.Path())
	}
	fmt.Fprintf(cfg.out, "done: %s\n", cfg.reportFile())
	return nil
}

// display prints lines for people, with progress from the engine's events.
type display struct {
	config
	mu          sync.Mutex
	encoder     event.Encoder
	done, total int // tasks of the job, as far as this process knows
}

// job returns the unfinished job, or a new one. Nothing else is needed to continue: the engine finds the tasks,
// including those of a killed process.
func (d *display) job(ctx context.Context, client *weaver.Client) (id weaver.JobID, err error) {
	jobs, _, err := client.Jobs(ctx, store.JobFilter{Name: jobName, Limit: 1})
	if err != nil {
		return id, err
	}
	if len(jobs) == 1 && !jobs[0].State.Terminal() {
		id, d.done, d.total = jobs[0].ID, jobs[0].Counters.Succeeded, jobs[0].Counters.Total
		fmt.Fprintf(d.out, "continuing job %s: %d of %d tasks are done\n", id, d.done, d.total)
		return id, nil
	}
	pkgs, err := listPackages(ctx, d.limit)
	if err != nil {
		return id, err
	}
	// In one transaction: a kill leaves the whole job or nothing.
	handle, err := client.Submit(ctx, newJob(pkgs))
	if err == nil {
		id, d.total = handle.ID(), len(pkgs)+1
		fmt.Fprintf(d.out, "new job %s: %d packages\n", id, len(pkgs))
	}
	return id, err
}

// Emit implements event.Sink. The task waits until it returns, so it is quick.
func (d *display) Emit(ev event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events {
		fmt.Fprintln(d.out, strings.Join(d.encoder.Lines(ev), "\n"))
	}
	if _, ok := ev.(event.TaskSucceeded); ok {
		if d.done++; 10*d.done/d.total > 10*(d.done-1)/d.total {
			fmt.Fprintf(d.out, "%3d %%: %d of %d tasks are done\n", 100*d.done/d.total, d.done, d.total)
		}
	}
}
