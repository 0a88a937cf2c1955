package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/goweaver/weaver/store/sqlite/internal/commit"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	defaultReapLimit = 1000
	// silentTTLs is after how many TTLs of silence a worker is forgotten.
	silentTTLs = 10
)

// Reap implements store.Worker. A worker whose process is dead, as its free
// lock shows, loses its leases at once; other leases end when they expire.
func (db *DB) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if req.Limit <= 0 {
		req.Limit = defaultReapLimit
	}
	dead, err := db.deadWorkers(ctx, ns)
	if err != nil {
		return store.ReapResult{}, err
	}
	defer dead.close()
	var got store.ReapResult
	var forgotten []string
	err = db.write(ctx, "reap", ns, min(req.Limit, commit.MaxWeight), func(t *tx) (err error) {
		r := reaping{tx: t, moves: newMoves(t), req: &req, dead: dead}
		got, err = r.run()
		forgotten = r.forgotten
		return err
	})
	if err != nil {
		return store.ReapResult{}, err
	}
	for _, id := range forgotten {
		dead.remove(db.lockPath(ns, store.WorkerID(id)))
	}
	return got, nil
}

// reaping is one reap.
type reaping struct {
	tx         *tx
	moves      *moves
	req        *store.ReapRequest
	dead       deadLocks
	eligibleAt int64 // from when on the caller is eligible to reap silent workers; ≤ now: it is
	warmingUp  bool  // an expired lease was not reaped because it is not
	soonest    int64 // when the next lease may expire
	forgotten  []string
}

func (r *reaping) run() (store.ReapResult, error) {
	res := store.ReapResult{Next: -1}
	r.soonest = math.MaxInt64
	var err error
	if r.eligibleAt, err = r.readEligibleAt(); err != nil {
		return res, err
	}
	if res.Reaped, err = r.leases(); err != nil {
		return res, err
	}
	// Tasks that ended because of a need have no deadline any more.
	if err := r.moves.propagate(); err != nil {
		return res, err
	}
	if res.Expired, err = r.deadlines(); err != nil {
		return res, err
	}
	if err := r.moves.propagate(); err != nil {
		return res, err
	}
	if err := r.forgetWorkers(); err != nil {
		return res, err
	}
	if err := r.nextTimer(); err != nil {
		return res, err
	}
	res.WarmingUp = r.warmingUp
	if r.soonest != math.MaxInt64 {
		res.Next = time.Duration(max(0, r.soonest-r.tx.mic)) * time.Microsecond
	}
	return res, nil
}

const sqlWorker = `SELECT last_seen, heartbeats_since, ttl FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2`

// readEligibleAt returns from when on the caller is eligible to reap: once its
// own heartbeats came without a gap for a TTL, and no process held the write
// lock for so long that others may still wait to renew. Before, the silence of
// other workers may be the store's.
func (r *reaping) readEligibleAt() (int64, error) {
	st := r.tx.stmt(sqlWorker).Text(1, r.tx.ns).Text(2, string(r.req.Worker))
	ttl := r.req.TTL.Microseconds()
	at := r.tx.mic + ttl
	if st.One() {
		if seen, since := st.ColInt(0), st.ColInt(1); r.tx.mic >= seen && r.tx.mic-seen <= ttl/2 {
			at = since + ttl
		}
	}
	if until, d := r.tx.db.writer.Stalled(); d > r.req.TTL/3 {
		at = max(at, r.tx.mic+ttl-time.Since(until).Microseconds())
	}
	return at, st.Done()
}

func (r *reaping) eligible() bool { return r.eligibleAt <= r.tx.mic }

var (
	sqlDueClaims = `
SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1 AND check_at <= ?2 ORDER BY check_at LIMIT ?3`
	sqlClaimsOf = `SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1 AND worker_id = ?2`
	sqlRearm    = `UPDATE weaver_claims SET check_at = ?3 WHERE namespace = ?1 AND lease_id = ?2`
	sqlLeaseEnd = `SELECT lease_expires_at FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND lease_id = ?3`
)

