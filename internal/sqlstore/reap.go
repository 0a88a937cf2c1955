package sqlstore

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Reap implements store.Core. A worker whose process is dead, as its free lock shows, loses
// its leases at once. Other workers lose them when they expire.
func (s *Store) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if req.Limit <= 0 {
		req.Limit = rules.DefaultReapLimit
	}
	dead, err := s.db.Dead(ctx, ns)
	if err != nil {
		return store.ReapResult{}, err
	}
	defer dead.Close()
	var got store.ReapResult
	var forgotten []store.WorkerID
	reap := func(t *Tx) (err error) {
		r := reaping{tx: t, moves: moves{tx: t}, req: &req, dead: dead.IDs()}
		if c, ok := dead.(Confirmer); ok {
			if r.dead, err = c.Confirm(t); err != nil {
				return err
			}
		}
		got, err = r.run()
		forgotten = r.forgotten
		return err
	}
	err = s.write(ctx, ns, Heavy, reap)
	if store.Refused(err) && s.storesRefused(ctx, ns) {
		err = s.write(ctx, ns, Heavy, reap)
	}
	if err != nil {
		return store.ReapResult{}, err
	}
	dead.Forget(forgotten)
	return got, nil
}

// reaping is one reap.
type reaping struct {
	tx         *Tx
	moves      moves
	req        *store.ReapRequest
	dead       []store.WorkerID // proven dead
	eligibleAt int64            // when the asking worker may take expired leases; ≤ now: it is eligible
	passedOver bool             // an expired lease was left because the worker is not eligible
	soonest    int64            // earliest possible end of the remaining leases
	forgotten  []store.WorkerID
	restored   bool // the store was restored: all leases are over, and no crash ended them
}

func (r *reaping) run() (store.ReapResult, error) {
	res := store.ReapResult{Next: -1}
	r.soonest = math.MaxInt64
	err := r.findEligible()
	if err != nil {
		return res, err
	}
	if res.Reaped, err = r.leases(); err != nil {
		return res, err
	}
	// Dependents that end here have no deadline to miss any more.
	if err := r.moves.propagate(); err != nil {
		return res, err
	}
	if res.Expired, err = r.deadlines(); err != nil {
		return res, err
	}
	if err := r.moves.propagate(); err != nil {
		return res, err
	}
	// A transaction that took leases does no chore.
	if res.Chores, err = r.chore(len(res.Reaped)+len(res.Expired) == 0); err != nil {
		return res, err
	}
	if err := r.forgetWorkers(); err != nil {
		return res, err
	}
	if res.NextDeadline, err = r.nextTimer(); err != nil {
		return res, err
	}
	res.WarmingUp = r.passedOver
	if r.soonest != math.MaxInt64 {
		res.Next = time.Duration(max(0, r.soonest-r.tx.mic)) * time.Microsecond
	}
	return res, nil
}

// findEligible sets eligibleAt.
func (r *reaping) findEligible() error {
	asks, err := r.tx.worker(r.req.Worker)
	if err != nil {
		return err
	}
	until, waited := r.tx.db.Stalled()
	stall := rules.Stall{Waited: waited, Ago: r.tx.at.Sub(until)}
	r.eligibleAt = rules.ReaperEligibleAt(asks, r.req.TTL, stall, r.tx.at).UnixMicro()
	return nil
}

// chore works on unfinished chores if bite is true, and reports whether chores remain.
func (r *reaping) chore(bite bool) (more bool, err error) {
	if bite {
		return r.tx.reapChore()
	}
	c, err := r.tx.firstChore()
	return c != nil, err
}

var workerColumns = sqlstmt.Columns[rules.Worker]{
	sqlstmt.Col("ttl", func(w *rules.Worker, r *sqlstmt.Row, i int) { w.TTL = r.Duration(i) }),
	sqlstmt.Col("last_seen", func(w *rules.Worker, r *sqlstmt.Row, i int) { w.LastSeen = r.Time(i) }),
	sqlstmt.Col("heartbeats_since", func(w *rules.Worker, r *sqlstmt.Row, i int) { w.Since = r.Time(i) }),
}

