package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

var told = weaver.Define[string, string]("engine.subscribe.run.v1", weaver.MaxAttempts(3), weaver.Backoff(time.Minute))

// tells produces an event of every kind in two attempts.
var tells = told.Handler(func(ctx context.Context, in string) (string, error) {
	first := weaver.Current(ctx).AttemptNo == 1
	a, err := weaver.Step(ctx, "a", func(ctx context.Context) (string, error) {
		weaver.Log(ctx).Info("in a", "first", first)
		return in, weaver.Emit(ctx, "tokens", "chunk")
	})
	if err == nil {
		err = weaver.Do(ctx, "b", func(context.Context) error {
			if first {
				return errors.New("not yet")
			}
			return nil
		})
	}
	if err == nil {
		err = weaver.Progress(ctx, 1, 2)
	}
	return a, err
})

var persist = []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()}

// names returns the events of Subscribe with their numbers.
func subscribed(fx *fixture, c *weaver.Client, f weaver.EventFilter) (names []string, numbers []int64) {
	fx.Helper()
	for ev, err := range c.Subscribe(fx.Context(), f) {
		fx.must(err)
		name := ev.Type()
		switch ev := ev.(type) {
		case event.StepCompleted:
			name += " " + ev.Step + " " + string(ev.Output)
		case event.StepFailed:
			name += " " + ev.Step
		case event.LogWritten:
			name += fmt.Sprint(" ", ev.Step, ": ", ev.Message, " ", ev.Data)
		case event.StreamChunk:
			name += fmt.Sprint(" ", ev.Stream, " ", ev.Data)
		case event.TaskSucceeded:
			name += " " + string(ev.Output)
		}
		names, numbers = append(names, name), append(numbers, ev.Head().Sequence)
	}
	return names, numbers
}

var toldWhole = []string{
	"task.enqueued", "task.started", "step.started", "log.written a: in a map[first:true]", "stream.chunk tokens chunk", `step.completed a "x"`,
	"step.started", "step.failed b", "task.retrying",
	"task.started", "step.started", `step.completed b {}`, "progress", `task.succeeded "x"`,
}

