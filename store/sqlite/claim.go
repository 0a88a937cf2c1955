package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// suspectAfter is the crash_count from which on a task is a suspect (R7).
const suspectAfter = 2

// Claim implements store.Worker.
func (db *DB) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return db.ClaimOrWait(ctx, ns, req, 0, nil)
}

// ClaimOrWait implements store.WaitingClaimer.
func (db *DB) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, limit time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	if req.LeaseID.IsZero() {
		return store.ClaimResult{}, errors.New("claim tasks: the lease id is zero")
	}
	const doing = "claim tasks"
	began := time.Now()
	claimInto := func(got *store.ClaimResult) func(*tx) error {
		return func(t *tx) (err error) {
			cl := claim{tx: t, req: &req, suspects: req.Quarantined, company: req.QuarantineLimit}
			*got, err = cl.run()
			return err
		}
	}
	var got, later store.ClaimResult
	o, wait := &op{ns: ns, run: claimInto(&got)}, (*parked)(nil)
	if limit > 0 && !req.Again && req.IDs == nil {
		wait = &parked{o: &op{ns: ns, run: claimInto(&later)}, done: make(chan error, 1)}
		o.run = func(t *tx) error {
			err := claimInto(&got)(t)
			if willing(&got) {
				t.fx.park = wait
			}
			return err
		}
	}
	err := db.submit(ctx, doing, &batch.Op[*op]{Do: o, Weight: max(1, req.Limit)})
	switch {
	case err != nil:
		return store.ClaimResult{}, err
	case wait == nil || !willing(&got):
		return got, nil
	}
	answered, err := db.await(ctx, wait, limit, wake, got.Next)
	switch {
	case err != nil:
		return store.ClaimResult{}, db.translate(doing, err)
	case !answered:
		return store.ClaimResult{Now: store.Now(), Next: -1, Waited: max(1, time.Since(began))}, nil
	}
	later.Waited = wait.boarded.Sub(began)
	return later, nil
}

// willing reports whether a claim may be parked: rows that are due, but not
// for this worker now, would be met again by every group.
func willing(got *store.ClaimResult) bool { return len(got.Tasks) == 0 && got.Next != 0 }

// claim is one claim call.
type claim struct {
	*tx
	req      *store.ClaimRequest
	paused   map[string]bool
	left     map[string]int // free slots by queue; nil: no limits
	suspects int            // that the worker runs, with those taken here
	company  int            // the smallest company of those; 0: no limit
	taken    []store.Claimed
	first    map[int][]task.ID // plain ones taken for the first time, by code version: not yet written
	keys     map[string]bool   // of the tasks taken
	stale    time.Duration     // others wrote, and their lanes are read this much later
}

// run claims what is due. Crash after the commit: the leases expire, or the
// caller looks them up by its lease id.
func (c *claim) run() (store.ClaimResult, error) {
	if err := c.readGeneration(); err != nil {
		return store.ClaimResult{}, err
	}
	if err := c.readPaused(); err != nil {
		return store.ClaimResult{}, err
	}
	var err error
	if c.stale, err = c.readLanes(); err != nil {
		return store.ClaimResult{}, err
	}
	if c.req.Queues != nil {
		c.left = make(map[string]int, len(c.req.Queues))
		for q, n := range c.req.Queues {
			c.left[q] = n
		}
	}
	switch {
	case c.req.Again:
		err = c.again()
	case c.req.IDs != nil:
		err = c.hinted()
	default:
		err = c.scan()
	}
	if err == nil {
		err = c.writeFirst()
	}
	if err == nil {
		err = c.wakeAll(c.keys)
	}
	if err == nil && !c.req.Again {
		err = c.insertClaim()
	}
	if err != nil {
		return store.ClaimResult{}, err
	}
	next, err := c.next()
	return store.ClaimResult{Tasks: c.taken, Now: c.now, Next: next}, err
}

const sqlPaused = `SELECT queue FROM weaver_paused_queues WHERE namespace = ?1`

func (c *claim) readPaused() error {
	st := c.stmt(sqlPaused).Text(1, c.ns)
	for st.Next() {
		if c.paused == nil {
			c.paused = make(map[string]bool)
		}
		c.paused[st.ColName(0)] = true
	}
	return st.Done()
}

// serves reports whether the worker asked for a lane that is not paused.
func (c *claim) serves(k laneKey) bool {
	if _, ok := c.req.Types[k.typ]; !ok || c.paused[k.queue] {
		return false
	}
	return c.req.Queues == nil || c.req.Queues[k.queue] > 0
}

func (c *claim) full() bool { return len(c.taken) >= c.req.Limit }