// leases takes expired leases and those of dead workers, found through the
// claims that granted them.
func (r *reaping) leases() ([]store.Reaped, error) {
	rows, err := claimColumns.All(r.tx.stmt(sqlDueClaims).Text(1, r.tx.ns).Int(2, r.tx.mic).Int(3, int64(r.req.Limit)))
	if err != nil {
		return nil, err
	}
	for id := range r.dead {
		of, err := claimColumns.All(r.tx.stmt(sqlClaimsOf).Text(1, r.tx.ns).Text(2, string(id)))
		if err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	var reaped []store.Reaped
	for i := range rows {
		if reaped, err = r.claim(&rows[i], reaped); err != nil {
			return nil, err
		}
	}
	return reaped, nil
}

// claim takes what is over of one claim. A claim whose tasks all ended goes; a
// claim with living leases is looked at again when the first of them ends.
func (r *reaping) claim(c *claimRow, reaped []store.Reaped) ([]store.Reaped, error) {
	_, dead := r.dead[store.WorkerID(c.worker)]
	again := int64(math.MaxInt64)
	for i := range c.ids {
		st := r.tx.stmt(sqlLeaseEnd).Text(1, r.tx.ns).ID(2, &c.ids[i]).Lease(3, &c.lease)
		runs := st.One()
		var expires int64
		if runs {
			expires = st.ColInt(0)
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
		switch {
		case !runs:
		case expires <= r.tx.mic && !dead && !r.eligible():
			r.warmingUp = true
			again = min(again, expires)
		case expires > r.tx.mic && !dead, len(reaped) >= r.req.Limit:
			again, r.soonest = min(again, expires), min(r.soonest, expires)
		default:
			got, err := r.lease(&c.ids[i], c.worker, expires, dead)
			if err != nil {
				return nil, err
			}
			reaped = append(reaped, got)
		}
	}
	if again == math.MaxInt64 {
		return reaped, r.tx.stmt(sqlDeleteClaim).Text(1, r.tx.ns).Lease(2, &c.lease).Run()
	}
	return reaped, r.tx.stmt(sqlRearm).Text(1, r.tx.ns).Lease(2, &c.lease).Int(3, again).Run()
}

const sqlSetCrashes = `
UPDATE weaver_tasks SET crash_count = crash_count + ?3, quarantine_losses = quarantine_losses + ?4 WHERE namespace = ?1 AND task_id = ?2`

// lease takes one lease away and says what becomes of the task (R7).
func (r *reaping) lease(id *task.ID, worker string, expires int64, dead bool) (store.Reaped, error) {
	w, err := r.moves.look(id)
	if err != nil || w == nil {
		return store.Reaped{}, err
	}
	var failure *task.Error
	deadline := conn.Instant(w.deadline)
	switch {
	case w.asked:
		failure = store.CancelError(w.cancelled, w.by, w.reason, deadline)
	case w.deadline != 0 && w.deadline <= r.tx.mic:
		failure = store.CancelError(task.KindDeadline, "", "", deadline)
	}
	e := transition{state: task.Ready, outcome: task.OutcomeLeaseLost, readyAt: r.tx.now}
	crash := false
	if failure != nil {
		e.state, e.failure = task.Cancelled, failure
	} else if crash, err = r.crashed(w, worker, expires, dead); err != nil {
		return store.Reaped{}, err
	} else if crash && r.req.CrashBudget >= 0 && w.crashes+1 >= r.req.CrashBudget {
		e.state = task.Failed
		e.failure = store.PoisonError(w.crashes + 1)
	}
	_, err = r.moves.revoke(w, &e, store.LeaseLostError(w.worker, conn.Instant(expires)))
	return store.Reaped{Task: *id, State: e.state, Crash: crash}, err
}

// crashed counts the loss of a lease against the task, and reports whether the
// task counts as its cause: only if its process stopped, and, once the task is
// quarantined, only if it ran isolated.
func (r *reaping) crashed(w *taskRow, worker string, expires int64, dead bool) (bool, error) {
	if !dead {
		if stopped, err := r.stopped(worker, expires); err != nil || !stopped {
			return false, err
		}
	}
	crash, loss := w.crashes < quarantineAfter || w.isolated, int64(0)
	if !crash {
		loss = 1
	}
	return crash, r.tx.stmt(sqlSetCrashes).Text(1, r.tx.ns).ID(2, &w.id).Bool(3, crash).Int(4, loss).Run()
}

// stopped reports whether a worker fell silent before the end of a lease. One
// whose heartbeat came when the lease should have been renewed runs, and lost
// it for another reason: it never learned of the lease, or the store was
// restored. One that left, or whose row a restore took, did not crash.
func (r *reaping) stopped(worker string, expires int64) (bool, error) {
	st := r.tx.stmt(sqlWorker).Text(1, r.tx.ns).Text(2, worker)
	stopped := st.One() && st.ColInt(0) < expires-st.ColInt(2)/2
	return stopped, st.Done()
}

const (
	sqlDueTimers = `SELECT due_at, task_id FROM weaver_timers WHERE namespace = ?1 AND due_at <= ?2 ORDER BY due_at, task_id LIMIT ?3`
	sqlAskTime   = `
UPDATE weaver_tasks SET cancel_requested = 1, cancel_kind = 'deadline' WHERE namespace = ?1 AND task_id = ?2 AND cancel_requested = 0`
)

// deadlines ends what did not start in time, and asks what runs to end.
func (r *reaping) deadlines() ([]task.ID, error) {
	type timer struct {
		due int64
		id  task.ID
	}
	var timers []timer
	st := r.tx.stmt(sqlDueTimers).Text(1, r.tx.ns).Int(2, r.tx.mic).Int(3, int64(r.req.Limit))
	for st.Next() {
		timers = append(timers, timer{st.ColInt(0), st.ColID(1)})
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	var expired []task.ID
	for i := range timers {
		tm := &timers[i]
		if err := r.tx.stmt(sqlDeleteTimer).Text(1, r.tx.ns).Int(2, tm.due).ID(3, &tm.id).Run(); err != nil {
			return nil, err
		}
		w, err := r.moves.look(&tm.id)
		if err != nil {
			return nil, err
		}
		if w == nil || w.contribution.state.Terminal() || w.asked {
			continue
		}
		if w.contribution.state == task.Running {
			err = r.tx.stmt(sqlAskTime).Text(1, r.tx.ns).ID(2, &tm.id).Run()
			r.tx.fx.Notice.Cancels = append(r.tx.fx.Notice.Cancels, tm.id)
		} else {
			err = r.moves.end(w, task.Cancelled, store.CancelError(task.KindDeadline, "", "", conn.Instant(w.deadline)))
		}
		if err != nil {
			return nil, err
		}
		expired = append(expired, tm.id)
	}
	return expired, nil
}

const (
	sqlForget = `
DELETE FROM weaver_workers WHERE namespace = ?1 AND last_seen < ?2 - ?3 * max(ttl, ?4)
AND worker_id NOT IN (SELECT worker_id FROM weaver_claims WHERE namespace = ?1) RETURNING worker_id`
	sqlForgetDead = `
DELETE FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2
AND worker_id NOT IN (SELECT worker_id FROM weaver_claims WHERE namespace = ?1) RETURNING worker_id`
)

// forgetWorkers removes workers that hold nothing and are gone: dead, or silent
// for long, when the caller is eligible.
func (r *reaping) forgetWorkers() error {
	if r.eligible() {
		if err := r.forgetSilent(); err != nil {
			return err
		}
	}
	for id := range r.dead {
		st := r.tx.stmt(sqlForgetDead).Text(1, r.tx.ns).Text(2, string(id))
		if st.One() {
			r.forgotten = append(r.forgotten, string(id))
		}
		if err := st.Done(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reaping) forgetSilent() error {
	silent := func(sql string) *conn.Stmt {
		return r.tx.stmt(sql).Text(1, r.tx.ns).Int(2, r.tx.mic).Int(3, silentTTLs).Duration(4, r.req.TTL)
	}
	if err := r.tidyClaims(silent(sqlClaimsOfSilent)); err != nil {
		return err
	}
	st := silent(sqlForget)
	for st.Next() {
		r.forgotten = append(r.forgotten, st.ColText(0))
	}
	return st.Done()
}

var sqlClaimsOfSilent = `
SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1
AND worker_id IN (SELECT worker_id FROM weaver_workers WHERE namespace = ?1 AND last_seen < ?2 - ?3 * max(ttl, ?4))`

// tidyClaims deletes the claims of silent workers whose tasks do not run. Rows
// whose tasks ended through other processes would otherwise look like leases
// until their time comes.
func (r *reaping) tidyClaims(of *conn.Stmt) error {
	rows, err := claimColumns.All(of)
	for i := 0; i < len(rows) && err == nil; i++ {
		c, runs := &rows[i], false
		for j := 0; j < len(c.ids) && err == nil && !runs; j++ {
			st := r.tx.stmt(sqlLeaseEnd).Text(1, r.tx.ns).ID(2, &c.ids[j]).Lease(3, &c.lease)
			runs = st.One()
			err = st.Done()
		}
		if err == nil && !runs {
			err = r.tx.stmt(sqlDeleteClaim).Text(1, r.tx.ns).Lease(2, &c.lease).Run()
		}
	}
	return err
}

const (
	sqlNextClaim = `SELECT check_at FROM weaver_claims WHERE namespace = ?1 AND check_at > ?2 ORDER BY check_at LIMIT 1`
	sqlNextTimer = `SELECT due_at FROM weaver_timers WHERE namespace = ?1 ORDER BY due_at LIMIT 1`
)

// nextTimer finds when the next lease or deadline can expire. Until the
// caller is eligible a lease does not end before that.
func (r *reaping) nextTimer() error {
	after := int64(math.MinInt64)
	if r.warmingUp {
		after, r.soonest = r.tx.mic, min(r.soonest, r.eligibleAt)
	}
	for _, st := range []*conn.Stmt{
		r.tx.stmt(sqlNextClaim).Text(1, r.tx.ns).Int(2, after),
		r.tx.stmt(sqlNextTimer).Text(1, r.tx.ns),
	} {
		if st.One() {
			r.soonest = min(r.soonest, st.ColInt(0))
		}
		if err := st.Done(); err != nil {
			return err
		}
	}
	return nil
}
