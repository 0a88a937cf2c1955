package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

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

// odd are names that a store must treat as any other.
var odd = []string{
	"'; DROP TABLE tasks; --", `"quoted"`, "%", "_", "a%b", "*", "?", ":x", "$1", "@p", `back\slash`, "tab\tand\nline",
	" spaces ", "日本語", "e\u0301", "🦉", "null", "0", "-1", "{}", "[]", "a=b&c=d",
}

// expiresOnly lets the lease of one task run out and expects a reap to
// touch nothing else.
func (e *env) expiresOnly(id task.ID) {
	e.Helper()
	got := e.reapExpired()
	e.check(len(got.Reaped) == 1 && got.Reaped[0].Task == id && len(got.Expired) == 0, "reaped %v and ended %v, want only %v reaped", got.Reaped, got.Expired, id)
}
