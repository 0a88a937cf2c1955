package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
)

var readWorkerCases = []testCase{
	{"workers are listed with what they announced", func(e *env) {
		w := e.stranger("z-billing")
		e.announce(w, "host:7", alpha, beta)
		seen := e.now()
		e.pass(time.Second)
		got := e.workerOf(w)
		e.near("LastSeen", got.LastSeen, seen)
		got.LastSeen = time.Time{}
		e.equal("the worker", got, store.WorkerStatus{
			WorkerInfo: store.WorkerInfo{ID: w.id, Name: "host:7", TTL: ttl, Types: []string{alpha, beta}},
		})
		all := e.allWorkers()
		e.check(len(all) == 4 && slices.IsSortedFunc(all, func(a, b store.WorkerStatus) int { return strings.Compare(string(a.ID), string(b.ID)) }),
			"the workers are %+v, want the suite's three and %s, by id", all, w.id)
	}},
	{"a worker that joins again announces anew", func(e *env) {
		w := e.stranger("again")
		e.announce(w, "old", alpha, beta)
		e.announce(w, "new", beta)
		got := e.workerOf(w)
		e.check(got.Name == "new" && slices.Equal(got.Types, []string{beta}), "the worker is %+v", got)
		e.announce(w, "none")
		e.equal("the number of types", len(e.workerOf(w).Types), 0)
	}},
	{"a heartbeat is a sign of life and changes no announcement", func(e *env) {
		w := e.stranger("beats")
		e.announce(w, "host:7", alpha)
		e.pass(time.Second)
		w.beat()
		got := e.workerOf(w)
		e.near("LastSeen", got.LastSeen, e.now())
		e.check(slices.Equal(got.Types, []string{alpha}) && got.Name == "host:7", "the worker is %+v", got)
	}},
	{"workers are listed with how many tasks they run", func(e *env) {
		cs := e.a.takeAll(e.many(3)...)
		b := e.b.take(e.one())
		e.finish(success(cs[0]))
		e.equal("tasks that A runs", e.workerOf(e.a).Running, 2)
		e.equal("tasks that B runs", e.workerOf(e.b).Running, 1)
		e.finish(retry(b, 0))
		e.equal("tasks that B runs in the end", e.workerOf(e.b).Running, 0)
	}},
	{"a worker that left is not listed, nor one of another namespace", func(e *env) {
		w := e.stranger("leaves")
		e.announce(w, "host:7", alpha)
		other := e.in(otherNamespace)
		e.check(!slices.ContainsFunc(other.allWorkers(), func(s store.WorkerStatus) bool { return s.ID == w.id }), "it is listed in another namespace")
		w.leave()
		e.check(!slices.ContainsFunc(e.allWorkers(), func(s store.WorkerStatus) bool { return s.ID == w.id }), "it is listed after it left")
	}},
}

// announce joins a worker with its name and task types.
func (e *env) announce(w *worker, name string, types ...string) {
	e.Helper()
	err := e.s.Join(e.Context(), e.ns, store.WorkerInfo{ID: w.id, Name: name, TTL: ttl, Types: types})
	e.require(err == nil, "Join of %s: %v", w.id, err)
}

func (e *env) allWorkers() []store.WorkerStatus {
	e.Helper()
	all, err := e.s.Workers(e.Context(), e.ns)
	e.require(err == nil, "Workers: %v", err)
	return all
}

// workerOf returns the status of one worker.
func (e *env) workerOf(w *worker) store.WorkerStatus {
	e.Helper()
	all := e.allWorkers()
	i := slices.IndexFunc(all, func(s store.WorkerStatus) bool { return s.ID == w.id })
	e.require(i >= 0, "%s is not among %+v", w.id, all)
	return all[i]
}
