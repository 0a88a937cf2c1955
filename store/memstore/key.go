package memstore

import (
	"cmp"
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

// hold takes a task's key when the task is claimed. The limit of the most recently
// claimed task applies.
func (o *op) hold(r *row) {
	if r.ConcurrencyKey == "" {
		return
	}
	k := o.key(r.ConcurrencyKey, r.ConcurrencyLimit)
	k.Held++
	k.Cap = r.ConcurrencyLimit
	o.freed[r.ConcurrencyKey] = true // its limit is higher than the last one's
}

// holdOn keeps the key for a task that has left running. The limit of the most recently
// claimed task still applies.
func (o *op) holdOn(r *row) {
	o.keys[r.ConcurrencyKey].Held++
}

// drop releases a task's key when it leaves running.
func (o *op) drop(r *row) {
	if r.ConcurrencyKey == "" {
		return
	}
	o.keys[r.ConcurrencyKey].Held--
	o.freed[r.ConcurrencyKey] = true
}

// queueUp moves a due task from dispatch to the waiters of its key, with the time at
// which it became due.
func (o *op) queueUp(d store.DispatchRow) {
	delete(o.dispatch, d.Task)
	o.waiters[d.Task] = store.WaiterRow{Key: d.ConcurrencyKey, DueAt: d.AvailableAt, Task: d.Task, Queue: d.Queue, Type: d.Type, Group: d.Group}
}

// wakeFreed wakes the keys that may have room.
func (o *op) wakeFreed() {
	for _, key := range slices.Sorted(maps.Keys(o.freed)) {
		for o.wake(key) {
			// The next wake moves the waiters that this one leaves.
		}
		o.tidy(key)
	}
	clear(o.freed)
}

// keyLane is a lane of a key, for all priorities.
type keyLane struct{ queue, taskType, group string }

// wake moves waiters of a key with room back to dispatch. It first takes the oldest of
// lanes that are not paused, until running and due tasks reach the limit. Then it takes
// the oldest of each lane without a due task. more reports that there were more lanes
// than one wake serves: the key must be woken again.
func (o *op) wake(key string) (more bool) {
	k, ok := o.keys[key]
	if !ok {
		return false // without a key row no task waits
	}
	due := o.dueLanes(key)
	room := rules.KeyWakes(k.Held, o.dueUnpaused(due), k.Cap)
	left := map[keyLane]store.WaiterRow{} // the oldest waiter of each lane
	for _, w := range o.waitersOf(key) {
		lane := keyLane{w.Queue, w.Type, w.Group}
		if room > 0 && o.pauseOf(w.Queue, w.Type) == task.PauseNone {
			room--
			due[lane]++
			o.dispatchWaiter(w)
		} else if _, ok := left[lane]; !ok {
			left[lane] = w
		}
	}
	lanes := slices.SortedFunc(maps.Keys(left), func(a, b keyLane) int {
		return cmp.Or(strings.Compare(a.queue, b.queue), strings.Compare(a.taskType, b.taskType), strings.Compare(a.group, b.group))
	})
	woken := 0
	for _, lane := range lanes {
		if !rules.LaneWakes(k.Held, k.Cap, due[lane] > 0) {
			continue
		}
		if woken == rules.MaxWakes {
			return true
		}
		woken++
		o.dispatchWaiter(left[lane])
	}
	return false
}

// dispatchWaiter makes a waiter claimable again, with its original due time. It does not
// write the task's own row: readers derive the state.
func (o *op) dispatchWaiter(w store.WaiterRow) {
	r := o.tasks[w.Task]
	delete(o.waiters, w.Task)
	o.dispatch[w.Task] = store.DispatchRow{
		Task: r.ID, Queue: r.Queue, Type: r.Type, Group: groupOf(r), Priority: r.Priority,
		AvailableAt: w.DueAt, ConcurrencyKey: w.Key,
	}
	o.notice.Due = true
}

// dueLanes counts the due dispatch rows of a key by lane. A row that is due tomorrow must
// not delay a waiter that is due today.
func (o *op) dueLanes(key string) map[keyLane]int {
	due := map[keyLane]int{}
	for _, d := range o.dispatch {
		if d.ConcurrencyKey == key && !d.AvailableAt.After(o.now) {
			due[keyLane{d.Queue, d.Type, d.Group}]++
		}
	}
	return due
}

// dueUnpaused counts the due rows of lanes that are not paused.
func (o *op) dueUnpaused(due map[keyLane]int) (n int) {
	for lane, rows := range due {
		if o.pauseOf(lane.queue, lane.taskType) == task.PauseNone {
			n += rows
		}
	}
	return n
}

// waitersOf returns the waiters of a key, oldest first.
func (o *op) waitersOf(key string) []store.WaiterRow {
	var list []store.WaiterRow
	for _, w := range o.waiters {
		if w.Key == key {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, byWaiter)
	return list
}

// key returns the row of a key; it creates a missing one.
func (o *op) key(key string, limit int) *store.KeyRow {
	k, ok := o.keys[key]
	if !ok {
		k = &store.KeyRow{Key: key, Cap: limit}
		o.keys[key] = k
	}
	return k
}

// tidy removes a key without holders and waiters.
func (o *op) tidy(key string) {
	if k, ok := o.keys[key]; ok && k.Held == 0 {
		if len(o.waitersOf(key)) == 0 {
			delete(o.keys, key)
		}
	}
}

// ahead returns the due task that precedes a waiter in its lane while the key has room,
// or zero.
func (o *op) ahead(r *row) (id task.ID) {
	if !o.hasRoom(r.ConcurrencyKey) {
		return id
	}
	var first store.DispatchRow
	for _, d := range o.dispatch {
		if d.ConcurrencyKey != r.ConcurrencyKey || d.Queue != r.Queue || d.Type != r.Type || d.Group != groupOf(r) || d.AvailableAt.After(o.now) {
			continue
		}
		if first.Task.IsZero() || cmp.Or(d.AvailableAt.Compare(first.AvailableAt), d.Task.Compare(first.Task)) < 0 {
			first = d
		}
	}
	return first.Task
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

// groupOf returns the group of a task's lane.
func groupOf(r *row) string { return store.LaneGroup(r.Options, r.Labels) }
