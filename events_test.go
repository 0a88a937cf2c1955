package weaver_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task/event"
)

// recorder is a Sink that records its events.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements event.Sink.
func (r *recorder) Emit(ev event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

func (r *recorder) types() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, ev := range r.events {
		all = append(all, ev.Type())
	}
	return all
}

func TestSink(t *testing.T) {
	typ := weaver.Define[string, string]("engine.sink.run.v1", weaver.MaxAttempts(2))
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		first := weaver.Current(ctx).AttemptNo == 1
		value, err := weaver.Step(ctx, "fetch", func(ctx context.Context) (string, error) {
			weaver.Log(ctx).Info("fetching", "from", "there")
			if first {
				return "", errors.New("no")
			}
			return in, nil
		})
		if err != nil {
			return "", err
		}
		if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
			return "", err
		}
		return value, weaver.Progress(ctx, 1, 1)
	})

	subtest(t, "gets every event, in order", func(fx *fixture) {
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{handler}})
		h := enqueue(fx, typ, "x")
		result(fx, h)
		want := []string{
			"task.started", "step.started", "log.written", "step.failed", "task.retrying",
			"task.started", "step.started", "log.written", "step.completed", "task.suspended",
			"task.started", "progress", "task.succeeded",
		}
		synctest.Wait()
		if got := r.types(); !slices.Equal(got, want) {
			fx.Errorf("events:\n got %q\nwant %q", got, want)
		}
		for _, ev := range r.events {
			equal(fx, "task of "+ev.Type(), ev.Head().TaskID, h.ID())
			equal(fx, "type of "+ev.Type(), ev.Head().TaskType, typ.Name())
			switch ev := ev.(type) {
			case event.LogWritten:
				equal(fx, "a line", fmt.Sprint(ev.Step, " ", ev.Message, " ", ev.Data), "fetch fetching map[from:there]")
			case event.StepCompleted:
				equal(fx, "a step", fmt.Sprint(ev.Step, ev.Index, string(ev.Output)), `fetch0"x"`)
			case event.TaskSucceeded:
				equal(fx, "the output", string(ev.Output), `"x"`)
			}
		}
	})

	subtest(t, "hears of an attempt when it has heard how the one before ended", func(fx *fixture) {
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{handler}, Sink: event.SinkFunc(func(ev event.Event) {
			switch ev.(type) {
			case event.TaskRetrying, event.TaskSuspended:
				time.Sleep(time.Hour)
			}
			r.Emit(ev)
		})})
		result(fx, enqueue(fx, typ, "x"))
		synctest.Wait()
		if got := r.all(); !slices.IsSortedFunc(got, func(a, b event.Event) int {
			return cmp.Compare(a.Head().Sequence, b.Head().Sequence)
		}) {
			fx.Errorf("events out of order: %q", r.types())
		}
	})

	subtest(t, "gets a line as the logger would write it", func(fx *fixture) {
		r := &recorder{}
		quietLog := slog.New(slog.NewJSONHandler(fx.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		fx.runConfig(fx.store, weaver.Config{Sink: r, Logger: quietLog, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			l := weaver.Log(ctx).With("a", 1).WithGroup("g").With("b", 2)
			l.Info("below the logger's level", "c", 3)
			l.Warn("written", "c", 3)
			l.Debug("below every level")
			return in, nil
		})}})
		result(fx, enqueue(fx, typ, "x"))
		synctest.Wait() // the sink gets the end after Wait has returned
		var got []string
		for _, ev := range r.events {
			if line, ok := ev.(event.LogWritten); ok {
				got = append(got, fmt.Sprint(line.Level, " ", line.Message, " ", line.Data))
			}
		}
		equal(fx, "lines", fmt.Sprint(got), "[INFO below the logger's level map[a:1 g.b:2 g.c:3] WARN written map[a:1 g.b:2 g.c:3]]")
		equal(fx, "lines below the level", len(fx.log.lines(fx, "below the logger's level")), 0)
		lines := fx.log.lines(fx, "written")
		if len(lines) != 1 || fmt.Sprint(lines[0]["g"]) != "map[b:2 c:3]" {
			fx.Errorf("written: %v", lines)
		}
		if weaver.Log(fx.Context()) != slog.Default() {
			fx.Error("outside of a handler Log is not slog.Default")
		}
	})

	subtest(t, "gets live output while the attempt lasts", func(fx *fixture) {
		r := &recorder{}
		var kept context.Context
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			kept = ctx
			return in, weaver.Emit(ctx, "stdout", "a line\n")
		})}})
		h := enqueue(fx, typ, "x")
		equal(fx, "output", result(fx, h), "x")
		synctest.Wait()
		equal(fx, "events", fmt.Sprint(r.types()), "[task.started stream.chunk task.succeeded]")
		chunk := r.events[1].(event.StreamChunk)
		equal(fx, "chunk", fmt.Sprintf("%t %d %s %q", chunk.TaskID == h.ID(), chunk.AttemptNo, chunk.Stream, chunk.Data), `true 1 stdout "a line\n"`)
		wantError(fx, weaver.Emit(kept, "stdout", "too late"), weaver.ErrAttemptOver)
		wantError(fx, weaver.Emit(fx.Context(), "stdout", "outside"), weaver.ErrNoTask)
	})

	subtest(t, "that panics affects no task", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Sink: event.SinkFunc(func(event.Event) { panic("boom") }), Handlers: []weaver.Handler{handler}})
		equal(fx, "output", result(fx, enqueue(fx, typ, "x")), "x")
		synctest.Wait()
		if len(fx.log.lines(fx, "an event listener panicked")) == 0 {
			fx.Error("the log does not tell of the panic")
		}
	})

	subtest(t, "gets the end of every task", func(fx *fixture) {
		r := &recorder{}
		e := fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "fail":
				return "", weaver.Permanent(errors.New("no"))
			case "block":
				return "", weaver.Blocked("help")
			}
			<-ctx.Done()
			return "", ctx.Err()
		})}})
		fails(fx, enqueue(fx, typ, "fail"))
		synctest.Wait() // events arrive after Wait has returned
		blocks(fx, enqueue(fx, typ, "block"))
		synctest.Wait()
		h := enqueue(fx, typ, "wait")
		time.Sleep(time.Second)
		fx.must(e.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		want := []string{"task.started", "task.failed", "task.started", "task.blocked", "task.started", "task.cancelled"}
		synctest.Wait() // events follow the state that Wait saw
		if got := r.types(); !slices.Equal(got, want) {
			fx.Errorf("events:\n got %q\nwant %q", got, want)
		}
	})
}
