package weaver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestGetAndList(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reads.run.v1", weaver.NoRetry())

	subtest(t, "get by id, absent is not found", func(fx *fixture) {
		h := enqueue(fx, typ, "x")
		got, err := typ.Get(fx.Context(), fx.client, h.ID())
		fx.must(err)
		equal(fx, "input", got.Input, "x")
		absent := weaver.TaskID{1, 2, 3}
		_, err = typ.Get(fx.Context(), fx.client, absent)
		wantError(fx, err, weaver.ErrNotFound, absent.String(), `namespace "default"`)
		elsewhere, err := weaver.NewClient(fx.store, weaver.ClientConfig{Namespace: "acme-dev"})
		fx.must(err)
		_, err = elsewhere.Get(fx.Context(), h.ID())
		wantError(fx, err, weaver.ErrNotFound, `namespace "acme-dev"`)
	})

	subtest(t, "list by state, type and labels, newest first, with limit and cursor", func(fx *fixture) {
		other := weaver.Define[int, int]("engine.reads.other.v1", weaver.Label("team", "pay"))
		for i := range 7 {
			enqueue(fx, other, i, weaver.Label("n", fmt.Sprint(i%2)))
		}
		h := enqueue(fx, typ, "x")
		fx.idle(typ.Handler(func(context.Context, string) (string, error) { return "", fmt.Errorf("no") }))
		fails(fx, h)
		enqueue(fx, other, 7, weaver.Delay(time.Hour), weaver.Label("n", "0"), weaver.Label("team", "ops"))

		for name, c := range map[string]struct {
			f    weaver.Filter
			want int
		}{
			"everything":          {weaver.Filter{}, 9},
			"failed":              {weaver.Filter{States: []weaver.State{weaver.StateFailed}}, 1},
			"pending":             {weaver.Filter{States: []weaver.State{weaver.StatePending}}, 1},
			"ready":               {weaver.Filter{States: []weaver.State{weaver.StateReady}}, 7},
			"failed or pending":   {weaver.Filter{States: []weaver.State{weaver.StateFailed, weaver.StatePending}}, 2},
			"a type":              {weaver.Filter{Types: []string{typ.Name()}}, 1},
			"a label":             {weaver.Filter{Labels: map[string]string{"n": "1"}}, 3},
			"a label of the type": {weaver.Filter{Labels: map[string]string{"n": "0", "team": "pay"}}, 4},
			"a label and a state": {weaver.Filter{Labels: map[string]string{"n": "1"}, States: []weaver.State{weaver.StateFailed}}, 0},
		} {
			list, _, err := fx.client.List(fx.Context(), c.f)
			fx.must(err)
			equal(fx, name, len(list), c.want)
		}

		f, seen := weaver.Filter{Limit: 3}, []int(nil)
		for pages := 1; ; pages++ {
			page, next, err := other.List(fx.Context(), fx.client, f)
			fx.must(err)
			for _, got := range page {
				seen = append(seen, got.Input)
			}
			if next == "" {
				equal(fx, "pages of 3", pages, 3)
				break
			}
			f.After = next
		}
		equal(fx, "newest first over all pages", fmt.Sprint(seen), "[7 6 5 4 3 2 1 0]")
	})

	subtest(t, "list across all types with untyped output", func(fx *fixture) {
		number := weaver.Define[int, int]("engine.reads.number.v1")
		a, b := enqueue(fx, typ, "x"), enqueue(fx, number, 41)
		fx.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
			number.Handler(func(_ context.Context, n int) (int, error) { return n + 1, nil }))
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
		fx.must(err)
		equal(fx, "length", len(list), 2)
		equal(fx, "the newest", list[0].ID, b.ID())
		equal(fx, "its output", string(list[0].Output), "42")
		equal(fx, "the other", list[1].ID, a.ID())
		equal(fx, "its type", list[1].Type, typ.Name())
		equal(fx, "its output", string(list[1].Output), `"x"`)
	})
}

func TestInvalidReads(t *testing.T) {
	text := weaver.Define[string, string]("invalid.read.text.v1")
	number := weaver.Define[int, int]("invalid.read.number.v1")
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, text, "x")

		_, _, err := fx.client.List(fx.Context(), weaver.Filter{After: "not-a-cursor"})
		wantError(fx, err, store.ErrBadCursor, "list tasks")
		_, _, err = fx.client.Jobs(fx.Context(), store.JobFilter{After: "not-a-cursor"})
		wantError(fx, err, store.ErrBadCursor, "list jobs")
		_, _, err = fx.client.List(fx.Context(), weaver.Filter{States: []weaver.State{"completed"}})
		wantError(fx, err, nil, `"completed": unknown state`, "succeeded", "blocked")
		_, err = number.Get(fx.Context(), fx.client, h.ID())
		wantError(fx, err, weaver.ErrWrongType, h.ID().String(), text.Name(), number.Name())
		_, err = task.ParseID("123")
		wantError(fx, err, nil, `"123"`, "26 characters")

		// The input was stored by a program whose type had another shape.
		old, err := fx.client.EnqueueTasks(fx.Context(), weaver.NewDraft(number.Name(), []byte(`"seven"`)))
		fx.must(err)
		_, err = number.Get(fx.Context(), fx.client, old[0].ID)
		wantError(fx, err, nil, "input", old[0].ID.String(), "no longer decodes")

		// It does not prevent listing the others.
		good := enqueue(fx, number, 8)
		list, next, err := number.List(fx.Context(), fx.client, weaver.Filter{})
		fx.must(err)
		if len(list) != 2 || next != "" || list[0].ID != good.ID() || list[0].Input != 8 || list[0].DecodeError != nil {
			fx.Errorf("listed %+v and %q, want the good one first", list, next)
		}
		wantError(fx, list[1].DecodeError, nil, "input", old[0].ID.String(), "no longer decodes")
		equal(fx, "what was stored", string(list[1].TaskInfo.Input), `"seven"`)
	})
}

func TestListsRefuseUnknownStates(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		_, _, err := fx.client.List(fx.Context(), weaver.Filter{States: []weaver.State{"done"}})
		wantError(fx, err, weaver.ErrInvalidOption, "list tasks", `"done"`, "succeeded")
		_, _, err = fx.client.List(fx.Context(), weaver.Filter{Waiting: []task.Waiting{"", "answer"}})
		wantError(fx, err, weaver.ErrInvalidOption, "list tasks", `"answer"`, "signal")
		_, _, err = fx.client.List(fx.Context(), weaver.Filter{ErrorKinds: []task.ErrorKind{"", "time_out"}})
		wantError(fx, err, weaver.ErrInvalidOption, "list tasks", `"time_out"`, "timeout")
		_, _, err = fx.client.Jobs(fx.Context(), store.JobFilter{States: []task.JobState{task.JobRunning, "ready"}})
		wantError(fx, err, weaver.ErrInvalidOption, "list jobs", `"ready"`, "succeeded")
		for _, s := range []task.JobState{task.JobRunning, task.JobBlocked, task.JobSucceeded, task.JobFailed, task.JobCancelled} {
			_, _, err := fx.client.Jobs(fx.Context(), store.JobFilter{States: []task.JobState{s}})
			fx.must(err)
		}
	})
}
