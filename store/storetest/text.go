package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// textCases test texts used in an index or as a key.
var textCases = []testCase{
	{"every text that is indexed may have 255 bytes, all of them at once", func(e *env) {
		most := longest()
		name := "a.b." + strings.Repeat("c", task.MaxKey-len("a.b..v1")) + ".v1"
		n := e.draft(typed(name), queue(most))
		n.IdempotencyKey, n.ConcurrencyKey, n.ConcurrencyLimit = most, most, 1
		n.Labels, n.FairBy, n.RateLimit = map[string]string{most: most}, most, task.Rate{Key: most, Starts: 1, Per: time.Second, Burst: 1}
		id := e.enqueue(n)[0]
		e.equal("the labels", e.task(id).Labels, n.Labels)
		e.operate(store.PauseQueue{Queue: most})
		e.operate(store.PauseType{Type: name})
		e.operate(store.PauseQueue{Queue: task.RepairQueue(name)})
		c := e.a.take(e.one())
		e.record(wait(c, most, most, 0))
		e.record(checkpoint(c, most, `1`))
		e.operate(signalOf(c.Task.ID, most, most, `1`))
		e.submit(store.Submission{Job: &task.NewJob{ID: e.newID(), Name: most, IdempotencyKey: most}, Tasks: []task.New{nodeOf(e, "a")}})
	}},
	{"a text that is too long to be indexed, or no text, is refused in every place", func(e *env) {
		for _, bad := range []string{longest() + "x", "a\x00b", "a\xffb"} {
			e.refusesText(bad)
		}
	}},
}

// longest returns an indexed text of maximum length that cannot be compressed.
func longest() string {
	var b strings.Builder
	for i := 0; b.Len() < task.MaxKey; i++ {
		fmt.Fprintf(&b, "%x", (i+1)*2654435761)
	}
	return b.String()[:task.MaxKey]
}

// nodeOf returns a task of a job.
func nodeOf(e *env, name string) task.New {
	n := e.draft()
	n.Node = name
	return n
}

// refusesText expects the store to refuse a text in every indexed place and to store nothing of the request.
func (e *env) refusesText(bad string) {
	e.Helper()
	c := e.a.take(e.one())
	news := map[string]func(n *task.New){
		"queue":           func(n *task.New) { n.Queue = bad },
		"type":            func(n *task.New) { n.Type = bad },
		"concurrency key": func(n *task.New) { n.ConcurrencyKey, n.ConcurrencyLimit = bad, 1 },
		"fair by":         func(n *task.New) { n.FairBy = bad },
		"key of a rate":   func(n *task.New) { n.RateLimit = task.Rate{Key: bad, Starts: 1, Per: time.Second, Burst: 1} },
		"rate":            func(n *task.New) { n.RateLimit = task.Rate{Key: "k"} },
		"key of a label":  func(n *task.New) { n.Labels = map[string]string{bad: "v"} },
		"label":           func(n *task.New) { n.Labels = map[string]string{"k": bad} },
	}
	e.unchanged(fmt.Sprintf("%.5q", bad), func() {
		for what, change := range news {
			n := e.draft()
			change(&n)
			_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{e.draft(), n}})
			e.wantErr(what, err, store.ErrRefused)
			f := decompose(c, task.JoinRerun, e.draft(), n)
			e.finishRefused(f, store.ErrRefused)
			e.recordRefused(start(c, "start", n), store.ErrRefused)
		}
		n := e.draft()
		n.IdempotencyKey = bad
		_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
		e.wantErr("idempotency key", err, store.ErrRefused)
		for what, j := range map[string]task.NewJob{"job": {Name: bad}, "key of a job": {Name: "j", IdempotencyKey: bad}} {
			j.ID = e.newID()
			_, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Job: &j, Tasks: []task.New{nodeOf(e, "a")}})
			e.wantErr(what, err, store.ErrRefused)
		}
		e.recordRefused(step(c, bad, `1`), store.ErrRefused)
		e.recordRefused(wait(c, "w", bad, 0), store.ErrRefused)
		e.recordRefused(checkpoint(c, bad, `1`), store.ErrRefused)
		for _, cmd := range []store.Command{
			signalOf(c.Task.ID, bad, "k", `1`), signalOf(c.Task.ID, "s", bad, `1`),
			store.PauseQueue{Queue: bad},
			store.ResumeQueue{Queue: bad},
			store.PauseType{Type: bad},
			store.ResumeType{Type: bad},
			store.RerunTask{Task: c.Task.ID, New: task.New{ID: e.newID(), Type: alpha, Queue: bad}},
		} {
			e.commandRefused(cmd, store.ErrRefused)
		}
	})
	e.finish(success(c))
}
