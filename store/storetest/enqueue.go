package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var enqueueScenes = []scene{
	{"a task reads back as submitted", readsBack},
	{"a new task is ready and has its dispatch row", newTaskIsReady},
	{"answers come in the order of a thousand tasks", enqueueThousand},
	{"a big input comes back byte by byte", bigInput},
	{"JSON keeps its text", jsonKeepsText},
	{"empty maps read as nil", emptyMaps},
	{"the caller's memory is not the store's", ownMemory},
	{"a delay is kept by the store's clock", delayed},
	{"an instant is kept as given", atInstant},
	{"an instant that has passed is due at once", atPast},
	{"an expiry becomes the deadline", expiryBecomesDeadline},
	{"a transaction of another driver is refused and nothing stored", foreignTx},
	{"a caller that gave up stored all or nothing", gaveUpEnqueue},
	{"nobody sees half a submission", noHalfSubmission},
	{"another handle sees what was acknowledged", otherHandleSees},
}

func readsBack(e *env) {
	n := task.New{
		ID: e.newID(), Type: beta, Queue: "billing", Input: json.RawMessage(`{"b":2,"a":[1,null,"é"]}`), SchemaVersion: 7,
		Priority: 2, Delay: 5 * time.Second, ExpireAfter: 20 * time.Second, MaxAttempts: 9, MaxRepairs: 3,
		Backoff: 1500 * time.Millisecond, BackoffMax: 17 * time.Minute, Timeout: 42 * time.Second,
		IdempotencyKey: "order-1", ConcurrencyKey: "customer-9", ConcurrencyLimit: 4,
		Labels: map[string]string{"team": "a", "empty": ""}, Metadata: map[string]string{"trace": "x=y", "ключ": "значение"},
	}
	e.enqueue(n)
	now := e.now()
	got := e.is(n.ID, task.Pending, task.WaitDelay)
	e.near("ReadyAt", got.ReadyAt, now.Add(n.Delay))
	e.near("DeadlineAt", got.DeadlineAt, now.Add(n.ExpireAfter))
	e.near("UpdatedAt", got.UpdatedAt, now)
	want := task.Task{
		ID: n.ID, Type: n.Type, Queue: n.Queue, Priority: n.Priority, State: task.Pending, Waiting: task.WaitDelay,
		Input: n.Input, SchemaVersion: n.SchemaVersion, MaxAttempts: n.MaxAttempts, MaxRepairs: n.MaxRepairs,
		Backoff: n.Backoff, BackoffMax: n.BackoffMax, Timeout: n.Timeout, IdempotencyKey: n.IdempotencyKey,
		ConcurrencyKey: n.ConcurrencyKey, ConcurrencyLimit: n.ConcurrencyLimit, Labels: n.Labels, Metadata: n.Metadata,
		ReadyAt: got.ReadyAt, DeadlineAt: got.DeadlineAt, CreatedAt: n.ID.Time(), UpdatedAt: got.UpdatedAt, Epoch: got.Epoch,
	}
	e.equal("the task", got, want)

	rows := e.dispatch(n.ID)
	e.equal("its dispatch rows", rows, []store.DispatchRow{{
		Task: n.ID, Queue: "billing", Type: beta, Priority: 2, AvailableAt: got.ReadyAt, ConcurrencyKey: "customer-9",
	}})
}

func newTaskIsReady(e *env) {
	id := e.one()
	t := e.is(id, task.Ready, task.WaitNone)
	e.near("ReadyAt", t.ReadyAt, e.now())
	e.dueAt(id, e.now())
	if t.RemainingDeps != 0 || t.AttemptNo != 0 || t.AttemptCount != 0 || !t.LeaseID.IsZero() || !t.StartedAt.IsZero() || !t.FinishedAt.IsZero() {
		e.Errorf("a new task looks used: %s", show(t))
	}
}

