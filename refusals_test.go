package weaver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestSleepUntilAnInstantThatNobodyCanTell(t *testing.T) {
	typ := weaver.Define[time.Time, string]("mistakes.sleep.until.v1")
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	scene(t, "fails the task at once", func(w *world) {
		h := enqueue(w, typ, last)
		w.idle(typ.Handler(func(ctx context.Context, _ time.Time) (string, error) {
			return "", weaver.SleepUntil(ctx, "nap", last.Add(time.Second))
		}))
		te := failure(w, h)
		wantError(w, te, nil, `sleep "nap"`, "SleepUntil(10000-01-01", "before the year 10000")
		equal(w, "attempts", te.Attempts, 1)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})
	scene(t, "and the one before it is kept", func(w *world) {
		h := enqueue(w, typ, last)
		w.idle(typ.Handler(func(ctx context.Context, until time.Time) (string, error) {
			return "", weaver.SleepUntil(ctx, "nap", until)
		}))
		got := w.get(h.ID())
		equal(w, "it waits for", got.Waiting, task.WaitSleep)
		equal(w, "due", got.ReadyAt, last)
		_, err := json.Marshal(got)
		w.must(err)
	})
}

func TestOperatorsWriteWhatStoresCanKeep(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.operators.text.v1")
	inWorld(t, func(w *world) {
		h := enqueue(w, typ, "")
		for _, text := range []string{"a\x00b", "a\xffb"} {
			for name, opt := range map[string]weaver.OperateOption{"By": weaver.By(text), "Reason": weaver.Reason(text)} {
				wantError(w, w.client.Cancel(w.Context(), h.ID(), opt), weaver.ErrInvalidOption, "cancel task "+h.ID().String(), name)
			}
			wantError(w, w.client.PauseQueue(w.Context(), text), weaver.ErrInvalidOption, "pause queue")
			wantError(w, w.client.ResumeQueue(w.Context(), text), weaver.ErrInvalidOption, "resume queue")
		}
		wantError(w, w.client.PauseQueue(w.Context(), ""), weaver.ErrInvalidOption, "the name is empty")
		wantError(w, w.client.ResumeQueue(w.Context(), ""), weaver.ErrInvalidOption, "the name is empty")
		w.wantState(h.ID(), weaver.StateReady)
		equal(w, "audit", len(w.history(h.ID()).Audit), 0)
		queues, err := w.store.Queues(w.Context(), w.client.Namespace())
		w.must(err)
		equal(w, "the queue is paused", slices.ContainsFunc(queues, func(q store.Queue) bool { return q.Paused }), false)
	})
}

func TestOnlyCancelTakesForce(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.operators.force.v1")
	inWorld(t, func(w *world) {
		id := enqueue(w, typ, "").ID()
		for verb, do := range map[string]func(...weaver.OperateOption) error{
			"retry task":   func(o ...weaver.OperateOption) error { return w.client.Retry(w.Context(), id, o...) },
			"unblock task": func(o ...weaver.OperateOption) error { return w.client.Unblock(w.Context(), id, nil, o...) },
			"delete task":  func(o ...weaver.OperateOption) error { return w.client.Delete(w.Context(), id, o...) },
			"pause queue":  func(o ...weaver.OperateOption) error { return w.client.PauseQueue(w.Context(), "q", o...) },
			"resume queue": func(o ...weaver.OperateOption) error { return w.client.ResumeQueue(w.Context(), "q", o...) },
			"cancel job": func(o ...weaver.OperateOption) error {
				_, err := w.client.CancelJob(w.Context(), id, o...)
				return err
			},
		} {
			wantError(w, do(weaver.Force()), weaver.ErrInvalidOption, verb, "Force is an option of Cancel only")
		}
		w.wantState(id, weaver.StateReady)
		w.must(w.client.Cancel(w.Context(), id, weaver.Force()))
	})
}

func TestNewRefusesQueuesAndMiddlewareThatCannotBe(t *testing.T) {
	typ := weaver.Define[int, int]("mistakes.new.wrapped.v1")
	run := typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil })
	same := func(next weaver.HandlerFunc) weaver.HandlerFunc { return next }
	none := func(weaver.HandlerFunc) weaver.HandlerFunc { return nil }
	for name, c := range map[string]struct {
		cfg   weaver.Config
		words []string
	}{
		"a queue without a name": {weaver.Config{Queues: map[string]int{"": 1}}, []string{"Queues", "the name is empty"}},
		"a queue with a NUL":     {weaver.Config{Queues: map[string]int{"a\x00": 1}}, []string{"Queues", "NUL"}},
		"a queue that is long":   {weaver.Config{Queues: map[string]int{strings.Repeat("q", 256): 1}}, []string{"Queues", "256 bytes"}},
		"middleware that returns nil": {
			weaver.Config{Handlers: []weaver.Handler{run}, Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{same, none, same}},
			[]string{"Middleware[1] returned nil", typ.Name(), "return the handler itself"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weaver.New(memstore.New(), c.cfg)
			wantError(t, err, weaver.ErrConfig, c.words...)
		})
	}
}

