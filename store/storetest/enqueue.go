package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var enqueueCases = []testCase{
	{"a task reads back as it was submitted", func(e *env) {
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
	}},
	{"a new task is ready and has one dispatch row", func(e *env) {
		n := e.draft()
		n.Labels, n.Metadata = map[string]string{}, map[string]string{}
		id := e.enqueue(n)[0]
		t := e.is(id, task.Ready, task.WaitNone)
		e.near("ReadyAt", t.ReadyAt, e.now())
		e.dueAt(id, e.now())
		e.check(t.RemainingDeps == 0 && t.AttemptNo == 0 && t.AttemptCount == 0 && t.LeaseID.IsZero() && t.StartedAt.IsZero() && t.FinishedAt.IsZero(), "a new task looks used: %s", show(t))
		e.check(t.Labels == nil && t.Metadata == nil, "empty maps read as %#v and %#v, want nil", t.Labels, t.Metadata)
	}},
	{"the results come in the order of a thousand tasks", func(e *env) {
		drafts := e.drafts(1000)
		for i := range drafts {
			drafts[i].Input = json.RawMessage(fmt.Sprint(i))
		}
		ids := e.enqueue(drafts...)
		for i, t := range e.tasks(ids...) {
			e.equal("the input of a task", string(t.Input), fmt.Sprint(i))
		}
		e.equal("the answers to an empty submission", len(e.submit(store.Submission{})), 0)
	}},
	{"the store shares no memory with its caller", func(e *env) {
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
	}},
	{"a delay, a retry and a sleep end at their instant, by the store's clock", func(e *env) {
		const d = 5 * time.Second
		for why, enter := range map[task.Waiting]func(id task.ID) task.ID{
			task.WaitDelay: func(task.ID) task.ID { return e.one(after(d)) },
			task.WaitRetry: func(id task.ID) task.ID { e.finish(retry(e.a.take(id), d)); return id },
			task.WaitSleep: func(id task.ID) task.ID { e.finish(suspend(e.a.take(id), e.now().Add(d))); return id },
		} {
			other := e.one()
			id := enter(other)
			due := e.now().Add(d)
			if id != other {
				e.succeed(other)
			}
			e.near("ReadyAt", e.is(id, task.Pending, why).ReadyAt, due)
			e.dueAt(id, due)
			e.pass(4 * time.Second)
			e.a.getsNothing()
			e.is(id, task.Pending, why)
			e.pass(2 * time.Second)
			e.near("ReadyAt when it is due", e.is(id, task.Ready, task.WaitNone).ReadyAt, due)
			e.finish(success(e.a.gets([]task.ID{id})[0]))
		}
	}},
	{"an instant counts before a delay, is kept as given, and is due when it has passed", func(e *env) {
		wish := time.Now().Add(7 * time.Second).Add(123456789).In(time.FixedZone("home", 5*3600))
		id := e.one(at(wish), after(time.Hour))
		t := e.is(id, task.Pending, task.WaitDelay)
		e.equal("ReadyAt, by At and not by Delay", t.ReadyAt, wish.UTC().Truncate(time.Microsecond))
		e.a.gets([]task.ID{e.one(at(time.Now().Add(-time.Hour)))}) // an instant that has passed
		e.pass(8 * time.Second)
		e.a.gets([]task.ID{id})
	}},
	{"an expiry becomes the deadline", func(e *env) {
		id := e.one(expires(10 * time.Second))
		want := e.now().Add(10 * time.Second)
		e.near("DeadlineAt", e.task(id).DeadlineAt, want)
		e.pass(4 * time.Second)
		c := e.a.take(id)
		e.nearly("the time left", c.TimeLeft, 6*time.Second)
		e.equal("the time left without a deadline", e.a.take(e.one()).TimeLeft, time.Duration(0))
	}},
	{"a transaction of another driver is refused and nothing is stored", func(e *env) {
		e.unchanged("an enqueue with a foreign transaction", func() {
			_, err := e.s.Enqueue(e.Context(), e.ns, foreign{}, store.Submission{Tasks: e.drafts(3)})
			e.wantErr("Enqueue", err, store.ErrForeignTx)
		})
	}},
	{"another handle sees what was acknowledged", func(e *env) {
		other := e.second()
		id := e.one()
		got, err := other.Tasks(e.Context(), e.ns, id)
		e.require(err == nil && len(got) == 1 && got[0].State == task.Ready, "another handle reads %v, %v", got, err)
		r := e.a.request()
		claimed, err := other.Claim(e.Context(), e.ns, r)
		e.require(err == nil && len(claimed.Tasks) == 1, "another handle claims %d tasks, %v", len(claimed.Tasks), err)
		e.finish(success(claimed.Tasks[0]))
		got, err = other.Tasks(e.Context(), e.ns, id)
		e.require(err == nil && len(got) == 1 && got[0].State == task.Succeeded, "another handle reads %v, %v", got, err)
	}},
}

// foreign is a transaction of a driver that no store knows.
type foreign struct{}

func (foreign) Driver() string { return "foreign" }
func (foreign) Handle() any    { return nil }