func enqueueThousand(e *env) {
	drafts := e.drafts(1000)
	for i := range drafts {
		drafts[i].Input = json.RawMessage(fmt.Sprint(i))
	}
	ids := e.enqueue(drafts...)
	for i, t := range e.tasks(ids...) {
		e.equal("the input of a task", string(t.Input), fmt.Sprint(i))
	}
	if got := e.submit(store.Submission{}); len(got) != 0 {
		e.Errorf("an empty submission answered %v", got)
	}
}

func bigInput(e *env) {
	big := `{"text":"` + strings.Repeat("0123456789ABCDEF", 200<<10/16) + `"}`
	id := e.one(input(big))
	if got := e.task(id); string(got.Input) != big {
		e.Errorf("an input of %d bytes came back with %d", len(big), len(got.Input))
	}
	if got := e.a.take(id); string(got.Task.Input) != big {
		e.Errorf("the claim handed out %d bytes of an input of %d", len(got.Task.Input), len(big))
	}
}

func jsonKeepsText(e *env) {
	const raw = `{ "n": 12345678901234567890.000, "e": 1E+400, "s": "\u00e9<>&", "b":1, "a":2 }`
	id := e.one(input(raw))
	e.equal("the input", string(e.task(id).Input), raw)
	c := e.a.take(id)
	f := success(c)
	f.Output = json.RawMessage(raw)
	e.finish(f)
	e.equal("the output", string(e.task(id).Output), raw)
}

func emptyMaps(e *env) {
	n := e.draft()
	n.Labels, n.Metadata = map[string]string{}, map[string]string{}
	e.enqueue(n)
	if t := e.task(n.ID); t.Labels != nil || t.Metadata != nil {
		e.Errorf("empty maps read as %#v and %#v, want nil", t.Labels, t.Metadata)
	}
}

func ownMemory(e *env) {
	n := e.draft(labels("team", "a"))
	n.Input = json.RawMessage(`{"n":1}`)
	n.Metadata = map[string]string{"k": "v"}
	e.enqueue(n)
	spoil := func(raw json.RawMessage, maps ...map[string]string) {
		copy(raw, bytes.Repeat([]byte("x"), len(raw)))
		for _, m := range maps {
			m["spoilt"] = "yes"
		}
	}
	spoil(n.Input, n.Labels, n.Metadata)
	for range 2 {
		t := e.task(n.ID)
		e.equal("the input", string(t.Input), `{"n":1}`)
		e.equal("the labels", t.Labels, map[string]string{"team": "a"})
		e.equal("the metadata", t.Metadata, map[string]string{"k": "v"})
		spoil(t.Input, t.Labels, t.Metadata)
	}
	c := e.a.take(n.ID)
	spoil(c.Task.Input, c.Task.Labels)
	f := dead(c)
	e.finish(f)
	f.Error.Message, f.Decision.Reason.Text = "spoilt", "spoilt"
	h := e.history(n.ID)
	e.equal("the input after a claim", string(h.Task.Input), `{"n":1}`)
	e.equal("the error", h.Task.Error.Message, "no luck")
	e.equal("the error of the attempt", h.Attempts[0].Error.Message, "no luck")
	e.equal("the reason", h.Decisions[0].Reason.Text, "the test says so")
}

func delayed(e *env) {
	id := e.one(after(5 * time.Second))
	due := e.now().Add(5 * time.Second)
	e.is(id, task.Pending, task.WaitDelay)
	e.dueAt(id, due)
	e.pass(4 * time.Second)
	e.a.getsNothing()
	e.is(id, task.Pending, task.WaitDelay)
	e.pass(2 * time.Second)
	t := e.is(id, task.Ready, task.WaitNone)
	e.near("ReadyAt", t.ReadyAt, due)
	e.a.gets([]task.ID{id})
}

func atInstant(e *env) {
	wish := time.Now().Add(7 * time.Second).Add(123456789).In(time.FixedZone("home", 5*3600))
	id := e.one(at(wish), after(time.Hour))
	t := e.is(id, task.Pending, task.WaitDelay)
	if want := wish.UTC().Truncate(time.Microsecond); !t.ReadyAt.Equal(want) {
		e.Errorf("ReadyAt = %v, want %v: At counts, not Delay", t.ReadyAt, want)
	}
	e.a.getsNothing()
	e.pass(8 * time.Second)
	e.a.gets([]task.ID{id})
}

