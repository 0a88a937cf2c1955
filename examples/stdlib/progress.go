package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

// display shows how the job goes: a bar on a terminal, a line per tenth
// elsewhere.
//
// It hears of what happens in this process from the engine's events (it is the
// engine's Sink), and reads how far the job is from the store: there it also
// sees what other processes do.
type display struct {
	out   io.Writer
	begun time.Time

	started sync.Once    // by the first task
	running atomic.Int64 // tasks, in this process

	mu   sync.Mutex    // held while something is written; the bar never takes it
	bars *mpb.Progress // nil while there is no bar

	told int // tenths, without a terminal
}

func newDisplay(out io.Writer, begun time.Time) *display {
	return &display{out: out, begun: begun}
}

// say prints a line for people, above the bar if there is one.
func (d *display) say(format string, args ...any) {
	fmt.Fprintf(d, format+"\n", args...)
}

// Write implements io.Writer, for the logger.
func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bars != nil {
		return d.bars.Write(p)
	}
	return d.out.Write(p)
}

// elapsed is the time since the program's start, for people.
func (d *display) elapsed() time.Duration {
	t := time.Since(d.begun)
	if t < time.Second {
		return t.Round(time.Millisecond)
	}
	return t.Round(100 * time.Millisecond)
}

// Emit implements event.Sink. The task waits until it returns, so it is quick.
func (d *display) Emit(ev event.Event) {
	name := ev.Head().Node
	switch ev := ev.(type) {
	case event.TaskStarted:
		d.running.Add(1)
		d.started.Do(func() { d.say("the first task runs %s after the start of this process", d.elapsed()) })
		if name == nodeReport {
			d.say("report: everything is counted; joining the outputs")
		}
		return
	case event.TaskSucceeded:
	case event.TaskRetrying:
		d.say("retry: %s runs again in %s: %s", name, ev.Delay.Round(time.Millisecond), ev.Error.Message)
	case event.TaskSuspended:
		d.say("sleep: %s has left its worker, and begins again when its time has come", name)
	case event.TaskFailed:
		d.say("failed: %s: %s", name, ev.Error.Message)
	case event.TaskCancelled:
		d.say("cancelled: %s: %s", name, ev.Error.Message)
	default:
		return // steps, progress, logs
	}
	d.running.Add(-1)
}

// start shows the job's progress until the returned function is called.
func (d *display) start(ctx context.Context, client *weaver.Client, job weaver.JobInfo) (stop func()) {
	d.told = tenths(job) // whoever has the job has read that
	show := d.lines
	end := func() {}
	if f, ok := d.out.(*os.File); ok && cwriter.IsTerminal(int(f.Fd())) {
		show, end = d.bar(job)
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { d.watch(ctx, client, job.ID, show) })
	return func() {
		cancel()
		watching.Wait()
		// The last look, also after Ctrl-C, which has ended the context.
		if last, err := client.Job(context.WithoutCancel(ctx), job.ID); err == nil {
			show(last)
		}
		end()
	}
}

// watch reads the job's counters a few times per second. They are kept with
// the job, so that this costs the same for 400 tasks and for 400,000.
func (d *display) watch(ctx context.Context, client *weaver.Client, id weaver.JobID, show func(weaver.JobInfo)) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		job, err := client.Job(ctx, id)
		if err == nil { // else it shows nothing this time; the engine reports the store's trouble
			show(job)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lines is show without a terminal.
func (d *display) lines(job weaver.JobInfo) {
	if now := tenths(job); now != d.told {
		d.told = now
		d.say("%3d %%: %d of %d tasks done, %d running", 10*now, job.Counters.Succeeded, job.Counters.Total, d.running.Load())
	}
}

func tenths(job weaver.JobInfo) int { return 10 * job.Counters.Succeeded / job.Counters.Total }

// bar is show on a terminal.
func (d *display) bar(job weaver.JobInfo) (show func(weaver.JobInfo), end func()) {
	bars := mpb.New(mpb.WithOutput(d.out), mpb.WithWidth(60))
	bar := bars.AddBar(int64(job.Counters.Total),
		mpb.PrependDecorators(decor.CountersNoUnit("%d of %d tasks ")),
		mpb.AppendDecorators(
			decor.Percentage(),
			decor.Any(func(decor.Statistics) string { return fmt.Sprintf("  %d running  %s", d.running.Load(), d.elapsed()) }),
		))
	d.mu.Lock()
	d.bars = bars
	d.mu.Unlock()
	show = func(job weaver.JobInfo) { bar.SetCurrent(int64(job.Counters.Succeeded)) }
	end = func() {
		d.mu.Lock()
		d.bars = nil // what is said from now on goes straight out
		d.mu.Unlock()
		bar.Abort(false) // leaves it on the screen, also half full; does nothing to a full one
		bars.Wait()
	}
	return show, end
}
