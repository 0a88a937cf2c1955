package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// errInterrupted says that Ctrl-C ended the run; the user was told how to go on.
var errInterrupted = errors.New("interrupted")

// run works on the unfinished job, or on a new one, until it has ended.
func run(ctx context.Context, cfg config) (err error) {
	begun := time.Now()
	if err := os.MkdirAll(cfg.dir, 0o755); err != nil {
		return fmt.Errorf("make the work folder: %w", err)
	}
	steps, err := openStepLog(cfg.dir)
	if err != nil {
		return err
	}
	defer steps.close()

	// The store is one file. Migrate creates or updates its tables; calling it
	// at every start is fine.
	db, err := sqlite.Open(ctx, cfg.database())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}

	// The engine runs tasks. Making one starts nothing yet.
	show := newDisplay(cfg.out, begun)
	level := slog.LevelWarn
	if cfg.verbose {
		level = slog.LevelDebug
	}
	w := &worker{cfg: cfg, steps: steps}
	eng, err := weaver.New(db, weaver.Config{
		Handlers:    w.handlers(),
		Expect:      []weaver.AnyType{Count, Flaky, Nap, Report},
		Concurrency: cfg.slots,
		Logger:      slog.New(slog.NewTextHandler(show, &slog.HandlerOptions{Level: level})),
		Sink:        show,

		// A task that took its process down three times in a row is normally
		// given up as poison. Here it is you who kills the process, not the
		// task: never give up.
		CrashBudget: -1,
	})
	if err != nil {
		return err
	}

	// Nothing else remembers what is to be done: the job in the store is the
	// program's memory.
	job, err := currentJob(ctx, eng.Client, cfg, show)
	if err != nil {
		return err
	}
	show.say("pid %d: end it at any moment, as rudely as you like, and the same command goes on where it was:\n\n    %s\n", os.Getpid(), killCommand())

	state, err := workOn(ctx, eng, job, show)
	switch {
	case ctx.Err() != nil && !state.Terminal():
		return interrupted(eng.Client, job, show)
	case err != nil:
		return err
	}
	return conclude(ctx, eng.Client, job, cfg, show)
}

// workOn runs the engine until the job has ended, and returns its state.
func workOn(ctx context.Context, eng *weaver.Engine, job weaver.JobInfo, show *display) (weaver.JobState, error) {
	defer context.AfterFunc(ctx, func() { show.say("stopping: what runs may finish, nothing new begins") })()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopShow := show.start(ctx, eng.Client, job)
	defer stopShow()

	// Run blocks until its context ends and has then drained: tasks that were
	// running have finished or were given back. It also ends when the store
	// cannot be used at all; then there is nothing left to wait for.
	var engine sync.WaitGroup
	var runErr error
	engine.Go(func() {
		runErr = eng.Run(ctx)
		stop(runErr)
	})

	// Wait hears of the end in whichever process the last task ran: another
	// one, started in the same folder, may be helping.
	res, err := eng.WaitJob(ctx, job.ID)
	stop(nil)
	engine.Wait()
	if runErr != nil {
		err = runErr
	}
	return res.State, err
}

// interrupted says how to go on after Ctrl-C.
func interrupted(client *weaver.Client, job weaver.JobInfo, show *display) error {
	// The run's context has ended; reading the counters is all that is left.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	job, err := client.Job(ctx, job.ID)
	if err != nil {
		return err
	}
	show.say("stopped: %d of %d tasks are done, and the work of the others is kept; the same command goes on", job.Counters.Succeeded, job.Counters.Total)
	return errInterrupted
}

// conclude tells how the job ended.
func conclude(ctx context.Context, client *weaver.Client, job weaver.JobInfo, cfg config, show *display) error {
	res, err := client.JobResult(ctx, job.ID)
	if err != nil {
		return err
	}
	if res.State != weaver.JobSucceeded {
		// Every task that did not succeed says why.
		for _, t := range append(res.Failed, res.Incomplete...) {
			show.say("%-9s %s: %s: %s", t.State, t.Name, t.Kind, t.Reason)
		}
		return fmt.Errorf("job %s ended %s: the reasons are above; the next run starts a new job", job.ID, res.State)
	}
	for _, t := range res.Completed {
		if t.Name != nodeReport {
			continue
		}
		report, err := Report.Get(ctx, client, t.ID)
		if err != nil {
			return err
		}
		show.say("done after %s: %s", show.elapsed(), report.Output)
	}
	show.say("  %s\n  %s", filepath.Join(cfg.dir, reportMD), filepath.Join(cfg.dir, reportCSV))
	show.say("check that no finished step was repeated: go run ./examples/stdlib verify --dir %s", cfg.dir)
	return nil
}