var sqlWorker = `SELECT ` + workerColumns.List() + ` FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2`

// worker returns the row of a worker, or nil.
func (t *Tx) worker(id store.WorkerID) (*rules.Worker, error) {
	return workerColumns.One(t.stmt(sqlWorker).Text(1, t.ns).Text(2, string(id)))
}

// eligible reports whether the asking worker may take expired leases.
func (r *reaping) eligible() bool { return r.eligibleAt <= r.tx.mic }

var (
	sqlDueClaims = `
SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1 AND check_at <= ?2 ORDER BY check_at LIMIT ?3`
	sqlClaimsOf = `SELECT ` + claimColumns.List() + ` FROM weaver_claims INDEXED BY weaver_claims_by_check WHERE namespace = ?1 AND worker_id = ?2`
	sqlRearm    = `UPDATE weaver_claims SET check_at = ?3 WHERE namespace = ?1 AND lease_id = ?2`
	sqlLeaseEnd = `SELECT lease_expires_at FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND lease_id = ?3`
	sqlHold     = `SELECT undo FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND undo IS NOT NULL AND state = 'pending'`
)

// leases takes expired leases and leases of dead workers. It finds them through their claims.
func (r *reaping) leases() ([]store.Reaped, error) {
	rows, err := claimColumns.All(r.tx.stmt(sqlDueClaims).Text(1, r.tx.ns).Int(2, r.tx.mic).Int(3, int64(r.req.Limit)))
	if err != nil {
		return nil, err
	}
	for _, id := range r.dead {
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

// claim takes the ended leases of one claim. It deletes a claim whose tasks all ended. It
// checks a claim with valid leases, or with a lease that delays an undo, again at the earliest
// end of these leases.
func (r *reaping) claim(c *claimRow, reaped []store.Reaped) ([]store.Reaped, error) {
	dead := slices.Contains(r.dead, store.WorkerID(c.worker))
	over := dead || r.restored
	again := int64(math.MaxInt64)
	for i := 0; i < len(c.ids); i++ {
		st := r.tx.stmt(sqlLeaseEnd).Text(1, r.tx.ns).ID(2, &c.ids[i]).Lease(3, &c.lease)
		runs := st.One()
		var expires int64
		if runs {
			expires = st.ColInt(0)
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
		if !runs {
			until, err := r.hold(&c.ids[i], c.lease, dead)
			if err != nil {
				return nil, err
			}
			again = min(again, until)
			continue
		}
		switch {
		case expires <= r.tx.mic && !over && !r.eligible():
			r.passedOver = true
			again = min(again, expires)
		case expires > r.tx.mic && !over, len(reaped) >= r.req.Limit:
			again, r.soonest = min(again, expires), min(r.soonest, expires)
		default:
			if fresh, err := r.tx.db.Tasks(r.tx, c.ids[i]); err != nil {
				return nil, err
			} else if fresh { // it may have been renewed
				i--
				continue
			}
			got, err := r.lease(&c.ids[i], c.worker, expires, dead)
			if err != nil {
				return nil, err
			}
			reaped = append(reaped, got)
			if r.restored { // its attempt may still run, and delay the undo
				again = min(again, expires)
			}
		}
	}
	if again == math.MaxInt64 {
		return reaped, r.tx.stmt(sqlDeleteClaim).Text(1, r.tx.ns).Lease(2, &c.lease).Run()
	}
	return reaped, r.tx.stmt(sqlRearm).Text(1, r.tx.ns).Lease(2, &c.lease).Int(3, again).Run()
}

// hold returns the instant until which a revoked lease delays the undo of its task, or the end
// of time if it does not. If the process is dead, hold ends the delay and the undo begins now.
func (r *reaping) hold(id *task.ID, lease task.LeaseID, dead bool) (int64, error) {
	st := r.tx.stmt(sqlHold).Text(1, r.tx.ns).ID(2, id)
	var phase *task.UndoPhase
	if st.One() {
		phase = st.Row().Phase(0)
	}
	err := st.Done()
	switch {
	case err != nil || !rules.Holds(phase, lease, r.tx.at):
		return math.MaxInt64, err
	case !dead:
		return phase.NotBefore.UnixMicro(), nil
	}
	if _, err = r.tx.db.Tasks(r.tx, *id); err != nil {
		return 0, err
	}
	row, err := r.moves.taskRow(id)
	if err != nil || row == nil || row.contribution.State != task.Pending || !rules.Holds(row.undo, lease, r.tx.at) {
		return math.MaxInt64, err
	}
	to := rules.FreeHold(row.undo, r.tx.at)
	if err := r.moves.unschedule(row); err != nil {
		return 0, err
	}
	if err := r.moves.writeBegin(id, &to); err != nil {
		return 0, err
	}
	r.moves.pending.Dispatch(row.dispatchRow(to.ReadyAt))
	return math.MaxInt64, nil
}

const sqlSetCrashes = `
UPDATE weaver_tasks SET crash_count = crash_count + ?3, quarantine_losses = quarantine_losses + ?4 WHERE namespace = ?1 AND task_id = ?2`

// lease takes one lease and decides the next state of the task (R7).
func (r *reaping) lease(id *task.ID, worker string, expires int64, dead bool) (store.Reaped, error) {
	row, err := r.moves.taskRow(id)
	if err != nil || row == nil {
		return store.Reaped{}, err
	}
	end := sqlstmt.Instant(expires)
	failure := rules.LeaseLostFailure(row.worker, end, r.tx.at)
	if r.restored {
		failure = rules.RestoredFailure(row.worker)
	} else if !dead {
		w, err := r.tx.worker(store.WorkerID(worker))
		if err != nil {
			return store.Reaped{}, err
		}
		dead = w.Stopped(end)
	}
	loss := rules.ResolveLoss(&rules.LostLease{
		Stopped: dead, Crashes: row.crashes, Alone: row.isolated, Cancel: row.cancelRequest(), Deadline: row.deadlineAt(),
		Created: row.createdAt, Phase: row.undo, Key: row.key != "",
	}, r.req.CrashBudget, r.tx.at)
	u := row.undoable()
	var notBefore time.Time
	if r.restored { // its attempt may still run
		u.Hold, notBefore = row.leaseID, end
	}
	loss.BeginUndo(u, notBefore, r.tx.at)
	if counts := loss.Crash && row.undo == nil; counts || loss.QuarantineLoss {
		err := r.tx.stmt(sqlSetCrashes).Text(1, r.tx.ns).ID(2, id).Bool(3, counts).Bool(4, loss.QuarantineLoss).Run()
		if err != nil {
			return store.Reaped{}, err
		}
	}
	err = r.moves.revoke(row, &loss.Transition, failure)
	return store.Reaped{Task: *id, State: loss.State, Crash: loss.Crash}, err
}

const (
	sqlDueTimers   = `SELECT due_at, task_id FROM weaver_timers WHERE namespace = ?1 AND due_at <= ?2 ORDER BY due_at, task_id LIMIT ?3`
	sqlAskDeadline = `
UPDATE weaver_tasks SET cancel_requested = 1, cancel_kind = 'deadline' WHERE namespace = ?1 AND task_id = ?2 AND cancel_requested = 0`
)

// deadlines ends tasks past their deadlines, and asks running ones to end.
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
		row, err := r.moves.taskRow(&tm.id)
		if err != nil {
			return nil, err
		}
		if row == nil || row.contribution.State.Terminal() || row.asked || row.undo != nil {
			continue
		}
		if err := r.deadline(row); err != nil {
			return nil, err
		}
		expired = append(expired, tm.id)
	}
	return expired, nil
}

// deadline ends a task whose deadline has passed, or asks it to end.
func (r *reaping) deadline(row *taskRow) error {
	ask := func() error { return r.tx.stmt(sqlAskDeadline).Text(1, r.tx.ns).ID(2, &row.id).Run() }
	if rules.ResolveEnd(&rules.Unfinished{State: row.contribution.State, Phase: row.undo}) == rules.EndAsked {
		r.tx.fx.Notice.Cancels = append(r.tx.fx.Notice.Cancels, row.id)
		return ask()
	}
	to := rules.Transition{State: task.Cancelled, Failure: rules.DeadlineFailure(row.deadlineAt())}
	begins := to.BeginUndo(row.undoable(), time.Time{}, r.tx.at)
	if err := r.moves.end(row, &to); err != nil || !begins {
		return err
	}
	return ask()
}

const (
	sqlForget = `
DELETE FROM weaver_workers WHERE namespace = ?1 AND last_seen < ?2 - ?3 * CASE WHEN ttl > ?4 THEN ttl ELSE ?4 END
AND worker_id NOT IN (SELECT worker_id FROM weaver_claims WHERE namespace = ?1)
AND worker_id NOT IN (SELECT locked_by FROM weaver_outbox_orders WHERE namespace = ?1 AND status = 'sending') RETURNING worker_id`
	sqlForgetDead = `
DELETE FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2
AND worker_id NOT IN (SELECT worker_id FROM weaver_claims WHERE namespace = ?1)
AND worker_id NOT IN (SELECT locked_by FROM weaver_outbox_orders WHERE namespace = ?1 AND status = 'sending') RETURNING worker_id`
)

// forgetWorkers deletes workers without leases that are dead. If the asking worker is eligible
// to reap, it also deletes workers that were silent for long.
func (r *reaping) forgetWorkers() error {
	if r.eligible() {
		if err := r.forgetSilent(); err != nil {
			return err
		}
	}
	for _, id := range r.dead {
		st := r.tx.stmt(sqlForgetDead).Text(1, r.tx.ns).Text(2, string(id))
		if st.One() {
			r.forgotten = append(r.forgotten, id)
		}
		if err := st.Done(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reaping) forgetSilent() error {
	silent := func(sql string) *sqlstmt.Stmt {
		return r.tx.stmt(sql).Text(1, r.tx.ns).Int(2, r.tx.mic).Int(3, rules.ForgetAfter).Duration(4, r.req.TTL)
	}
	if err := r.tidyClaims(silent(sqlClaimsOfSilent)); err != nil {
		return err
	}
	st := silent(sqlForget)
	for st.Next() {
		r.forgotten = append(r.forgotten, store.WorkerID(st.ColText(0)))
	}
	return st.Done()
}

var sqlClaimsOfSilent = `
SELECT ` + claimColumns.List() + ` FROM weaver_claims WHERE namespace = ?1
AND worker_id IN (SELECT worker_id FROM weaver_workers WHERE namespace = ?1 AND last_seen < ?2 - ?3 * CASE WHEN ttl > ?4 THEN ttl ELSE ?4 END)`

// tidyClaims deletes ended claims of silent workers. Rows whose tasks ended through other
// processes would otherwise look like leases until they expire.
func (r *reaping) tidyClaims(of *sqlstmt.Stmt) error {
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

// nextTimer finds the next possible end of a lease or deadline, and returns the time to the
// next deadline (0: there is no deadline). For a worker that is not eligible yet, no lease
// ends before it becomes eligible.
func (r *reaping) nextTimer() (time.Duration, error) {
	after := int64(math.MinInt64)
	if r.passedOver {
		after, r.soonest = r.tx.mic, min(r.soonest, r.eligibleAt)
	}
	claim, found, err := first(r.tx.stmt(sqlNextClaim).Text(1, r.tx.ns).Int(2, after))
	if err != nil {
		return 0, err
	}
	if found {
		r.soonest = min(r.soonest, claim)
	}
	due, found, err := first(r.tx.stmt(sqlNextTimer).Text(1, r.tx.ns))
	if err != nil || !found {
		return 0, err
	}
	r.soonest = min(r.soonest, due)
	return max(time.Duration(due-r.tx.mic)*time.Microsecond, 1), nil
}

// first returns the integer in the first row, and whether there is a row.
func first(st *sqlstmt.Stmt) (value int64, found bool, err error) {
	if found = st.One(); found {
		value = st.ColInt(0)
	}
	return value, found, st.Done()
}
