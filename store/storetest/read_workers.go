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
			WorkerInfo: store.WorkerInfo{ID: w.id, Name: "host:7", TTL: ttl, Types: []string{alpha, beta}, Announcement: e.announced(announcement)},
		})
		all := e.allWorkers()
		e.check(len(all) == 4 && slices.IsSortedFunc(all, func(a, b store.WorkerStatus) int { return strings.Compare(string(a.ID), string(b.ID)) }),
			"the workers are %+v, want the suite's three and %s, by id", all, w.id)
	}},
	{"a worker that was not seen for its TTL is silent", func(e *env) {
		w := e.stranger("quiet")
		e.announce(w, "host:7", alpha)
		e.pass(ttl)
		e.check(!e.workerOf(w).Silent, "seen a TTL ago it is silent: %+v", e.workerOf(w))
		e.pass(time.Second)
		e.check(e.workerOf(w).Silent, "after its TTL it is not silent: %+v", e.workerOf(w))
		w.beat()
		e.check(!e.workerOf(w).Silent, "after a heartbeat it is silent: %+v", e.workerOf(w))
	}},
	{"a worker whose process is known to have ended is dead", func(e *env) {
		w := e.worker("mortal")
		w.take(e.one())
		e.check(!e.workerOf(w).Dead, "it is dead before its end: %+v", e.workerOf(w))
		seen := w.die()
		got := e.workerOf(w)
		e.check(got.Dead == seen && got.Running == n(1), "the worker is %+v, and its end can be seen: %t", got, seen)
		e.check(!e.workerOf(e.a).Dead, "another worker is dead: %+v", e.workerOf(e.a))
	}},
	{"a worker that joins again announces anew", func(e *env) {
		w := e.stranger("again")
		e.announce(w, "old", alpha, beta)
		e.announce(w, "new", beta)
		got := e.workerOf(w)
		e.equal("what it announced", got.Announcement, e.announced(announcement))
		e.check(got.Name == "new" && slices.Equal(got.Types, []string{beta}), "the worker is %+v", got)
		e.announce(w, "none")
		e.equal("the number of types", len(e.workerOf(w).Types), 0)
		w.join(ttl)
		e.equal("what it announces no more", e.workerOf(w).Announcement, e.announced(store.Announcement{}))
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
		e.equal("tasks that A runs", e.workerOf(e.a).Running, n(2))
		e.equal("tasks that B runs", e.workerOf(e.b).Running, n(1))
		e.finish(retry(b, 0))
		e.equal("tasks that B runs in the end", e.workerOf(e.b).Running, n(0))
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
	err := e.s.Join(e.Context(), e.ns, store.WorkerInfo{ID: w.id, Name: name, TTL: ttl, Types: types, Announcement: announcement})
	e.require(err == nil, "Join of %s: %v", w.id, err)
}

// announcement is the announcement of the suite's workers. It excludes the connection, which the store detects.
var announcement = store.Announcement{
	Host: "host", PID: 7, Version: "v1.2.3", Queues: []string{"mail", "work"}, Slots: 16, Connection: "theirs",
	Troubles: []store.Trouble{{TaskType: alpha, Error: "no bucket", Since: time.Unix(1_700_000_000, 0).UTC(), Released: 3}},
}

// announced returns an announcement as readers see it, with the connection that the store detected.
func (e *env) announced(a store.Announcement) store.Announcement {
	a.Connection = e.workerOf(e.a).Connection
	e.check(a.Connection == "" || a.Connection == store.ConnectionDirect || a.Connection == store.ConnectionPooled, "the connection is %q", a.Connection)
	return a
}

func (e *env) allWorkers() []store.WorkerStatus {
	e.Helper()
	return e.overview(store.OverviewWorkers).Workers
}

// workerOf returns the status of one worker.
func (e *env) workerOf(w *worker) store.WorkerStatus {
	e.Helper()
	all := e.allWorkers()
	i := slices.IndexFunc(all, func(s store.WorkerStatus) bool { return s.ID == w.id })
	e.require(i >= 0, "%s is not among %+v", w.id, all)
	return all[i]
}
