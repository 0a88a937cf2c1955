package httpapi_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

type fullIn struct {
	Name  string            `json:"name"`
	Card  string            `json:"card" weaver:"redact"`
	Phone string            `json:"phone" weaver:"expire=720h"`
	List  []int             `json:"list"`
	Map   map[string]string `json:"map"`
	Ptr   *chargeOut        `json:"ptr"`
	Big   json.Number       `json:"big"`
}

// fullOptions returns all options of a job's draft, each with a value that is not the default.
func fullOptions() []weaver.EnqueueOption {
	examples := slices.DeleteFunc(option.Examples[weaver.EnqueueOption](option.HTTP), func(o weaver.EnqueueOption) bool {
		var s option.Settings
		o.ApplyEnqueue(&s)
		n := &s.Task
		return n.IdempotencyKey != "" || n.Coalesce || n.RequireSameInput || n.Delay != 0 || !n.At.IsZero() // covered by other cases
	})
	return append(
		examples, weaver.ConcurrencyKey("org/1", 3), weaver.Queue("a queue/with, signs"), weaver.Priority(2), weaver.ExpireAfter(3*time.Hour+time.Nanosecond*1000),
		weaver.Backoff(1500*time.Microsecond), weaver.Label("team", "p<a>&y"), weaver.Metadata("tenant", "t=1 \u2028"),
	)
}

// A task's row is the same whether it is enqueued in the store or over HTTP.
func TestNoOptionIsLostOverHTTP(t *testing.T) {
	t.Parallel()
	const name = "acme.full.options.v1"
	in := fullIn{Name: "a<b>&c", Card: "4111", Big: "12345678901234567890.10"}
	jobOptions := fullOptions()
	options := append(fullOptions(), weaver.IdempotencyKey("evt-1"), weaver.Coalesce())
	plain := weaver.Define[fullIn, weaver.None](name)
	zero := weaver.Define[fullIn, weaver.None](name, weaver.MaxRepairs(0), weaver.Timeout(0), weaver.MaxCost(0))
	odd := weaver.Define[fullIn, weaver.None](name, weaver.Queue("odd"), weaver.Priority(9), weaver.MaxAttempts(2), weaver.MaxRepairs(5), weaver.MaxCost(6), weaver.MaxNoProgress(3),
		weaver.Backoff(time.Minute), weaver.BackoffMax(time.Hour*9), weaver.Timeout(time.Minute), weaver.ExpireAfter(time.Hour), weaver.CleanupWhenCancelled(), weaver.Label("odd", "1"), weaver.Metadata("odd", "1"))

	untagged := weaver.Define[map[string]any, weaver.None](name)

	n, err := plain.With(in, options...).Task()
	if err != nil {
		t.Fatal(err)
	}
	base, err := plain.With(fullIn{}).Task()
	if err != nil {
		t.Fatal(err)
	}
	// A field that the test does not set is not covered.
	elsewhere := []string{"ID", "Type", "SchemaVersion", "Delay", "At", "Redact", "Expire", "Node", "Needs", "AllowFailure", "UndoOf", "RequireSameInput"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[task.New]()) {
		if !f.Anonymous && !slices.Contains(elsewhere, f.Name) && reflect.DeepEqual(reflect.ValueOf(n).FieldByIndex(f.Index).Interface(), reflect.ValueOf(base).FieldByIndex(f.Index).Interface()) {
			t.Errorf("the draft of the test has no %s of its own: give it one, and see that Draft has it, too", f.Name)
		}
	}
	if len(n.Redact) == 0 || len(n.Expire) == 0 {
		t.Error("the type of the test redacts nothing, or nothing of it expires")
	}

	later := time.Date(2000, 1, 2, 3, 4, 5, 678901000, time.FixedZone("", 3600))
	for what, d := range map[string]weaver.Draft{
		"all options":  plain.With(in, options...),
		"none":         plain.With(in),
		"zeros":        zero.With(in),
		"odd defaults": odd.With(in),
		"a delay":      plain.With(in, weaver.Delay(90*time.Minute)),
		"an instant":   plain.With(in, weaver.At(later)),
		"as given":     plain.WithJSON(json.RawMessage(`{"name":"a<b>&\u2028","big":1.50e+20}`)),
	} {
		for announced, of := range map[string]weaver.AnyType{"the same": plain, "odd defaults": odd, "no tags": untagged} {
			t.Run(what+", announced with "+announced, func(t *testing.T) {
				t.Parallel()
				direct, over := rowsOf(t, of, func(s *suite) weaver.TaskID {
					got, err := s.c.EnqueueTasks(s.Context(), d)
					s.no(err)
					return got[0].ID
				})
				sameRow(t, direct, over)
				direct, over = rowsOf(t, of, func(s *suite) weaver.TaskID {
					got, err := s.c.EnqueueTasks(s.Context(), plain.With(fullIn{}), d)
					s.no(err)
					return got[1].ID
				})
				sameRow(t, direct, over)
			})
		}
	}

	t.Run("tasks of jobs", func(t *testing.T) {
		t.Parallel()
		var rows [2][]task.Task
		var jobs [2]task.Job
		for i, kind := range []string{"store", "HTTP"} {
			onClient(t, kind, odd, func(s *suite) {
				j := weaver.NewJob("full", weaver.Budget{MaxAttemptsPerTask: 3, MaxTotalAttempts: 4, MaxDuration: time.Hour, MaxCost: 5, MaxRepairs: 6, MaxNoProgress: 7})
				j.Metadata("tenant", "t1")
				a := j.Add("a", plain.With(in, jobOptions...))
				b := j.Add("b", plain.With(in), weaver.Needs(a), weaver.AllowFailure())
				j.Add("c", plain.With(in), weaver.IfFailed(b), weaver.Needs(j.Nodes("a")...))
				j.Add("d", plain.With(in), weaver.IfDone(a, b))
				few := weaver.NewJob("few at once")
				few.MaxParallel(3)
				few.Add("a", plain.With(in))
				h, err := s.c.Submit(s.Context(), few)
				s.no(err)
				first, err := s.client.JobTasks(s.Context(), h.ID())
				s.no(err)
				if first[0].ConcurrencyKey != task.ParallelKey(h.ID()) || first[0].ConcurrencyLimit != 3 {
					t.Errorf("%s: a task of a job with MaxParallel has the key %q and the limit %d", kind, first[0].ConcurrencyKey, first[0].ConcurrencyLimit)
				}
				h, err = s.c.Submit(s.Context(), j, weaver.IdempotencyKey("monday"))
				s.no(err)
				tasks, err := s.client.JobTasks(s.Context(), h.ID())
				s.no(err)
				rows[i] = tasks
				jobs[i], err = s.client.Job(s.Context(), h.ID())
				s.no(err)
				for k := range tasks {
					hist, err := s.client.History(s.Context(), tasks[k].ID)
					s.no(err)
					for _, e := range hist.Needs {
						rows[i][k].CancelReason += " " + e.Node + " " + string(e.Kind) // stored in the row for the comparison
					}
				}
			})
		}
		if len(rows[0]) != 4 || len(rows[1]) != 4 {
			t.Fatalf("%d and %d tasks", len(rows[0]), len(rows[1]))
		}
		for i := range rows[0] {
			sameRow(t, rows[0][i], rows[1][i])
		}
		jobs[0].ID, jobs[1].ID = task.ID{}, task.ID{}
		if !reflect.DeepEqual(jobs[0], jobs[1]) || jobs[0].IdempotencyKey != "monday" {
			t.Errorf("the job in the store %+v\nover HTTP          %+v", jobs[0], jobs[1])
		}
		b := reflect.ValueOf(jobs[0].Budget)
		for i := range b.NumField() {
			if b.Field(i).IsZero() {
				t.Errorf("the job of the test has no %s: give it one, and see that BudgetDraft has it, too", b.Type().Field(i).Name)
			}
		}
	})
}

