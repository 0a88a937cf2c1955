package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// Concurrency keys. A row of weaver_conc_keys exists while tasks hold or await the key. held
// counts its running tasks, and cap is the limit of the task claimed last. Waiters are due
// tasks over the cap. They have no dispatch row. Invariant: while a key has room, each lane
// (queue and task type) with waiters has a due dispatch row (wake.go).

const (
	sqlKey     = `SELECT held, cap FROM weaver_conc_keys WHERE namespace = ?1 AND key = ?2`
	sqlTakeKey = `INSERT INTO weaver_conc_keys (namespace, key, held, cap) VALUES (?1, ?2, 1, ?3) ON CONFLICT (namespace, key) DO UPDATE SET held = weaver_conc_keys.held + 1, cap = excluded.cap`
	sqlDropKey = `UPDATE weaver_conc_keys SET held = CASE WHEN held > 0 THEN held - 1 ELSE 0 END WHERE namespace = ?1 AND key = ?2`
	// Without INDEXED BY SQLite would read all waiters of the namespace.
	sqlDelWaiter = `DELETE FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1 AND task_id = ?2`
)

// keyRow is the state of a key. It is zero for a key without a row.
type keyRow struct{ held, limit int }

func (v *View) keyRow(key string) (k keyRow, err error) {
	st := v.stmt(sqlKey).Text(1, v.ns).Text(2, key)
	if st.One() {
		k = keyRow{int(st.ColInt(0)), int(st.ColInt(1))}
	}
	return k, st.Done()
}

// keyFree reports whether one more task may run under a key.
func (v *View) keyFree(key string) (bool, error) {
	k, err := v.keyRow(key)
	return rules.KeyHasRoom(k.held, k.limit), err
}

// roomUnder is keyFree before the key is taken: it locks the key.
func (t *Tx) roomUnder(key string) (bool, error) {
	k, err := t.keyRow(key)
	return rules.KeyHasRoom(k.held, k.limit), err
}

// takeKey counts a claimed task and sets the key's limit to the task's limit.
func (t *Tx) takeKey(key string, limit int) error {
	return t.stmt(sqlTakeKey).Text(1, t.ns).Text(2, key).Int(3, int64(max(1, limit))).Run()
}

// dropKey counts a task that left the state running. wakeKey must follow.
func (t *Tx) dropKey(key string) error {
	return t.stmt(sqlDropKey).Text(1, t.ns).Text(2, key).Run()
}

// sqlAwait makes a chunk of dispatched tasks wait for their keys.
var sqlAwait = newChunkSQL(func(n int) string {
	return `
INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id, queue, task_type, lane_group)
SELECT namespace, concurrency_key, available_at, task_id, queue, task_type, lane_group FROM weaver_outbox_events
WHERE namespace = ?1 AND task_id IN (` + params(2, n) + `)`
})

// await moves due tasks over the caps of their keys from dispatch to the waiters. It does not
// write their own rows: readers derive pending/concurrency.
func (t *Tx) await(ids []task.ID) error {
	return inChunks(ids, func(chunk []task.ID) error {
		st := t.stmt(sqlAwait[len(chunk)]).Text(1, t.ns)
		for i := range chunk {
			st.ID(2+i, &chunk[i])
		}
		if err := st.Run(); err != nil {
			return err
		}
		return t.undispatchMany(chunk)
	})
}

// unawait deletes a task's waiter row, if it has one.
func (t *Tx) unawait(id *task.ID) error {
	return t.stmt(sqlDelWaiter).Text(1, t.ns).ID(2, id).Run()
}
