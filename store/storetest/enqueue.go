package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// everyOption returns options without zero values.
func everyOption() (o task.Options) {
	for v, i := reflect.ValueOf(&o).Elem(), 0; i < v.NumField(); i++ {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("option " + v.Type().Field(i).Name)
		case reflect.Struct:
			f.Set(reflect.ValueOf(task.Rate{Key: "partner", Starts: 100, Per: time.Minute, Burst: 7}))
		default:
			f.Set(reflect.ValueOf(3 + i).Convert(f.Type()))
		}
	}
	return o
}

var enqueueCases = []testCase{
	{"a task reads back as it was submitted", func(e *env) {
		base := task.New{
			ID: e.newID(), Type: beta, Queue: "billing", Input: json.RawMessage(`{"b":2,"a":[1,null,"é"]}`), SchemaVersion: 7,
			Priority: 2, Delay: 5 * time.Second, ExpireAfter: 20 * time.Second, MaxAttempts: 9, MaxRepairs: 3,
			Backoff: 1500 * time.Millisecond, BackoffMax: 17 * time.Minute, Timeout: 42 * time.Second, Options: everyOption(), AllowFailure: true,
			ConcurrencyKey: "customer-9", ConcurrencyLimit: 4,
		}
		labelled := base
		labelled.ID, labelled.IdempotencyKey = e.newID(), "order-1"
		labelled.Redact = []string{"input/card/number", "*/**/*token*"}
		labelled.Expire = []task.Expiry{{Path: "card/number", After: time.Hour}}
		labelled.Labels, labelled.Metadata = map[string]string{"team": "a", "empty": ""}, map[string]string{"trace": "x=y", "ключ": "значение"}
		e.enqueue(e.draft()) // its options are the usual ones
		for _, n := range []task.New{base, labelled} {
			e.enqueue(n)
			now := e.now()
			got := e.is(n.ID, task.Pending, task.WaitDelay)
			e.near("ReadyAt", got.ReadyAt, now.Add(n.Delay))
			e.near("DeadlineAt", got.DeadlineAt, now.Add(n.ExpireAfter))
			e.near("UpdatedAt", got.UpdatedAt, now)
			want := n.Task()
			want.State, want.Waiting, want.Epoch = task.Pending, task.WaitDelay, got.Epoch
			want.ReadyAt, want.DeadlineAt, want.CreatedAt, want.UpdatedAt = got.ReadyAt, got.DeadlineAt, n.ID.Time(), got.UpdatedAt
			e.equal("the task", got, want)

			e.equal("its dispatch rows", e.dispatch(n.ID), []store.DispatchRow{{
				Task: n.ID, Queue: "billing", Type: beta, Group: store.LaneGroup(n.Options, n.Labels), Priority: 2, AvailableAt: got.ReadyAt, ConcurrencyKey: "customer-9",
			}})
		}
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
		e.a.gets([]task.ID{e.one(at(time.Now().Add(-time.Hour)))}) // an instant in the past
		e.pass(8 * time.Second)
		e.a.gets([]task.ID{id})
	}},
	{"an expiry becomes the deadline", func(e *env) {
		id := e.one(expires(10 * time.Second))
		e.near("DeadlineAt", e.task(id).DeadlineAt, e.now().Add(10*time.Second))
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

var valueCases = []testCase{
	{"odd names are names", func(e *env) {
		var ids []task.ID
		for i, name := range odd {
			n := e.draft(queue(name), once(name), key(name, 1), labels("k", name, name, "v"), input(fmt.Sprintf("%q", name)))
			n.Metadata = map[string]string{name: name}
			e.enqueue(n)
			ids = append(ids, n.ID)
			got := e.task(n.ID)
			e.check(got.Queue == name && got.IdempotencyKey == name && got.ConcurrencyKey == name && got.Labels["k"] == name &&
				got.Labels[name] == "v" && got.Metadata[name] == name && string(got.Input) == string(n.Input), "%q came back changed: %s", name, show(got))
			e.existing(e.draft(once(name)), n.ID)
			c := e.a.gets(ids[i:], queues(map[string]int{name: 1}))[0]
			e.record(step(c, name, fmt.Sprintf("%q", name)))
			e.equal("the step", e.steps(n.ID)[0].Name, name)
			f := dead(c)
			f.Error.Message = name
			f.StepsRun = []string{name}
			e.finish(f)
			e.equal("the message", e.task(n.ID).Error.Message, name)
			e.equal("the steps run", e.lastAttempt(n.ID).StepsRun, []string{name})
			e.operate(store.RetryTask{Audit: store.Audit{By: name, Reason: name}, Task: n.ID})
			a := e.history(n.ID).Audit
			e.check(len(a) == 1 && a[0].Actor == name && a[0].Reason == name, "%q came back changed from the audit: %+v", name, a)
		}
		for i, name := range odd {
			e.lists(store.Filter{Queue: name}, ids[i])
			e.lists(store.Filter{Labels: map[string]string{"k": name}}, ids[i])
			e.lists(store.Filter{Labels: map[string]string{name: "v"}}, ids[i])
		}
	}},
	{"names differ by case and by accents", func(e *env) {
		names := []string{"key", "KEY", "Key", "k\u00e9y", "ke\u0301y", "key "}
		var ids []task.ID
		for _, name := range names {
			ids = append(ids, e.one(queue(name), once(name), key(name, 1), labels("k", name)))
		}
		for i, name := range names {
			e.lists(store.Filter{Queue: name}, ids[i])
			e.lists(store.Filter{Labels: map[string]string{"k": name}}, ids[i])
		}
		e.equal("the tasks claimed", len(e.a.claim().Tasks), len(names))
	}},
	{"JSON comes back byte by byte", func(e *env) {
		for _, raw := range []string{
			`null`,
			`{ "n": 12345678901234567890.000, "e": 1E+400, "s": "\u00e9<>&", "b":1, "a":2 }`,
			`"` + strings.Repeat("0123456789ABCDEF", 200<<10/16) + `"`,
		} {
			same := func(what string, got json.RawMessage) {
				e.Helper()
				e.check(string(got) == raw, "%s of %d bytes came back with %d: %.100s", what, len(raw), len(got), got)
			}
			id := e.one(input(raw))
			same("an input", e.task(id).Input)
			c := e.a.take(id)
			same("a claimed input", c.Task.Input)
			same("a recorded value", e.record(step(c, "s", raw)).Step.Value)
			same("a stored value", e.steps(id)[0].Value)
			e.finish(retry(c, 0))
			c = e.a.take(id)
			same("a value handed out", c.Steps[0].Value)
			f := success(c)
			f.Output = json.RawMessage(raw)
			e.finish(f)
			same("an output", e.task(id).Output)
		}
	}},
	{"numbers keep their limits", func(e *env) {
		n := e.draft(priority(task.MaxPriority), attempts(math.MaxInt32), key("k", math.MaxInt32))
		n.SchemaVersion, n.MaxRepairs = math.MaxInt32, math.MaxInt32
		const longest = time.Duration(math.MaxInt64 / 1000 * 1000) // stores keep microseconds
		n.Backoff, n.BackoffMax, n.Timeout = time.Microsecond, longest, longest
		e.enqueue(n)
		got := e.task(n.ID)
		e.check(got.Priority == n.Priority && got.MaxAttempts == n.MaxAttempts && got.MaxRepairs == n.MaxRepairs && got.SchemaVersion == n.SchemaVersion &&
			got.Backoff == n.Backoff && got.BackoffMax == n.BackoffMax && got.Timeout == n.Timeout && got.ConcurrencyLimit == n.ConcurrencyLimit, "limits came back changed: %s", show(got))
		c := e.a.take(n.ID)
		for _, p := range []task.Progress{{Current: 0.1, Total: 0.3}, {Current: math.MaxFloat64, Total: math.SmallestNonzeroFloat64}, {}, {Current: -1}} {
			e.record(store.Record{Lease: c.Lease, Progress: &p})
			e.equal("the progress", e.task(n.ID).Progress, &p)
		}
		g := e.graph("a")
		g.sub.Job.Budget = task.Budget{MaxCost: math.MaxInt64, MaxTotalAttempts: math.MaxInt32}
		g.submit()
		e.equal("the budget", g.read().Budget, g.sub.Job.Budget)
	}},
	{"instants far away are kept", func(e *env) {
		far := time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
		late := e.one(at(far), expires(100*365*24*time.Hour))
		e.equal("ReadyAt", e.task(late).ReadyAt, far)
		early := e.one(at(time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC)))
		e.a.gets([]task.ID{early})
		e.is(late, task.Pending, task.WaitDelay)
		e.expiresOnly(early)
	}},
}

var enqueueAgainCases = []testCase{
	{"a taken idempotency key returns the existing task in every state", func(e *env) {
		states := map[task.State]func(task.ID){
			task.Pending:   func(id task.ID) { e.finish(retry(e.a.take(id), time.Minute)) },
			task.Ready:     func(task.ID) {},
			task.Running:   func(id task.ID) { e.a.take(id) },
			task.Succeeded: func(id task.ID) { e.succeed(id) },
			task.Failed:    func(id task.ID) { e.fail(id) },
			task.Cancelled: func(id task.ID) { e.operate(cancelOf(id)) },
			task.Blocked:   func(id task.ID) { e.blockTask(id) },
		}
		for state, reach := range states {
			name := "key-" + string(state)
			id := e.one(once(name))
			reach(id)
			e.equal("the state", e.task(id).State, state)
			e.existing(e.draft(once(name), input(`"other"`), queue("other"), priority(1)), id)
		}
	}},
	{"duplicates inside one submission return the first", func(e *env) {
		drafts := e.drafts(3, once("same"))
		drafts[1].Input = json.RawMessage(`"second"`)
		got := e.submit(store.Submission{Tasks: drafts})
		e.equal("the answers", got, []store.Enqueued{
			{ID: drafts[0].ID, Disposition: store.DispositionCreated},
			{ID: drafts[0].ID, Disposition: store.DispositionExisting},
			{ID: drafts[0].ID, Disposition: store.DispositionExisting},
		})
		e.equal("the tasks stored", len(e.snap().Tasks), 1)
		e.equal("the answers to the same call again", e.submit(store.Submission{Tasks: drafts}), got)
		e.a.gets([]task.ID{drafts[0].ID})
	}},
	{"new and existing tasks mix in the order submitted", func(e *env) {
		old := e.one(once("old"))
		drafts := []task.New{e.draft(), e.draft(once("old")), e.draft(once("new")), e.draft(once("old")), e.draft()}
		got := e.submit(store.Submission{Tasks: drafts})
		want := []store.Enqueued{
			{ID: drafts[0].ID, Disposition: store.DispositionCreated},
			{ID: old, Disposition: store.DispositionExisting},
			{ID: drafts[2].ID, Disposition: store.DispositionCreated},
			{ID: old, Disposition: store.DispositionExisting},
			{ID: drafts[4].ID, Disposition: store.DispositionCreated},
		}
		e.equal("the answers", got, want)
		e.equal("the tasks stored", len(e.snap().Tasks), 4)
	}},
	{"an idempotency key belongs to one task type", func(e *env) {
		e.one(once("k"), typed(alpha))
		id := e.one(once("k"), typed(beta))
		e.existing(e.draft(once("k"), typed(beta)), id)
	}},
	{"the same submission again writes nothing, even after its tasks ended", func(e *env) {
		sub := store.Submission{Tasks: append(e.drafts(4), e.draft(once("k")), e.draft(after(time.Minute)))}
		plain := store.Submission{Tasks: e.drafts(2)}
		first, plainFirst := e.submit(sub), e.submit(plain)
		again := func() {
			e.Helper()
			e.unchanged("the same submission", func() { e.equal("the answers", e.submit(sub), first) })
			e.unchanged("the same submission of plain tasks", func() { e.equal("the answers", e.submit(plain), plainFirst) })
		}
		again()
		e.succeed(plainFirst[0].ID)
		e.fail(plainFirst[1].ID)
		e.succeed(first[0].ID)
		e.fail(first[1].ID)
		c := e.a.take(first[2].ID)
		again()
		e.a.gets([]task.ID{first[3].ID, first[4].ID})
		e.finish(success(c))
	}},
	{"the same job again writes nothing", func(e *env) {
		g := e.job("a", "b: a", "c: a b")
		e.succeed(g.id("a"))
		e.unchanged("the same job", func() {
			for i, q := range e.submit(g.sub) {
				e.check(q.ID == g.sub.Tasks[i].ID && q.Disposition == store.DispositionCreated, "Enqueue answered %v for %v", q, g.sub.Tasks[i].ID)
			}
		})
	}},
}

// foreign is a transaction of an unsupported driver.
type foreign struct{}

func (foreign) Driver() string { return "foreign" }
func (foreign) Handle() any    { return nil }

// existing submits a draft whose key is taken and expects the existing task.
func (e *env) existing(n task.New, want task.ID) {
	e.Helper()
	e.unchanged("an enqueue with a taken key", func() {
		got := e.submit(store.Submission{Tasks: []task.New{n}})[0]
		e.check(got.ID == want && got.Disposition == store.DispositionExisting, "Enqueue answered %v, want the existing %v", got, want)
	})
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }

// odd lists names without special meaning to a store.
var odd = []string{
	"'; DROP TABLE tasks; --", `"quoted"`, "%", "_", "a%b", "*", "?", ":x", "$1", "@p", `back\slash`, "tab\tand\nline",
	" spaces ", "日本語", "e\u0301", "🦉", "null", "0", "-1", "{}", "[]", "a=b&c=d",
}

// expiresOnly lets the lease of one task expire and expects a reap to change no other task.
func (e *env) expiresOnly(id task.ID) {
	e.Helper()
	got := e.reapExpired()
	e.check(len(got.Reaped) == 1 && got.Reaped[0].Task == id && len(got.Expired) == 0, "reaped %v and ended %v, want only %v reaped", got.Reaped, got.Expired, id)
}
