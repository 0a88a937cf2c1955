package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

// Generated holds the statements that are built when the program starts, by name.
var Generated = map[string]string{
	"sqlInsertNew": sqlInsertNew, "sqlInsertAlike": sqlInsertAlike, "sqlInsertVaried": sqlInsertVaried, "sqlClaimLane": sqlClaimLane, "sqlClaimTasks": sqlClaimTasks, "sqlSucceedAll": sqlSucceedAll, "sqlSucceedEach": sqlSucceedEach,
	"sqlWriteEntriesAll": sqlWriteEntriesAll, "sqlWriteRowsAll": sqlWriteRowsAll, "sqlTransitionAll": sqlTransitionAll, "sqlAttemptsAll": sqlAttemptsAll, "sqlDecisionsAll": sqlDecisionsAll, "sqlDispatchAll": sqlDispatchAll,
	"sqlCancelAll": sqlCancelAll, "sqlReviveAll": sqlReviveAll, "sqlUnblockAll": sqlUnblockAll, "sqlAuditAll": sqlAuditAll,
}

// Translate returns a statement in PostgreSQL's syntax.
func Translate(sql string) string { return conn.Translate(sql) }

// Prepare makes the server parse a statement.
func (db *DB) Prepare(ctx context.Context, sql string) error {
	return db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		_, err := c.Statement(sql)
		return err
	})
}

// Unsafe permits a server that runs with fsync = off.
func Unsafe() Option { return func(o *options) { o.unsafe = true } }

// Clock makes a store take its time from now.
func Clock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// BubbleClock makes a store take the time of this process; in a synctest bubble that is the
// bubble's time.
func BubbleClock() Option { return Clock(store.Now) }

// OtherMachine makes a store ignore the locks of this machine.
func OtherMachine() Option { return func(o *options) { o.elsewhere = true } }

// Kill makes the process of a worker that joined through db look dead.
func (db *DB) Kill(id store.WorkerID) { db.proofs.workers.Load().Kill(id) }

// ScanPage sets the number of tasks, jobs or keys in one page of a scan.
func ScanPage(n int) Option { return func(o *options) { o.scan = n } }

// PlansLast sets the lifetime of a connection's cached plans.
func PlansLast(d time.Duration) Option { return func(o *options) { o.plansLast = d } }

// Later opens a store as a later program with these additional migrations does.
func Later(sql ...string) Option { return func(o *options) { o.later = sql } }

// RawURL returns the URL that the store was opened with.
func (db *DB) RawURL() string { return db.src.config.ConnString() }

// AlarmAt lowers the thresholds of Health.
func AlarmAt(transaction, due time.Duration, dead int64) Option {
	return func(o *options) { o.bounds = bounds{transaction, dead, due} }
}

// StmtIDs returns the IDs of a list that a caller's transaction selects.
func StmtIDs(ctx context.Context, tx *sql.Tx, ids []task.ID) (got []task.ID, err error) {
	st := (&sqlConn{ctx: ctx, tx: tx, cache: sqlstmt.NewCache()}).StmtIDs("SELECT u.id FROM unnest(?1::bytea[]) AS u(id) WHERE u.id IN (/*ids*/?1)", 1, ids)
	for st.Next() {
		got = append(got, st.ColID(0))
	}
	return got, st.Done()
}

// ClaimTasks leases tasks as a claim does that read them with these epochs.
func (db *DB) ClaimTasks(ctx context.Context, ns string, rows ...sqlstore.ClaimTask) (n int, err error) {
	err = db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		var fx sqlstore.Effects
		t, err := db.begun(c, ns, &fx, 0)
		if err == nil {
			l := sqlstore.ClaimLease{ID: task.NewLeaseID(), Name: "host:1", Expires: t.Now().UnixMicro() + 1}
			n, err = db.database(c).ClaimTasks(t, &l, 1, rows)
		}
		return err
	})
	return n, err
}

// CountClaim claims tasks and returns the number of round trips.
func (db *DB) CountClaim(ctx context.Context, ns string, req store.ClaimRequest) (got store.ClaimResult, rounds int, err error) {
	err = db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		rounds = c.Rounds()
		var fx sqlstore.Effects
		t, err := db.begun(c, ns, &fx, 0, claimReads...)
		if err == nil {
			got, err = t.Claim(&req)
		}
		rounds = c.Rounds() - rounds
		return err
	})
	return got, rounds, err
}

// RememberedBound returns the bound of a remembered lane: the store's claims look for no earlier
// row of it.
func RememberedBound(db *DB, ns string, k lane.Key) int64 {
	return db.lanes.Lanes(ns, func(other lane.Key) bool { return other == k })[0].Bound
}

// RememberLane makes the store's claims assume that a namespace has only this lane, as if reading
// the lanes took long.
func RememberLane(db *DB, ns string, k lane.Key, bound int64) {
	db.lanes.Replace(ns, map[lane.Key]int64{k: bound}, lane.Reading{Since: db.lanes.Version(), Now: bound, At: time.Now().Add(time.Hour), Took: time.Minute})
}

// ReadLanes makes the next claim in a namespace read the lanes, even if the last read took long.
func ReadLanes(db *DB, ns string) { db.lanes.Replace(ns, nil, lane.Reading{}) }