func TestSubscribe(t *testing.T) {
	subtest(t, "replays what was stored, from any number on", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{tells}})
		h := enqueue(fx, told, "x")
		result(fx, h)
		got, numbers := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		if !slices.Equal(got, toldWhole) || !slices.IsSorted(numbers) || numbers[0] == 0 {
			fx.Fatalf("got %q\nwant %q, numbers %d", got, toldWhole, numbers)
		}
		for i := range numbers {
			rest, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID(), AfterSequence: numbers[i]})
			if !slices.Equal(rest, toldWhole[i+1:]) {
				fx.Errorf("after %s: %q", toldWhole[i], rest)
			}
		}
	})

	subtest(t, "goes on as things happen", func(fx *fixture) {
		g := newGate()
		e := fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{told.Handler(func(ctx context.Context, in string) (string, error) {
			weaver.Log(ctx).Info("waiting")
			return in, g.pass(ctx)
		})}})
		h := enqueue(fx, told, "x")
		for name, c := range map[string]*weaver.Client{"of the engine": e.Client, "another": fx.client} {
			for ev, err := range c.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID()}) {
				fx.must(err)
				if ev.Type() == "log.written" { // the task runs
					break
				}
				if ev.Type() == "task.succeeded" {
					fx.Errorf("the client %s got the end only", name)
				}
			}
		}
		<-g.in
		g.open()
		got, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		equal(fx, "the last", got[len(got)-1], `task.succeeded "x"`)
	})

	subtest(t, "without plug-ins gives what the rows say, and the rest in the engine as it happens", func(fx *fixture) {
		e := fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{tells}})
		h := enqueue(fx, told, "x", weaver.Delay(time.Minute))
		inside := make(chan []string)
		go func() {
			got, _ := subscribed(fx, e.Client, weaver.EventFilter{TaskID: h.ID()})
			inside <- got
		}()
		outside, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		want := []string{
			"task.enqueued", "task.started", `step.completed a "x"`, "step.failed b", "task.retrying",
			"task.started", `step.completed b {}`, `task.succeeded "x"`,
		}
		if !slices.Equal(outside, want) {
			fx.Errorf("outside %q\nwant %q", outside, want)
		}
		got := <-inside
		for _, name := range []string{"log.written a: in a map[first:true]", "stream.chunk tokens chunk", "progress"} {
			if !slices.Contains(got, name) {
				fx.Errorf("inside there is no %s: %q", name, got)
			}
		}
		rows, err := fx.store.Events(fx.Context(), "default", h.ID(), 0, 0)
		fx.must(err)
		equal(fx, "stored rows", len(rows), 0)
	})

	for name, kept := range map[string]struct {
		plugin weaver.Plugin
		want   string
	}{
		"PersistLogs":   {weaver.PersistLogs(), "[log.written]"},
		"PersistEvents": {weaver.PersistEvents(), "[step.started stream.chunk step.completed step.started step.failed step.started step.completed progress]"},
	} {
		subtest(t, name+" alone stores its own", func(fx *fixture) {
			fx.runConfig(fx.store, weaver.Config{Plugins: []weaver.Plugin{kept.plugin}, Handlers: []weaver.Handler{tells}})
			h := enqueue(fx, told, "x")
			result(fx, h)
			rows, err := fx.store.Events(fx.Context(), "default", h.ID(), 0, 0)
			fx.must(err)
			var types []string
			for _, row := range rows {
				types = append(types, row.Type)
			}
			equal(fx, "rows", fmt.Sprint(types), kept.want)
		})
	}

	subtest(t, "a line over 64 KiB is cut and says so", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{told.Handler(func(ctx context.Context, in string) (string, error) {
			weaver.Log(ctx).Info(strings.Repeat("x", 100_000))
			return in, nil
		})}})
		h := enqueue(fx, told, "x")
		result(fx, h)
		got, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		if line := got[2]; len(line) > 64<<10 || !strings.Contains(line, "(cut: it has 100") {
			fx.Errorf("%d bytes: …%s", len(line), line[len(line)-100:])
		}
	})

	subtest(t, "thousands of events keep their order, also of steps beside each other", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{told.Handler(func(ctx context.Context, in string) (string, error) {
			var err error
			done := make(chan error)
			for i := range 4 {
				go func() {
					done <- weaver.Do(ctx, fmt.Sprint("s", i), func(ctx context.Context) error {
						for range 1000 {
							weaver.Log(ctx).Info("line")
						}
						return nil
					})
				}()
			}
			for range 4 {
				err = errors.Join(err, <-done)
			}
			return in, err
		})}})
		h := enqueue(fx, told, "x")
		got, numbers := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		equal(fx, "events", len(got), 4011)
		equal(fx, "numbers", len(slices.Compact(slices.Sorted(slices.Values(numbers)))), 4011)
		equal(fx, "in order", slices.IsSorted(numbers), true)
	})

	subtest(t, "a task that an operator ends, a job, and a filter that is none", func(fx *fixture) {
		h := enqueue(fx, told, "x")
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		got, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		equal(fx, "events", fmt.Sprint(got), "[task.enqueued task.cancelled]")

		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{tells}})
		j := weaver.NewJob("two")
		j.Add("b", told.With("x"), weaver.Needs(j.Add("a", told.With("x"))))
		jh := submit(fx, j)
		got, _ = subscribed(fx, fx.client, weaver.EventFilter{JobID: jh.ID()})
		equal(fx, "events of the job", len(got), 2*len(toldWhole)+1)
		equal(fx, "the last", got[len(got)-1], "job.settled")

		for _, f := range []weaver.EventFilter{{}, {TaskID: h.ID(), JobID: jh.ID()}, {JobID: jh.ID(), AfterSequence: 1}, {TaskID: h.ID(), AfterSequence: -1}} {
			for _, err := range fx.client.Subscribe(fx.Context(), f) {
				wantError(fx, err, weaver.ErrInvalidOption)
			}
		}
		for _, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: task.ID{15: 9}}) {
			wantError(fx, err, weaver.ErrNotFound)
		}
	})

	subtest(t, "a step that ends between two reads comes once, with its output", func(fx *fixture) {
		step, rest := newGate(), newGate()
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{told.Handler(func(ctx context.Context, in string) (string, error) {
			out, err := weaver.Step(ctx, "a", func(ctx context.Context) (string, error) { return in, step.pass(ctx) })
			return out, errors.Join(err, rest.pass(ctx))
		})}})
		h := enqueue(fx, told, "x")
		<-step.in
		f := newFaults(fx)
		reads := 0
		f.set(nil, func(method string) error {
			if method == "History" {
				if reads++; reads == 1 { // the step is recorded, with its events, before these are read
					step.open()
					<-rest.in
					time.Sleep(time.Second)
				} else if reads == 2 {
					rest.open()
				}
			}
			return nil
		})
		c, err := weaver.NewClient(f.store, weaver.ClientConfig{Logger: fx.log.logger()})
		fx.must(err)
		got, _ := subscribed(fx, c, weaver.EventFilter{TaskID: h.ID()})
		want := []string{"task.enqueued", "task.started", "step.started", `step.completed a "x"`, `task.succeeded "x"`}
		if !slices.Equal(got, want) {
			fx.Errorf("got %q\nwant %q", got, want)
		}
	})

	subtest(t, "no step is lost with its process", func(fx *fixture) {
		f := newFaults(fx)
		g := newGate()
		handler := told.Handler(func(ctx context.Context, in string) (string, error) {
			if err := weaver.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			if weaver.Current(ctx).AttemptNo == 1 {
				g.in <- struct{}{}
				<-g.out
			}
			return in, nil
		})
		cut := fx.start(f.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{handler}})
		h := enqueue(fx, told, "x")
		<-g.in
		f.cut() // step.completed is not stored yet
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Handlers: []weaver.Handler{handler}})
		got, _ := subscribed(fx, fx.client, weaver.EventFilter{TaskID: h.ID()})
		want := []string{"task.enqueued", "task.started", "step.started", "step.completed a {}", "task.lease_lost", "task.started", `task.succeeded "x"`}
		if !slices.Equal(got, want) {
			fx.Errorf("got %q\nwant %q", got, want)
		}
		f.mend()
		g.open()
		_ = cut.stop()
		synctest.Wait()
	})
}