var sqlTask = `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// whole reads the rest of a candidate's task.
func (c *claim) whole(d *candidate) error {
	if d.fresh {
		return nil
	}
	st := c.stmt(sqlTask).Text(1, c.ns).ID(2, &d.id)
	if st.One() {
		d.payloads = scanTask(st.Row(), d.task)
	}
	t := d.task
	d.open = (t.State == task.Pending || t.State == task.Ready) && t.RemainingDeps == 0 && !t.CancelRequested
	return st.Done()
}

// try claims a candidate if it may run now. Otherwise its row stays (a
// deadline that the reaper will judge, a suspect among too many others) or
// goes to the waiters of its key.
func (c *claim) try(d *candidate) error {
	if err := c.whole(d); err != nil {
		return err
	}
	t := d.task
	switch {
	case !d.open:
		// Nothing here leaves a row to a task that is not claimable; left
		// alone it would be met for ever.
		_, err := c.undispatch(&d.id)
		return err
	case !c.inTime(t) || !c.maySuspect(t):
		return nil
	}
	if d.key != "" {
		if free, err := c.keyFree(d.key); err != nil {
			return err
		} else if !free {
			return c.await(&d.id, d.key, d.due)
		}
	}
	return c.take(d)
}

func (c *claim) inTime(t *task.Task) bool { return t.DeadlineAt.IsZero() || t.DeadlineAt.After(c.now) }

// maySuspect reports whether a task is no suspect, or one that may run now:
// neither it nor any that runs has company enough.
func (c *claim) maySuspect(t *task.Task) bool {
	if t.CrashCount < suspectAfter {
		return true
	}
	return c.suspects < c.allowed(t) && (c.company == 0 || c.suspects < c.company)
}

// allowed is how many suspects the worker may run at once when this one is
// among them: fewer with each loss it took part in, down to itself alone (R7).
func (c *claim) allowed(t *task.Task) int { return max(1, c.req.Slots/8>>min(t.QuarantineLosses, 62)) }

// complete adds what a handler needs beside the task's row.
func (c *claim) complete(got *store.Claimed, payloads bool) (err error) {
	t := &got.Task
	t.ReadyAt = time.Time{} // as readers see a running task
	got.Lease = task.Lease{Task: t.ID, Epoch: t.Epoch, ID: t.LeaseID, Generation: c.gen}
	if got.Quarantined = t.CrashCount >= suspectAfter; got.Quarantined {
		got.QuarantineLimit = c.allowed(t)
	}
	if !t.DeadlineAt.IsZero() {
		got.TimeLeft = t.DeadlineAt.Sub(c.now)
	}
	if t.AttemptNo > 1 || c.req.Again {
		if got.Steps, err = c.steps(&t.ID); err != nil {
			return err
		}
	}
	return c.fetchPayloads(t, payloads)
}

const sqlInsertClaim = `INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) VALUES (?1, ?2, ?3, ?4, ?5)`

// insertClaim writes the row by which the reaper finds the leases.
func (c *claim) insertClaim() error {
	if len(c.taken) == 0 {
		return nil
	}
	ids := make([]byte, 0, 16*len(c.taken))
	for i := range c.taken {
		ids = append(ids, c.taken[i].Task.ID[:]...)
	}
	c.fx.claimed = append(c.fx.claimed, claimMade{c.req.LeaseID, claimInfo{len(c.taken), c.req.Name, c.mic}})
	return c.stmt(sqlInsertClaim).Text(1, c.ns).Lease(2, &c.req.LeaseID).Text(3, string(c.req.Worker)).
		Int(4, c.expires()).Blob(5, ids).Run()
}

var (
	sqlClaimIDs  = `SELECT task_ids FROM weaver_claims WHERE namespace = ?1 AND lease_id = ?2`
	sqlHeldTasks = `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND lease_id = ?3`
)

// again returns what an earlier call with the same lease id still holds.
func (c *claim) again() error {
	st := c.stmt(sqlClaimIDs).Text(1, c.ns).Lease(2, &c.req.LeaseID)
	var ids []task.ID
	if st.One() {
		ids = st.ColIDs(0)
	}
	if err := st.Done(); err != nil {
		return err
	}
	for i := range ids {
		st := c.stmt(sqlHeldTasks).Text(1, c.ns).ID(2, &ids[i]).Lease(3, &c.req.LeaseID)
		var got store.Claimed
		var payloads bool
		held := st.One()
		if held {
			payloads = scanTask(st.Row(), &got.Task)
		}
		if err := st.Done(); err != nil {
			return err
		}
		if !held {
			continue
		}
		if err := c.complete(&got, payloads); err != nil {
			return err
		}
		c.taken = append(c.taken, got)
	}
	return nil
}