func TestListsRefuseStatesThatDoNotExist(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, err := w.client.List(w.Context(), weaver.Filter{States: []weaver.State{"done"}})
		wantError(w, err, weaver.ErrInvalidOption, "list tasks", `"done"`, "succeeded")
		_, _, err = w.client.Jobs(w.Context(), weaver.JobFilter{States: []weaver.JobState{weaver.JobRunning, "ready"}})
		wantError(w, err, weaver.ErrInvalidOption, "list jobs", `"ready"`, "succeeded")
		for _, s := range []weaver.JobState{weaver.JobRunning, weaver.JobBlocked, weaver.JobSucceeded, weaver.JobFailed, weaver.JobCancelled} {
			_, _, err := w.client.Jobs(w.Context(), weaver.JobFilter{States: []weaver.JobState{s}})
			w.must(err)
		}
	})
}

// The words of the client stand in place of the store's, not beside them.
func TestErrorsOfTheStoreAreToldOnce(t *testing.T) {
	typ := weaver.Define[string, string]("mistakes.told.once.v1")
	inWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		job := weaver.NewJob("nightly")
		job.Add("only", typ.With(""))
		id := weaver.TaskID{7}
		for begin, do := range map[string]func() error{
			"enqueue: ":                                      func() error { _, err := typ.Enqueue(ctx, w.client, ""); return err },
			`submit job "nightly": `:                         func() error { _, err := w.client.Submit(ctx, job); return err },
			fmt.Sprintf("get task %s: ", id):                 func() error { _, err := w.client.Get(ctx, id); return err },
			fmt.Sprintf("get job %s: ", id):                  func() error { _, err := w.client.Job(ctx, id); return err },
			"list tasks: ":                                   func() error { _, _, err := w.client.List(ctx, weaver.Filter{}); return err },
			"list jobs: ":                                    func() error { _, _, err := w.client.Jobs(ctx, weaver.JobFilter{}); return err },
			fmt.Sprintf("cancel task %s: ", id):              func() error { return w.client.Cancel(ctx, id) },
			fmt.Sprintf("read the history of task %s: ", id): func() error { _, err := w.client.History(ctx, id); return err },
		} {
			err := do()
			wantError(w, err, context.Canceled)
			rest, ok := strings.CutPrefix(err.Error(), begin)
			if !ok {
				w.Errorf("%q does not begin with %q", err, begin)
			}
			for _, verb := range []string{"enqueue: ", "operate: ", "list ", "read "} {
				if strings.HasPrefix(rest, verb) {
					w.Errorf("%q says what was done twice", err)
				}
			}
		}
	})
}

// One map serves many objects; what it held before must not count.
func TestEachObjectHasKeysOfItsOwn(t *testing.T) {
	many := func(from int) string {
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprintf(`"k%d":%d`, from+i, i))
		}
		return "{" + strings.Join(keys, ",") + "}"
	}
	for raw, path := range map[string]string{
		`[{"a":1},{"a":2},{"b":{"a":3}},{"b":{"a":4},"a":[]}]`: "",
		`[{"a":1,"b":2},{"b":1,"a":2}]`:                        "",
		"[" + many(0) + "," + many(20) + "," + many(0) + "]":   "",
		`{"":0}`:                           "",
		`[{"":0},{"":1,"":2}]`:             "$[1].",
		`[[],{"a":1},{"a":1,"b":2,"a":3}]`: "$[2].a",
		`{"a":{"b":1},"c":{"b":1},"a":0}`:  "$.a",
	} {
		scene(t, fmt.Sprintf("%.30s", raw), func(w *world) {
			_, err := w.client.EnqueueTasks(w.Context(), weaver.NewDraft("mistakes.json.keys.v1", json.RawMessage(raw)))
			if path == "" {
				w.must(err)
				return
			}
			wantError(w, err, weaver.ErrInvalidInput, path+": the key stands twice")
		})
	}
}
