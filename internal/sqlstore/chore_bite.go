package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	sqlFirstChore  = `SELECT ` + choreColumns.List() + ` FROM weaver_chores WHERE namespace = ?1 ORDER BY kind, subject LIMIT 1 /*lock*/`
	sqlChoreOf     = `SELECT ` + choreColumns.List() + ` FROM weaver_chores WHERE namespace = ?1 AND kind = ?2 AND subject = ?3 /*lock*/`
	sqlChoreOfRoot = `SELECT ` + choreColumns.List() + ` FROM weaver_chores WHERE namespace = ?1 AND (kind = 'revive' OR kind = 'revive_children') AND root = ?2 LIMIT 1 /*lock*/`
)

// finishChores works off the chores that next returns. Each bite has its own transaction, so
// that other operations run in between. If ctx ends or the store fails, reapers finish the
// rest: the operation that began the chore is committed, so there is no error. A task fails if
// the store refuses its children permanently. If add is not nil, it receives the result of
// each bite.
func (s *Store) finishChores(ctx context.Context, ns string, next func(*Tx) (*chore, error), add func(*store.CommandResult)) {
	for more := true; more; {
		var got store.CommandResult
		var at *chore
		err := s.write(ctx, ns, Heavy, func(t *Tx) (err error) {
			got, at = store.CommandResult{}, nil
			c, err := next(t)
			if more = c != nil; err != nil || !more {
				return err
			}
			at = c
			return t.bite(c, &got)
		})
		if at != nil && at.kind == store.ChoreDecompose && store.Refused(err) {
			more, err = false, s.endRefused(ctx, ns, at, err)
		}
		if err != nil {
			return
		}
		if add != nil {
			add(&got)
		}
	}
}

// small reports whether a kind may have many chores with little work each, such as marking an
// edge or removing a child.
func (c *chore) small() bool { return c.kind == store.ChoreEdges || c.kind == store.ChoreDeleteTask }

// reapChore does one bite of the first chore. Of small chores it does further bites, up to the
// move limit of the transaction. It reports whether chores remain.
func (t *Tx) reapChore() (more bool, err error) {
	for bites := 0; ; bites++ {
		c, err := t.firstChore()
		if c == nil || err != nil || bites > 0 && (!c.small() || t.moved+bites >= rules.MaxMoves) {
			return c != nil, err
		}
		if err := t.bite(c, new(store.CommandResult)); err != nil {
			return false, err
		}
		if !c.small() {
			c, err = t.firstChore()
			return c != nil, err
		}
	}
}

func (t *Tx) firstChore() (*chore, error) {
	return choreColumns.One(t.stmt(sqlFirstChore).Text(1, t.ns))
}

// bite does a part of a chore and writes its progress, or deletes the chore when it is done.
// Crash after the commit: another reaper continues from there.
func (t *Tx) bite(c *chore, got *store.CommandResult) error {
	o := operation{tx: t, moves: moves{tx: t}}
	var more bool
	var err error
	switch c.kind {
	case store.ChoreCancelJob:
		more, err = o.cancelSome(c, got)
	case store.ChoreChildren:
		more, err = o.moves.cancelSomeChildren(c)
	case store.ChoreDeleteJob, store.ChoreDeleteTask, store.ChoreDropValues:
		more, err = o.eraseSome(c)
	case store.ChoreDecompose:
		more, err = o.moves.storeSomeChildren(c)
	case store.ChoreEnqueue:
		more, err = t.storePart(c)
	case store.ChoreEdges:
		err = o.markSome(c)
	case store.ChorePause, store.ChorePauseType:
		more, err = o.wakeSome(c)
	case store.ChoreForget:
		more, err = o.forgetSome(c)
	case store.ChoreEvents:
		more, err = t.dropEvents(&c.id)
	case store.ChoreRaise:
		more, err = o.raiseSome(c)
	case store.ChoreSpent:
		more, err = o.moves.spentSome(c)
	case store.ChoreRevive:
		more, err = o.reviveSome(c)
	case store.ChoreReviveChildren:
		more, err = o.reviveSomeChildren(c)
	case store.ChoreWakeKey:
		o.moves.pending.FreeKey(c.name)
	}
	if err != nil {
		return err
	}
	if more {
		err = t.putChore(c)
	} else {
		err = t.dropChore(c)
	}
	if err != nil {
		return err
	}
	// The remaining work of the same chore is written again here.
	if err := o.moves.propagate(); err != nil || c.kind != store.ChoreRevive {
		return err
	}
	return o.releaseRoot(c)
}

