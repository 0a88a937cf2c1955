package sqlstore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
)

// Waking of waiters. A key with room gets as many waiters dispatched as may run, the oldest of
// all lanes first. Then each lane with waiters and nothing due gets its oldest waiter, so that
// due rows that no worker takes block only their own lane. The number of rows read grows with
// the lanes of a key, not with its rows: one probe finds each lane (a loose index scan).

// keyLane is a lane of a key, regardless of priority.
type keyLane struct{ queue, taskType, group string }

// waiter is the oldest waiter of a lane.
type waiter struct {
	dispatched
	due    int64
	paused bool // its queue or type is paused
}

func (w *waiter) keyLane() keyLane { return keyLane{w.lane.Queue, w.lane.Type, w.lane.Group} }

func olderWaiter(a, b waiter) int {
	return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
}

// keyWake is one wake of a key.
type keyWake struct {
	*Tx
	key   string
	row   keyRow
	lanes []waiter         // the oldest waiter of each lane that has waiters left
	due   map[keyLane]bool // lanes with a known due row
}

const sqlTidyKey = `
DELETE FROM weaver_conc_keys WHERE namespace = ?1 AND key = ?2 AND held = 0
AND NOT EXISTS (SELECT 1 FROM weaver_conc_waiters WHERE namespace = ?1 AND key = ?2)`

// wakeKey moves waiters of a key with room back to dispatch. It must follow every operation
// that lowers held, raises the cap, or removes a keyed dispatch row without claiming it. more
// reports that there were more lanes than one wake serves (rules.MaxWakes): the key must be
// woken again.
func (t *Tx) wakeKey(key string) (more bool, err error) {
	row, err := t.keyRow(key)
	if err != nil || !rules.KeyHasRoom(row.held, row.limit) {
		return false, err
	}
	w := keyWake{Tx: t, key: key, row: row, due: make(map[keyLane]bool)}
	if err := w.readLanes(); err != nil {
		return false, err
	}
	if len(w.lanes) > 0 {
		if err := w.fill(); err != nil {
			return false, err
		}
		if more, err = w.eachLane(); err != nil {
			return false, err
		}
	}
	if row.held > 0 {
		return more, nil
	}
	return more, t.stmt(sqlTidyKey).Text(1, t.ns).Text(2, key).Run()
}

const (
	selectWaiter = `
SELECT o.queue, o.task_type, o.due_at, o.task_id, t.priority, o.lane_group,
  ` + lanePaused + ` IS NOT NULL
FROM weaver_conc_waiters o INDEXED BY weaver_conc_waiters_by_lane
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id
WHERE o.namespace = ?1 AND o.key = ?2 AND `

	sqlNextWaiterLane = selectWaiter + `(o.queue, o.task_type, o.lane_group, o.due_at) > (?3, ?4, ?5, 9223372036854775807)
ORDER BY o.queue, o.task_type, o.lane_group, o.due_at, o.task_id LIMIT 1`

	sqlOldestWaiter = selectWaiter + `o.queue = ?3 AND o.task_type = ?4 AND o.lane_group = ?5
ORDER BY o.due_at, o.task_id LIMIT 1`
)

// waiter reads the oldest waiter of a lane, or of the next lane, with a statement. It returns
// nil if there is no waiter.
func (w *keyWake) waiter(sql string, l keyLane) (found *waiter, err error) {
	st := w.stmt(sql).Text(1, w.ns).Text(2, w.key).Text(3, l.queue).Text(4, l.taskType).Text(5, l.group)
	if st.One() {
		found = &waiter{
			dispatched: dispatched{st.ColID(3), lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Group: st.ColName(5), Priority: st.ColInt(4)}, w.key},
			due:        st.ColInt(2), paused: st.ColBool(6),
		}
	}
	return found, st.Done()
}

// readLanes finds the oldest waiter of each lane.
func (w *keyWake) readLanes() error {
	var at keyLane
	for {
		next, err := w.waiter(sqlNextWaiterLane, at)
		if err != nil || next == nil {
			return err
		}
		w.lanes = append(w.lanes, *next)
		at = next.keyLane()
	}
}

