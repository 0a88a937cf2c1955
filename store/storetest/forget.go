package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// secret occurs in every value and text of a task of secretive.
const secret = "4929-1234"

func forgetOf(id task.ID) store.ForgetTask { return store.ForgetTask{Audit: admin, Task: id} }

func wrongWith(f store.Finish) store.Finish {
	f.Error.Message, f.Error.Code, f.Error.Stack = "card "+secret+" was refused", secret, secret
	f.Decision.Reason.Text, f.Decision.Reason.Change = "card "+secret, secret
	f.Decision.Reason.Evidence = map[string]any{"card": secret}
	f.Decision.Reason.Fallback = secret
	f.Handler, f.RouteReason, f.StepsRun, f.Notes = "b", secret, []string{"one"}, map[string]string{"card": secret}
	return f
}

// secretive makes a task that has the secret in every kind of row.
func (e *env) secretive(end func(store.Claimed) store.Finish, opts ...opt) task.ID {
	e.Helper()
	long := `"` + fmt.Sprintf("%0*d", 100<<10, 7) + secret + `"`
	opts = append([]opt{labels("subject", "42"), input(long), func(n *task.New) { n.Metadata = map[string]string{"card": secret} }}, opts...)
	id := e.one(opts...)
	quoted := `"` + secret + `"`
	e.operate(signalOf(id, "card", "k", quoted))
	c := e.a.take(id)
	e.record(wait(c, "card", "card", 0))
	one := step(c, "one", quoted)
	one.Artifacts = []store.NewArtifact{artifact(e, "report.csv", e.blob("report of "+id.String()), 0)}
	one.Events = eventRows(e, 1, 2, 3)
	for i := range one.Events {
		one.Events[i].Body = json.RawMessage(`{"card":` + quoted + `}`)
	}
	e.record(one)
	e.record(checkpoint(c, "cursor", quoted))
	e.record(store.Record{Lease: c.Lease, Progress: &task.Progress{Current: 1, Message: secret}})
	bad := try(c, "two", 1)
	bad.Step.Error.Message, bad.Step.Error.Stack = secret, secret
	e.record(bad)
	e.finish(wrongWith(retry(c, 0)))
	c = e.a.take(id)
	e.finish(end(c))
	return id
}

func secretSuccess(c store.Claimed) store.Finish {
	f := success(c)
	f.Output = json.RawMessage(`"` + secret + `"`)
	return f
}

func secretFailure(c store.Claimed) store.Finish { return wrongWith(dead(c)) }

// told returns the rows of a namespace that contain the secret.
func (e *env) told(ids ...task.ID) (rows []string) {
	e.Helper()
	has := func(what string, v any) {
		b, err := json.Marshal(v)
		e.require(err == nil, "%v", err)
		if bytes.Contains(b, []byte(secret)) {
			rows = append(rows, what)
		}
	}
	snap := e.snap()
	has("the snapshot", snap)
	for _, id := range ids {
		has("the history", e.history(id))
		if e.s.Capabilities().Has(store.CanKeepEvents) {
			has("the events", e.events(id, 0, 0))
		}
	}
	return rows
}

// redactCases test that the masked paths are recorded with the value.
var redactCases = []testCase{
	{"paths are kept with a task and with its steps, in the first attempt and later", func(e *env) {
		paths := []string{"input/card", "*/**/*token*"}
		id := e.one(func(n *task.New) { n.Redact = paths })
		e.equal("of the task", e.task(id).Redact, paths)
		for _, name := range []string{"a", "b"} {
			c := e.a.take(id)
			e.equal("of the claimed task", c.Task.Redact, paths)
			masked := step(c, name, `{"pin":1}`)
			masked.Step.Redact = []string{"pin"}
			e.recordAll(masked, step(c, name+" plain", `1`))
			e.finish(retry(c, 0))
		}
		var got []string
		for _, s := range e.steps(id) {
			got = append(got, fmt.Sprint(s.Name, s.Redact))
		}
		slices.Sort(got)
		e.equal("of the steps", got, []string{"a plain[]", "a[pin]", "b plain[]", "b[pin]"})
		c := e.a.take(id)
		for _, s := range c.Steps {
			e.check(len(s.Redact) == 0 == strings.HasSuffix(s.Name, "plain"), "the step %q was claimed with %q", s.Name, s.Redact)
		}
		e.finish(dead(c))
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: id, New: n, StepsBelow: 1})
		e.remember(n.ID)
		for _, s := range e.steps(n.ID) {
			e.check(len(s.Redact) == 0 == strings.HasSuffix(s.Name, "plain"), "the step %q was taken over with %q", s.Name, s.Redact)
		}
	}},
}