func atPast(e *env) {
	id := e.one(at(time.Now().Add(-time.Hour)))
	e.is(id, task.Ready, task.WaitNone)
	e.a.gets([]task.ID{id})
}

func expiryBecomesDeadline(e *env) {
	id := e.one(expires(10 * time.Second))
	want := e.now().Add(10 * time.Second)
	e.near("DeadlineAt", e.task(id).DeadlineAt, want)
	e.pass(4 * time.Second)
	c := e.a.take(id)
	e.nearly("the time left", c.TimeLeft, 6*time.Second)
	if other := e.a.take(e.one()); other.TimeLeft != 0 {
		e.Errorf("a task without a deadline has %v left, want 0", other.TimeLeft)
	}
}

// foreign is a transaction of a driver that no store knows.
type foreign struct{}

func (foreign) Driver() string { return "foreign" }
func (foreign) Handle() any    { return nil }

func foreignTx(e *env) {
	e.unchanged("an enqueue with a foreign transaction", func() {
		_, err := e.s.Enqueue(e.Context(), e.ns, foreign{}, store.Submission{Tasks: e.drafts(3)})
		e.wantErr("Enqueue", err, store.ErrForeignTx)
	})
}

func gaveUpEnqueue(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	drafts := e.drafts(10)
	got, err := e.s.Enqueue(ctx, e.ns, nil, store.Submission{Tasks: drafts})
	e.allOrNothing(drafts, got, err)
}

// allOrNothing compares what a submit answered with what is stored.
func (e *env) allOrNothing(drafts []task.New, got []store.Enqueued, err error) {
	e.Helper()
	var ids []task.ID
	for _, n := range drafts {
		ids = append(ids, n.ID)
	}
	stored, readErr := e.s.Tasks(e.Context(), e.ns, ids...)
	switch {
	case readErr != nil:
		e.Errorf("Tasks: %v", readErr)
	case err == nil && (len(got) != len(ids) || len(stored) != len(ids)):
		e.Errorf("Enqueue of %d tasks was acknowledged with %d answers and stored %d", len(ids), len(got), len(stored))
	case err != nil && !isUnknown(err) && len(stored) != 0:
		e.Errorf("Enqueue failed with %v and stored %d tasks", err, len(stored))
	case len(stored) != 0 && len(stored) != len(ids):
		e.Errorf("Enqueue of %d tasks stored %d", len(ids), len(stored))
	}
}

func noHalfSubmission(e *env) {
	const size, times = 20, 10
	other := e.second()
	look := func() {
		for range times {
			snap, err := other.Snapshot(e.Context(), e.ns)
			if err != nil {
				e.Errorf("Snapshot: %v", err)
				return
			}
			if len(snap.Tasks)%size != 0 || len(snap.Dispatch) != len(snap.Tasks) {
				e.Errorf("a snapshot shows %d tasks and %d dispatch rows of submissions of %d", len(snap.Tasks), len(snap.Dispatch), size)
			}
		}
	}
	put := func() {
		for range times {
			if _, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: e.drafts(size)}); err != nil {
				e.Errorf("Enqueue: %v", err)
			}
		}
	}
	e.together(put, put, look)
}

func otherHandleSees(e *env) {
	other := e.second()
	id := e.one()
	got, err := other.Tasks(e.Context(), e.ns, id)
	if err != nil || len(got) != 1 || got[0].State != task.Ready {
		e.Fatalf("another handle reads %v, %v", got, err)
	}
	r := e.a.request()
	claimed, err := other.Claim(e.Context(), e.ns, r)
	if err != nil || len(claimed.Tasks) != 1 {
		e.Fatalf("another handle claims %d tasks, %v", len(claimed.Tasks), err)
	}
	e.finish(success(claimed.Tasks[0]))
	got, err = other.Tasks(e.Context(), e.ns, id)
	if err != nil || len(got) != 1 || got[0].State != task.Succeeded {
		e.Fatalf("another handle reads %v, %v", got, err)
	}
}