// onClient runs fn with a client of one kind, on a store with an announced type.
func onClient(t *testing.T, kind string, announced weaver.AnyType, fn func(s *suite)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.OpenMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := &suite{server: newServer(t, serverOptions{store: db, direct: true})}
		s.no(schema.Announce(t.Context(), s.client, announced))
		if s.c = s.client; kind == "HTTP" {
			s.c = s.over()
		}
		fn(s)
	})
}

// rowsOf returns the rows that enqueue stores directly and over HTTP.
func rowsOf(t *testing.T, announced weaver.AnyType, enqueue func(s *suite) weaver.TaskID) (direct, over task.Task) {
	t.Helper()
	for kind, row := range map[string]*task.Task{"store": &direct, "HTTP": &over} {
		onClient(t, kind, announced, func(s *suite) {
			var err error
			*row, err = s.client.Get(s.Context(), enqueue(s))
			s.no(err)
		})
	}
	return direct, over
}

// sameRow compares rows without their IDs. The clocks of both bubbles are equal.
func sameRow(t *testing.T, direct, over task.Task) {
	t.Helper()
	direct.ID, over.ID, direct.JobID, over.JobID = task.ID{}, task.ID{}, task.ID{}, task.ID{}
	a, b := reflect.ValueOf(direct), reflect.ValueOf(over)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			t.Errorf("%s: %s in the store, %s over HTTP", a.Type().Field(i).Name, text(x), text(y))
		}
	}
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
