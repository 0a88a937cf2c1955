package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// SyncOff never waits for the disk: for tests that do not crash machines.
const SyncOff = off

// Kill drops the lock of a worker, as the end of its process would.
func (db *DB) Kill(ns string, id store.WorkerID) {
	path := db.lockPath(ns, id)
	l := &db.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.held[path]; f != nil {
		_ = f.Close()
		delete(l.held, path)
	}
}

// OnCommit puts fn around every COMMIT of the writer; nil takes it away.
func (db *DB) OnCommit(fn func(commit func() error) error) { db.faults.OnCommit = fn }

// Exec runs SQL on the writer, outside any group.
func (db *DB) Exec(ctx context.Context, sql string) (err error) {
	if qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) { err = c.Script(sql) }); qerr != nil {
		return qerr
	}
	return err
}

// Write runs fn as an operation of the group commit.
func (db *DB) Write(ctx context.Context, fn func(exec func(sql string) error) error) error {
	return db.write(ctx, "test", 1, func(t *tx) error { return fn(t.conn.Script) })
}

// ReadSteps returns how many steps the statements of the readers have made since
// the last call.
func (db *DB) ReadSteps() (n int) {
	db.readers.Idle(func(c *conn.Conn) { n += c.Steps() })
	return n
}

// Plan returns how the writer would run a statement: one line per step.
func (db *DB) Plan(ctx context.Context, sql string) (plan []string, err error) {
	qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) {
		st, _, perr := c.Raw().Prepare("EXPLAIN QUERY PLAN " + sql)
		if err = perr; err != nil {
			return
		}
		for st.Step() {
			plan = append(plan, st.ColumnText(3))
		}
		err = st.Close()
	})
	if qerr != nil {
		return nil, qerr
	}
	return plan, err
}

// Ephemeral reports whether a statement opens a temporary table when it runs.
func (db *DB) Ephemeral(ctx context.Context, sql string) (found bool, err error) {
	qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) {
		st, _, perr := c.Raw().Prepare("EXPLAIN " + sql)
		if err = perr; err != nil {
			return
		}
		for st.Step() {
			found = found || strings.Contains(st.ColumnText(1), "Ephemeral") || strings.Contains(st.ColumnText(1), "Autoindex")
		}
		err = st.Close()
	})
	if qerr != nil {
		return false, qerr
	}
	return found, err
}

// HotStatements are those that run for every task.
var HotStatements = map[string]string{
	"insert task":     sqlInsertTask,
	"insert dispatch": sqlInsertDispatch,
	"due of lane":     sqlDueOfLane,
	"claim task":      sqlClaimTask,
	"delete dispatch": sqlDeleteDispatch,
	"insert attempt":  sqlInsertAttempt,
	"guard":           sqlGuard,
	"transition":      sqlTransition,
	"step guard":      sqlStepGuard,
	"insert step":     sqlInsertStep,
	"beat":            sqlBeat,
	"first of lane":   sqlFirstOfLane,
	"future of lane":  sqlFutureOfLane,
}

// WarmStatements must find their rows by a key or an index, too.
var WarmStatements = map[string]string{
	"hinted": sqlHinted, "whole task": sqlTask, "lease row": sqlLeaseRow, "task row": sqlTaskRow, "read task": sqlReadTask, "next lane": sqlNextLane,
	"open edges": sqlOpenEdges, "edge done": sqlEdgeDone, "lower needs": sqlLowerNeeds, "retry needs": sqlRetryNeeds, "dependents": sqlDependents,
	"due claims": sqlDueClaims, "due timers": sqlDueTimers, "next claim": sqlNextClaim, "next timer": sqlNextTimer, "delete timer": sqlDeleteTimer,
	"due of key": sqlDueOfKey, "waiters": sqlWaiters, "delete waiter": sqlDelWaiter, "key": sqlKey, "finished": sqlFinished,
	"task by key": sqlTaskByKey, "task exists": sqlTaskExists, "steps": sqlSteps, "payloads": sqlPayloads, "job": sqlJob, "job tasks": sqlJobTasks,
	"ids of label": sqlIDsOfLabel, "ids of job": sqlIDsOfJob, "ids ended": sqlIDsEnded, "ids dispatched": sqlIDsDispatched,
	"ids waiting": sqlIDsWaiting, "ids needy": sqlIDsNeedy, "ids all": sqlIDsAll, "audit of": sqlAuditOf, "attempts": sqlAttempts,
	"generation": sqlGeneration, "seen": sqlSeen, "keys in queue": sqlKeysInQueue,
}

// ChunkStatements write a chunk of rows, by name and number of rows.
func ChunkStatements() map[string]string {
	all := make(map[string]string)
	for name, sqls := range map[string]chunkSQL{
		"claim many": sqlClaimMany, "undispatch many": sqlUndispatchMany, "succeed": sqlSucceed,
		"insert attempts": sqlInsertAttempts, "steps guard": sqlStepsGuard, "insert steps": sqlInsertSteps,
	} {
		for n, sql := range sqls {
			all[fmt.Sprint(name, " ", n)] = sql
		}
	}
	return all
}

// ColumnLists are the generated lists in statements, by their table's name.
var ColumnLists = map[string]string{
	"taskColumns": taskColumns.List(), "dependentColumns": dependentColumns.List(), "workerColumns": workerColumns.List(), "retryNeedColumns": retryNeedColumns.List(), "candidateColumns": candidateColumns.List(), "freshColumns": freshColumns.List(),
	"leaseColumns": leaseColumns.List(), "taskRowColumns": taskRowColumns.List(), "jobColumns": jobColumns.List(),
	"stepColumns": stepColumns.List(), "attemptColumns": attemptColumns.List(), "decisionColumns": decisionColumns.List(),
	"auditColumns": auditColumns.List(), "claimColumns": claimColumns.List(), "edgeColumns": edgeColumns.List(),
	"dispatchColumns": dispatchColumns.List(), "keyColumns": keyColumns.List(), "waiterColumns": waiterColumns.List(),
	"versionColumns": versionColumns.List(), "statusColumns": statusColumns.List(),
}

// DeleteStatements remove a task.
var DeleteStatements = sqlDelete