// fill moves as many waiters as may run, the oldest first.
func (w *keyWake) fill() error {
	room := rules.KeyWakes(w.row.held, 0, w.row.limit)
	due, err := w.countDue(room)
	if err != nil {
		return err
	}
	heads := slices.DeleteFunc(slices.Clone(w.lanes), func(h waiter) bool { return h.paused })
	slices.SortFunc(heads, olderWaiter)
	for n := rules.KeyWakes(w.row.held, due, w.row.limit); n > 0 && len(heads) > 0; n-- {
		head := heads[0]
		heads = heads[1:]
		if err := w.move(&head); err != nil || n == 1 {
			return err
		}
		next, err := w.waiter(sqlOldestWaiter, head.keyLane())
		if err != nil {
			return err
		}
		if next != nil {
			i, _ := slices.BinarySearchFunc(heads, *next, olderWaiter)
			heads = slices.Insert(heads, i, *next)
		}
	}
	return nil
}

// eachLane moves the oldest waiter of each lane that has nothing due.
func (w *keyWake) eachLane() (more bool, err error) {
	moved := 0
	for i := range w.lanes {
		oldest := &w.lanes[i]
		due := w.due[oldest.keyLane()]
		if !due {
			n, err := w.dueOfLane(oldest.keyLane(), 1)
			if err != nil {
				return false, err
			}
			due = n > 0
		}
		if !rules.LaneWakes(w.row.held, w.row.limit, due) {
			continue
		}
		if moved == rules.MaxWakes {
			return true, nil
		}
		moved++
		if err := w.move(oldest); err != nil {
			return false, err
		}
	}
	return false, nil
}

// move makes a waiter claimable again, with its old due time.
func (w *keyWake) move(m *waiter) error {
	if err := w.unawait(&m.id); err != nil {
		return err
	}
	w.due[m.keyLane()] = true
	return w.dispatch(&m.dispatched, m.due)
}

const (
	sqlNextKeyLane = `
SELECT o.queue, o.task_type, o.lane_group, o.available_at,
  ` + lanePaused + ` IS NOT NULL
FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_key
WHERE o.namespace = ?1 AND o.concurrency_key = ?2 AND (o.queue, o.task_type, o.lane_group, o.available_at) > (?3, ?4, ?5, 9223372036854775807)
ORDER BY o.queue, o.task_type, o.lane_group, o.available_at LIMIT 1`

	sqlDueOfKeyLane = `
SELECT 1 FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
WHERE namespace = ?1 AND concurrency_key = ?2 AND queue = ?3 AND task_type = ?4 AND lane_group = ?5 AND available_at <= ?6 LIMIT ?7`
)

// countDue counts the due rows of the key in lanes that are not paused, up to limit.
func (w *keyWake) countDue(limit int) (due int, err error) {
	var at keyLane
	for due < limit {
		st := w.stmt(sqlNextKeyLane).Text(1, w.ns).Text(2, w.key).Text(3, at.queue).Text(4, at.taskType).Text(5, at.group)
		found, counts := st.One(), false
		if found {
			at = keyLane{st.ColName(0), st.ColName(1), st.ColName(2)}
			counts = st.ColInt(3) <= w.mic && !st.ColBool(4)
		}
		if err := st.Done(); err != nil {
			return 0, err
		}
		if !found {
			break
		}
		if !counts {
			continue
		}
		w.due[at] = true
		n := 1
		if limit-due > 1 {
			if n, err = w.dueOfLane(at, limit-due); err != nil {
				return 0, err
			}
		}
		due += n
	}
	return due, nil
}

// dueOfLane counts the due rows of the key in one lane, up to limit.
func (w *keyWake) dueOfLane(l keyLane, limit int) (n int, err error) {
	st := w.stmt(sqlDueOfKeyLane).Text(1, w.ns).Text(2, w.key).Text(3, l.queue).Text(4, l.taskType).Text(5, l.group).Int(6, w.mic).Int(7, int64(limit))
	for st.Next() {
		n++
	}
	return n, st.Done()
}
