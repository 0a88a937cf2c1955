package memstore

import (
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// hasRoom reports whether one more task with the key may run.
func (o *op) hasRoom(key string) bool {
	k, ok := o.keys[key]
	return key == "" || !ok || rules.KeyHasRoom(k.Held, k.Cap)
}

// hold takes a task's key as it is claimed. The limit of the task claimed
// last is the one that holds.
func (o *op) hold(r *row) {
	if r.ConcurrencyKey == "" {
		return
	}
	k := o.key(r.ConcurrencyKey, r.ConcurrencyLimit)
	k.Held++
	k.Cap = r.ConcurrencyLimit
	o.freed[r.ConcurrencyKey] = true // by a limit that is higher than the last one's
}

// drop gives a task's key back as it leaves running.
func (o *op) drop(r *row) {
	if r.ConcurrencyKey == "" {
		return
	}
	o.keys[r.ConcurrencyKey].Held--
	o.freed[r.ConcurrencyKey] = true
}

// queueUp moves a due task from dispatch to the waiters of its key, with the
// time from which it was due.
func (o *op) queueUp(d store.DispatchRow) {
	delete(o.dispatch, d.Task)
	o.waiters[d.Task] = store.WaiterRow{Key: d.ConcurrencyKey, DueAt: d.AvailableAt, Task: d.Task}
}

// wakeFreed wakes the keys that may have room now.
func (o *op) wakeFreed() {
	for _, key := range slices.Sorted(maps.Keys(o.freed)) {
		o.wake(key)
		o.tidy(key)
	}
	clear(o.freed)
}

// wake moves the oldest waiters of a key back to dispatch, until those that
// run and those that are due reach the key's limit.
func (o *op) wake(key string) {
	k, ok := o.keys[key]
	if !ok {
		return // without a key row no task waits
	}
	for rules.KeyWakes(k.Held, o.due(key), k.Cap) > 0 {
		w, ok := o.oldestWaiter(key)
		if !ok {
			return
		}
		r := o.tasks[w.Task]
		delete(o.waiters, w.Task)
		// The task's own row is not written: readers derive its state.
		o.dispatch[w.Task] = store.DispatchRow{
			Task: r.ID, Queue: r.Queue, Type: r.Type, Priority: r.Priority,
			AvailableAt: w.DueAt, ConcurrencyKey: key,
		}
		o.notice.Due = true
	}
}

// due counts the dispatch rows of a key that could be claimed now. A row that
// is due tomorrow must not keep a waiter of today, nor must a paused one.
func (o *op) due(key string) int {
	n := 0
	for _, d := range o.dispatch {
		if _, paused := o.paused[d.Queue]; d.ConcurrencyKey == key && !paused && !d.AvailableAt.After(o.now) {
			n++
		}
	}
	return n
}

// oldestWaiter returns the waiter of a key that has been due longest.
func (o *op) oldestWaiter(key string) (oldest store.WaiterRow, found bool) {
	for _, w := range o.waiters {
		if w.Key == key && (!found || byWaiter(w, oldest) < 0) {
			oldest, found = w, true
		}
	}
	return oldest, found
}

// key returns the row of a key, made if need be.
func (o *op) key(key string, limit int) *store.KeyRow {
	k, ok := o.keys[key]
	if !ok {
		k = &store.KeyRow{Key: key, Cap: limit}
		o.keys[key] = k
	}
	return k
}

// tidy removes a key that no task holds or waits for.
func (o *op) tidy(key string) {
	if k, ok := o.keys[key]; ok && k.Held == 0 {
		if _, waits := o.oldestWaiter(key); !waits {
			delete(o.keys, key)
		}
	}
}

// holders returns the running tasks with a key.
func (sp *space) holders(key string) []task.ID {
	var ids []task.ID
	for _, r := range sp.sorted(func(r *row) bool { return r.State == task.Running && r.ConcurrencyKey == key }) {
		ids = append(ids, r.ID)
	}
	return ids
}

func byWaiter(a, b store.WaiterRow) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	if c := a.DueAt.Compare(b.DueAt); c != 0 {
		return c
	}
	return a.Task.Compare(b.Task)
}