// Subscribe reports the reason and the end of a wait as the engine's own event does.
func TestSubscribeTellsOfWaits(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		paid := weaver.DefineSignal[string]("paid")
		child := weaver.Define[string, string]("engine.subscribe.child.v1")
		typ := weaver.Define[string, string]("engine.subscribe.waits.v1")
		r := &recorder{}
		fx.runConfig(fx.store, weaver.Config{Sink: r, Handlers: []weaver.Handler{
			child.Handler(func(_ context.Context, in string) (string, error) {
				time.Sleep(time.Minute)
				return in, nil
			}),
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				if err := weaver.Sleep(ctx, "nap", time.Hour); err != nil {
					return "", err
				}
				if _, _, err := paid.Wait(ctx, "pay", 2*time.Hour); err != nil {
					return "", err
				}
				return weaver.Call(ctx, "c", child, in)
			}),
		}})
		h := enqueue(fx, typ, "x")
		result(fx, h)
		synctest.Wait()
		said := func(ev event.Event) string {
			s, ok := ev.(event.TaskSuspended)
			if !ok || s.TaskID != h.ID() {
				return ""
			}
			return fmt.Sprintln(s.AttemptNo, s.Waiting, s.WakeAt.UTC())
		}
		var live, read strings.Builder
		for _, ev := range r.all() {
			live.WriteString(said(ev))
		}
		for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID(), NoWait: true}) {
			fx.must(err)
			read.WriteString(said(ev))
		}
		if live.String() != read.String() || strings.Count(live.String(), "\n") != 3 {
			fx.Errorf("the engine said\n%sand the reader\n%s", live.String(), read.String())
		}
	})
}
