package sqlite

import (
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// Concurrency keys. A row of weaver_conc_keys exists while tasks hold or await
// the key: held counts running tasks, cap is the limit that the task claimed
// last asked for. Waiters are due tasks over the cap; they have no dispatch
// row. Invariant: waiters ⇒ held + due dispatch rows of the key ≥ cap.

const (
	sqlKey       = `SELECT held, cap FROM weaver_conc_keys WHERE namespace = ?1 AND key = ?2`
	sqlTakeKey   = `INSERT INTO weaver_conc_keys (namespace, key, held, cap) VALUES (?1, ?2, 1, ?3) ON CONFLICT DO UPDATE SET held = held + 1, cap = excluded.cap`
	sqlDropKey   = `UPDATE weaver_conc_keys SET held = max(held - 1, 0) WHERE namespace = ?1 AND key = ?2`
	sqlAddWaiter = `INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id) VALUES (?1, ?2, ?3, ?4)`
	sqlDelWaiter = `DELETE FROM weaver_conc_waiters WHERE namespace = ?1 AND task_id = ?2`
)

// keyFree reports whether one more task may run under a key.
func (t *tx) keyFree(key string) (free bool, err error) {
	st := t.stmt(sqlKey).Text(1, t.ns).Text(2, key)
	free = true
	if st.One() {
		free = rules.KeyHasRoom(int(st.ColInt(0)), int(st.ColInt(1)))
	}
	return free, st.Done()
}

// takeKey counts a claimed task; its limit is the key's from now on.
func (t *tx) takeKey(key string, limit int) error {
	return t.stmt(sqlTakeKey).Text(1, t.ns).Text(2, key).Int(3, int64(max(1, limit))).Run()
}

// dropKey counts a task that left running. wakeKey must follow.
func (t *tx) dropKey(key string) error {
	return t.stmt(sqlDropKey).Text(1, t.ns).Text(2, key).Run()
}

// await moves a due task over the cap from dispatch to the waiters. Its own
// row is not written: readers derive pending/concurrency.
func (t *tx) await(id *task.ID, key string, due int64) error {
	if _, err := t.undispatch(id); err != nil {
		return err
	}
	return t.stmt(sqlAddWaiter).Text(1, t.ns).Text(2, key).Int(3, due).ID(4, id).Run()
}

// unawait deletes a task's waiter row, if it has one.
func (t *tx) unawait(id *task.ID) error {
	return t.stmt(sqlDelWaiter).Text(1, t.ns).ID(2, id).Run()
}

const (
	sqlDueOfKey = `
SELECT count(*) FROM weaver_outbox_events WHERE namespace = ?1 AND concurrency_key = ?2 AND available_at <= ?3
AND queue NOT IN (SELECT queue FROM weaver_paused_queues WHERE namespace = ?1)`

	sqlWaiters = `
SELECT w.task_id, w.due_at, t.queue, t.task_type, t.priority,
  EXISTS (SELECT 1 FROM weaver_paused_queues p WHERE p.namespace = w.namespace AND p.queue = t.queue)
FROM weaver_conc_waiters w
JOIN weaver_tasks t ON t.namespace = w.namespace AND t.task_id = w.task_id
WHERE w.namespace = ?1 AND w.key = ?2 ORDER BY w.due_at, w.task_id LIMIT ?3`

	sqlTidyKey = `
DELETE FROM weaver_conc_keys WHERE namespace = ?1 AND key = ?2 AND held = 0
AND NOT EXISTS (SELECT 1 FROM weaver_conc_waiters WHERE namespace = ?1 AND key = ?2)`
)

// wakeKey moves the oldest waiters of a key back to dispatch, as many as could
// run beside those that run or are due already. It follows whatever lowers held,
// raises the cap, or takes a keyed dispatch row away without claiming it.
func (t *tx) wakeKey(key string) (more bool, err error) {
	st := t.stmt(sqlKey).Text(1, t.ns).Text(2, key)
	held, limit := 0, 1
	if st.One() {
		held, limit = int(st.ColInt(0)), int(st.ColInt(1))
	}
	if err := st.Done(); err != nil {
		return false, err
	}
	st = t.stmt(sqlDueOfKey).Text(1, t.ns).Text(2, key).Int(3, t.mic)
	due := 0
	if st.One() {
		due = int(st.ColInt(0))
	}
	if err := st.Done(); err != nil {
		return false, err
	}
	for n := rules.KeyWakes(held, due, limit); n > 0; {
		woken, err := t.dispatchWaiters(key, n)
		if err != nil {
			return false, err
		}
		if len(woken) == 0 {
			break
		}
		for _, w := range woken {
			if !w.paused { // of a paused queue: it cannot run now and takes no place
				n--
			}
		}
	}
	return false, t.stmt(sqlTidyKey).Text(1, t.ns).Text(2, key).Run()
}

type waiter struct {
	dispatched
	due    int64
	paused bool
}

// dispatchWaiters moves up to n waiters to dispatch, with their original due time.
func (t *tx) dispatchWaiters(key string, n int) ([]waiter, error) {
	var woken []waiter
	st := t.stmt(sqlWaiters).Text(1, t.ns).Text(2, key).Int(3, int64(n))
	for st.Next() {
		woken = append(woken, waiter{dispatched{st.ColID(0), lane.Key{Queue: st.ColName(2), Type: st.ColName(3), Priority: st.ColInt(4)}, key}, st.ColInt(1), st.ColBool(5)})
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	for i := range woken {
		w := &woken[i]
		if err := t.unawait(&w.id); err != nil {
			return nil, err
		}
		if err := t.dispatch(&w.dispatched, w.due); err != nil {
			return nil, err
		}
	}
	return woken, nil
}
