package weaver_test

import (
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

// recorder is a Sink that keeps what it hears.
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

	scene(t, "hears of every event, in order", func(w *world) {
		r := &recorder{}
		w.runConfig(w.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{handler}})
		h := enqueue(w, typ, "x")
		result(w, h)
		want := []string{
			"task.started", "step.started", "log.written", "step.failed", "task.retrying",
			"task.started", "step.started", "log.written", "step.completed", "task.suspended",
			"task.started", "progress", "task.succeeded",
		}
		synctest.Wait()
		if got := r.types(); !slices.Equal(got, want) {
			w.Errorf("events:\n got %q\nwant %q", got, want)
		}
		for _, ev := range r.events {
			equal(w, "task of "+ev.Type(), ev.Head().TaskID, h.ID())
			equal(w, "type of "+ev.Type(), ev.Head().TaskType, typ.Name())
			switch ev := ev.(type) {
			case event.LogWritten:
				equal(w, "a line", fmt.Sprint(ev.Step, " ", ev.Message, " ", ev.Data), "fetch fetching map[from:there]")
			case event.StepCompleted:
				equal(w, "a step", fmt.Sprint(ev.Step, ev.Index, string(ev.Output)), `fetch0"x"`)
			case event.TaskSucceeded:
				equal(w, "the output", string(ev.Output), `"x"`)
			}
		}
	})

	scene(t, "hears a line as the logger would write it", func(w *world) {
		r := &recorder{}
		quietLog := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		w.runConfig(w.store, weaver.Config{Sink: r, Logger: quietLog, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			l := weaver.Log(ctx).With("a", 1).WithGroup("g").With("b", 2)
			l.Info("below the logger's level", "c", 3)
			l.Warn("written", "c", 3)
			l.Debug("told to nobody")
			return in, nil
		})}})
		result(w, enqueue(w, typ, "x"))
		synctest.Wait() // the sink hears of the end after those who wait for it
		var told []string
		for _, ev := range r.events {
			if line, ok := ev.(event.LogWritten); ok {
				told = append(told, fmt.Sprint(line.Level, " ", line.Message, " ", line.Data))
			}
		}
		equal(w, "told", fmt.Sprint(told), "[INFO below the logger's level map[a:1 g.b:2 g.c:3] WARN written map[a:1 g.b:2 g.c:3]]")
		equal(w, "lines below the level", len(w.log.lines(w, "below the logger's level")), 0)
		lines := w.log.lines(w, "written")
		if len(lines) != 1 || fmt.Sprint(lines[0]["g"]) != "map[b:2 c:3]" {
			w.Errorf("written: %v", lines)
		}
		if weaver.Log(w.Context()) != slog.Default() {
			w.Error("outside of a handler Log is not slog.Default")
		}
	})

	scene(t, "hears live output while the attempt lasts", func(w *world) {
		r := &recorder{}
		var kept context.Context
		w.runConfig(w.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			kept = ctx
			return in, weaver.Emit(ctx, "stdout", "a line\n")
		})}})
		h := enqueue(w, typ, "x")
		equal(w, "output", result(w, h), "x")
		synctest.Wait()
		equal(w, "events", fmt.Sprint(r.types()), "[task.started stream.chunk task.succeeded]")
		chunk := r.events[1].(event.StreamChunk)
		equal(w, "chunk", fmt.Sprintf("%t %d %s %q", chunk.TaskID == h.ID(), chunk.AttemptNo, chunk.Stream, chunk.Data), `true 1 stdout "a line\n"`)
		wantError(w, weaver.Emit(kept, "stdout", "too late"), weaver.ErrAttemptOver)
		wantError(w, weaver.Emit(w.Context(), "stdout", "nobody's"), weaver.ErrNoTask)
	})

	scene(t, "that panics touches no task", func(w *world) {
		w.runConfig(w.store, weaver.Config{Sink: event.SinkFunc(func(event.Event) { panic("boom") }), Handlers: []weaver.Handler{handler}})
		equal(w, "output", result(w, enqueue(w, typ, "x")), "x")
		synctest.Wait()
		if len(w.log.lines(w, "the event sink panicked")) == 0 {
			w.Error("the log does not tell of the panic")
		}
	})

	scene(t, "hears how tasks end", func(w *world) {
		r := &recorder{}
		e := w.runConfig(w.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "fail":
				return "", weaver.Permanent(errors.New("no"))
			case "block":
				return "", weaver.Blocked("help")
			}
			<-ctx.Done()
			return "", ctx.Err()
		})}})
		fails(w, enqueue(w, typ, "fail"))
		synctest.Wait() // events come after what those who wait saw
		blocks(w, enqueue(w, typ, "block"))
		synctest.Wait()
		h := enqueue(w, typ, "wait")
		time.Sleep(time.Second)
		w.must(e.Cancel(w.Context(), h.ID()))
		fails(w, h)
		want := []string{"task.started", "task.failed", "task.started", "task.blocked", "task.started", "task.cancelled"}
		synctest.Wait() // events come after what Wait saw
		if got := r.types(); !slices.Equal(got, want) {
			w.Errorf("events:\n got %q\nwant %q", got, want)
		}
	})
}

func TestWait(t *testing.T) {
	typ := weaver.Define[string, string]("engine.wait.run.v1")
	handler := typ.Handler(func(_ context.Context, in string) (string, error) {
		time.Sleep(90 * time.Second)
		return in, nil
	})

	scene(t, "many wait for one, each at once", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "x")
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			client := w.newClient()
			wg.Go(func() {
				info, err := client.Wait(w.Context(), h.ID())
				if err != nil || string(info.Output) != `"x"` {
					w.Errorf("Wait: %v, %s", err, info.Output)
				}
				equal(w, "time", time.Since(began), 90*time.Second)
			})
		}
		wg.Wait()
	})

	scene(t, "polls a store that tells nothing", func(w *world) {
		w.run(handler)
		client, err := weaver.NewClient(polled(w.store), weaver.ClientConfig{})
		w.must(err)
		h, err := typ.Enqueue(w.Context(), client, "x")
		w.must(err)
		began := time.Now()
		equal(w, "output", result(w, h), "x")
		if took := time.Since(began); took < 90*time.Second || took > 92*time.Second {
			w.Errorf("it took %s, want 90s and a poll", took)
		}
	})

	scene(t, "Wake lets an engine look at once", func(w *world) {
		var began time.Time
		e := w.runConfig(polled(w.store), weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			began = time.Now()
			return in, nil
		})}})
		synctest.Wait()
		h := enqueue(w, typ, "x")
		time.Sleep(time.Minute)
		w.wantState(h.ID(), weaver.StateReady)
		woken := time.Now()
		e.Wake()
		result(w, h)
		equal(w, "time to its start", began.Sub(woken), 0)
	})

	scene(t, "ends with its context", func(w *world) {
		h := enqueue(w, typ, "x")
		cause := errors.New("the caller went home")
		ctx, cancel := context.WithTimeoutCause(w.Context(), time.Minute, cause)
		defer cancel()
		_, err := h.Wait(ctx)
		wantError(w, err, cause)
	})

	scene(t, "says what is wrong with an output of another type", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "x")
		result(w, h)
		number := weaver.Define[string, int](typ.Name())
		again, err := number.Enqueue(w.Context(), w.client, "x", weaver.Delay(0))
		w.must(err)
		_, err = again.Wait(w.Context())
		wantError(w, err, nil, "output", again.ID().String(), "does not decode as int")
	})
}