const sqlEndOf = `SELECT state, last_error_kind, allow_failure FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// markSome marks further edges towards an ended task. A task retried meanwhile marks them when
// it ends again.
func (o *operation) markSome(c *chore) error {
	st := o.tx.stmt(sqlEndOf).Text(1, o.tx.ns).ID(2, &c.id)
	if st.One() {
		end := task.End{State: task.State(st.ColName(0)), Kind: task.ErrorKind(st.ColName(1)), AllowFailure: st.ColBool(2)}
		if end.State.Terminal() {
			var after task.ID
			copy(after[:], c.at)
			o.moves.pending.EndAfter(c.id, end, after)
		}
	}
	return st.Done()
}

const sqlNextJobTasks = `
SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND job_id = ?2 AND task_id > ?3 ORDER BY task_id LIMIT ?4`

// cancelSome ends the next tasks of a job that do not run, and asks running tasks to end.
// Tasks behind the position are neither claimed nor ended for a need meanwhile, so that no end
// of another task starts or ends them.
func (o *operation) cancelSome(c *chore, got *store.CommandResult) (more bool, err error) {
	t := o.tx
	limit := max(1, rules.MaxMoves-t.moved)
	list, err := ids(t.stmt(sqlNextJobTasks).Text(1, t.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit)))
	if err != nil {
		return false, err
	}
	t.moved += len(list)
	if _, err := t.db.Tasks(t, list...); err != nil {
		return false, err
	}
	audit := store.Audit{By: c.by, Reason: c.why}
	for i := range list {
		row, err := o.moves.taskRow(&list[i])
		if err != nil || row == nil {
			return false, err
		}
		if row.contribution.State.Terminal() {
			got.AlreadyDone++
			continue
		}
		if row.undo.Runs() { // it waits for the other tasks
			continue
		}
		state, err := o.moves.endBy(row, rules.CancelJobKind(row.depth), audit, false)
		if err != nil {
			return false, err
		}
		if state == task.Cancelled {
			got.Cancelled++
		} else {
			got.AskedTasks++
		}
	}
	o.moves.pending.Recount(c.id)
	if len(list) > 0 {
		c.at = string(list[len(list)-1][:])
	}
	return len(list) == limit, nil
}

const (
	sqlNextKey = `
SELECT concurrency_key FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
WHERE namespace = ?1 AND concurrency_key > ?2 ORDER BY concurrency_key LIMIT 1`
	sqlQueueHasKey = `
SELECT 1 FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
WHERE namespace = ?1 AND concurrency_key = ?2 AND queue = ?3 LIMIT 1`

	maxKeysPerBite  = 100 // the maximum number of woken keys; each may move some rows
	maxProbesPerKey = 10
)

// wakeSome wakes the next keys with dispatch rows in a paused queue or type.
func (o *operation) wakeSome(c *chore) (more bool, err error) {
	woken := 0
	for range maxKeysPerBite * maxProbesPerKey {
		st := o.tx.stmt(sqlNextKey).Text(1, o.tx.ns).Text(2, c.at)
		found := st.One()
		if found {
			c.at = st.ColText(0)
		}
		if err := st.Done(); err != nil || !found {
			return false, err
		}
		has, err := o.hasKey(c)
		if err != nil {
			return false, err
		}
		if has {
			o.moves.pending.FreeKey(c.at)
			woken++
		}
		if woken == maxKeysPerBite {
			break
		}
	}
	return true, nil
}

// hasKey reports whether the queue or type of a chore has dispatch rows of the key at its
// position. It finds the lanes of a key with one probe each.
func (o *operation) hasKey(c *chore) (bool, error) {
	if c.kind == store.ChorePause {
		st := o.tx.stmt(sqlQueueHasKey).Text(1, o.tx.ns).Text(2, c.at).Text(3, c.name)
		found := st.One()
		return found, st.Done()
	}
	var at keyLane
	for at.taskType != c.name {
		st := o.tx.stmt(sqlNextKeyLane).Text(1, o.tx.ns).Text(2, c.at).Text(3, at.queue).Text(4, at.taskType).Text(5, at.group)
		found := st.One()
		if found {
			at = keyLane{st.ColName(0), st.ColName(1), st.ColName(2)}
		}
		if err := st.Done(); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}