var forgetCases = []testCase{
	{"a forgotten task says nothing any more, and its history stays", func(e *env) {
		for name, end := range map[string]func(store.Claimed) store.Finish{"succeeded": secretSuccess, "failed": secretFailure} {
			e := e.in("forget_" + name)
			id := e.secretive(end)
			kept := e.one(input(`"kept"`), labels("subject", "42"))
			before := e.history(id)
			e.check(len(e.told(id)) == 3, "the secret is in %v only", e.told(id))
			e.equal("the answer", e.operate(forgetOf(id)), store.CommandResult{State: before.Task.State})
			e.check(len(e.told(id)) == 0, "of a task that %s the secret is in %v", name, e.told(id))
			e.equal("the size of its values", e.values(id), 0)
			h := e.history(id)
			e.check(h.Task.Forgotten && h.Task.ValuesDropped && h.Task.State == before.Task.State, "the task is %s", show(h.Task))
			e.equal("its labels", h.Task.Labels, before.Task.Labels)
			e.check(len(h.Attempts) == len(before.Attempts) && len(h.Steps) == len(before.Steps) && len(h.Decisions) == len(before.Decisions) &&
				len(h.Signals) == len(before.Signals) && len(h.Artifacts) == 0 && len(h.Audit) == len(before.Audit)+1, "its history is not whole: %+v", h)
			first := h.Attempts[0]
			e.check(first.Error.Kind == before.Attempts[0].Error.Kind && len(first.StepsRun) == 1, "the attempt is %+v", first)
			e.equal("the audit", h.Audit[len(h.Audit)-1].Verb, "forget")
			e.equal("the blobs in use", e.live(), 0)
			e.equal("the input of another task", string(e.task(kept).Input), `"kept"`)
			e.close()
		}
	}},
	{"what was forgotten is not forgotten again", func(e *env) {
		id := e.secretive(secretSuccess)
		e.operate(forgetOf(id))
		e.unchanged("a second forget", func() {
			e.equal("the answer", e.operate(forgetOf(id)), store.CommandResult{State: task.Succeeded, Existing: true})
		})
	}},
	{"what has not ended is not forgotten", func(e *env) {
		ready, running, blocked := e.one(), e.one(), e.one()
		e.blockTask(blocked)
		e.a.claim(only(running), claimTTL(time.Hour))
		for _, id := range []task.ID{ready, running, blocked} {
			e.contains("the refusal", e.commandRefused(forgetOf(id), store.ErrState), "cancel it first")
		}
		e.commandRefused(forgetOf(e.newID()), store.ErrNotFound)
	}},
	{"what was forgotten is neither retried nor rerun", func(e *env) {
		id := e.secretive(secretFailure)
		e.operate(forgetOf(id))
		e.contains("the refusal", e.commandRefused(retryOf(id), store.ErrState), "forgotten")
		e.contains("the refusal", e.commandRefused(store.RerunTask{Audit: admin, Task: id, New: e.draft()}, store.ErrState), "forgotten")
	}},
	{"those who waited for it forget its error", func(e *env) {
		parent := e.one()
		children := e.decomposed(parent, task.JoinRerun, 1)
		e.finish(secretFailure(e.a.take(children[0])))
		e.succeed(parent)
		e.check(len(e.told(parent)) == 2, "the parent has the error of its child: %v", e.told(parent))
		e.operate(forgetOf(children[0]))
		e.check(len(e.told(parent)) == 0, "the secret is in %v", e.told(parent))
		e.equal("the kind that the parent keeps", e.history(parent).Needs[0].EndedError.Kind, task.KindHandler)
	}},
	{"a shared blob stays until the last task that names it is forgotten", func(e *env) {
		b := e.blob("shared")
		one, two := e.one(valued(b)), e.one(valued(b))
		e.succeed(one, two)
		e.operate(forgetOf(one))
		e.equal("the blobs in use", e.live(), 1)
		e.collects()
		e.operate(forgetOf(two))
		e.collects(b)
	}},
	{"the metadata of a job goes with its last task", func(e *env) {
		g := e.graph("a", "b")
		meta := map[string]string{"case": secret, task.MetaParams: secret, task.MetaPrefix + "file": "/p.yaml"}
		g.sub.Job.Meta = meta
		g.submit()
		e.succeed(g.id("a"), g.id("b"))
		e.operate(forgetOf(g.id("b")))
		e.equal("the metadata", g.read().Meta, meta)
		e.operate(forgetOf(g.id("a")))
		e.equal("the metadata", g.read().Meta, map[string]string{task.MetaPrefix + "file": "/p.yaml"})
	}},
	{"the metadata of a job goes also when its last two tasks are forgotten at once", func(e *env) {
		for range 10 {
			g := e.graph("a", "b")
			g.sub.Job.Meta = map[string]string{"case": secret}
			g.submit()
			e.succeed(g.id("a"), g.id("b"))
			var both sync.WaitGroup
			for _, node := range []string{"a", "b"} {
				id := g.id(node)
				both.Go(func() {
					if _, err := e.s.Operate(e.Context(), e.ns, forgetOf(id)); err != nil {
						e.Errorf("Operate: %v", err)
					}
				})
			}
			both.Wait()
			e.equal("the metadata", len(g.read().Meta), 0)
		}
	}},
	{"what was announced for it, and nothing uses, is deleted", func(e *env) {
		one, other := e.one(), e.one()
		own, others, used := e.uploadFor(one, "own").Blob, e.uploadFor(one, "both").Blob, e.uploadFor(one, "used").Blob
		e.equal("the blob of the same bytes", e.uploadFor(other, "both").Blob, others)
		third := e.one(valued(used))
		e.succeed(one, other, third)
		e.operate(forgetOf(one))
		e.collects(own)
		e.equal("a blob that was announced for another task since", e.blobState(others), task.BlobPending)
		e.equal("a blob that another task uses", e.blobState(used), task.BlobLive)
	}},
	{"more rows than a transaction moves are forgotten", func(e *env) {
		id := e.one()
		c := e.a.claim(only(id), claimTTL(time.Hour)).Tasks[0]
		for i := range fanned {
			e.record(indexed(step(c, fmt.Sprint("s", i), `"`+secret+`"`), i))
		}
		e.finish(success(c))
		e.operate(forgetOf(id))
		e.check(len(e.told(id)) == 0, "the secret is in %v", e.told(id))
		e.equal("the steps", len(e.steps(id)), fanned)
		e.equal("the chores", len(e.snap().Chores), 0)
	}},
	{"many tasks are forgotten with one call", func(e *env) {
		list := e.many(30, input(`"`+strings.Repeat(secret, 5)+`"`))
		e.succeed(list...)
		cmds := mapped(list, func(id task.ID) store.Command { return forgetOf(id) })
		got, err := e.s.Operate(e.Context(), e.ns, cmds...)
		e.require(err == nil, "Operate: %v", err)
		for _, r := range got {
			e.check(r.Err == nil && !r.Existing, "the answer is %+v", r)
		}
		e.check(len(e.told(list...)) == 0, "the secret is in %v", e.told(list...))
	}},
}
