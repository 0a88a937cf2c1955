package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Claim implements store.Core.
func (s *Store) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if err := CheckClaim(&req); err != nil {
		return store.ClaimResult{}, err
	}
	var got store.ClaimResult
	err := s.write(ctx, ns, max(1, req.Limit), func(t *Tx) (err error) {
		got, err = t.Claim(&req)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	return got, nil
}

// CheckClaim refuses a malformed request.
func CheckClaim(req *store.ClaimRequest) error {
	if req.LeaseID.IsZero() {
		return errors.New("the lease id is zero")
	}
	return nil
}

// Claim makes a claim in a transaction.
func (t *Tx) Claim(req *store.ClaimRequest) (store.ClaimResult, error) {
	cl := claim{tx: t, req: req, quarantine: rules.NewQuarantine(req)}
	return cl.run()
}

// claim is one claim call.
type claim struct {
	tx     *Tx
	req    *store.ClaimRequest
	paused map[string]bool // paused queues

	pausedTypes map[string]bool
	slots       map[string]int // free slots by queue; nil: unlimited
	quarantine  rules.Quarantine
	unclaimable map[task.ID]bool // jobs whose tasks may not be claimed before a chore is done
	taken       []store.Claimed
	leases      map[int][]ClaimTask // unwritten leases of the taken tasks, by code version
	steps       []task.ID           // taken tasks that may have steps, not read yet
	stored      []task.ID           // taken tasks with out-of-line texts, not read yet
	keys        map[string]bool     // of the taken tasks
	looked      int                 // due rows that were taken, moved or left
	over        []task.ID           // rows that move to the waiters, not written yet
	fullKeys    map[string]bool     // keys known to be full
	stopped     bool                // the row limit was reached, and rows remain
	last        store.ClaimPlace    // place of the last row within the limit
	stale       time.Duration       // external writes occurred; the lanes are read again after this time
	seen        lane.State          // a lane whose first row was read in passing, or zero
	first       int64               // due time of that first row, until the lane changes
	leaves      bool                // rows whose hint was sent are left (ClaimRequest.LeaveSent)
	limits      *limits             // the set limits
	gate        map[string]*gate    // limits of the lanes that were looked at
	unread      []string            // gates whose state is not read yet
	running     runningOf           // running tasks, and those taken; nil: not read
	locked      bool                // no other claim counts for limits
	refused     bool                // another claim counts for limits
	closed      map[lane.Key]int64  // lanes whose limits are closed until an instant
	remembers   bool                // the lanes are from an earlier claim, although external writes may have occurred
}

// run claims due tasks. Crash after the commit: the leases expire, or the caller looks them up
// by its lease ID.
func (c *claim) run() (store.ClaimResult, error) {
	if err := c.tx.readGeneration(); err != nil {
		return store.ClaimResult{}, err
	}
	if err := c.readPaused(); err != nil {
		return store.ClaimResult{}, err
	}
	var err error
	if c.unclaimable, err = c.tx.unclaimable(); err != nil {
		return store.ClaimResult{}, err
	}
	if err := c.readLanes(); err != nil {
		return store.ClaimResult{}, err
	}
	if c.req.Queues != nil {
		c.slots = make(map[string]int, len(c.req.Queues))
		for q, n := range c.req.Queues {
			c.slots[q] = n
		}
	}
	switch {
	case c.req.Again:
		err = c.again()
	case c.req.IDs != nil:
		err = c.hinted()
	default:
		c.leaves = c.req.LeaveSent
		err = c.scan()
		if err == nil && c.remembers && c.unused() {
			if err = c.forget(); err == nil {
				err = c.scan()
			}
		}
		if err == nil && c.leaves && c.unused() {
			c.leaves = false
			err = c.scan()
		}
	}
	if err == nil {
		err = c.writeLeases()
	}
	if err == nil {
		err = c.writeGates()
	}
	if err == nil {
		err = c.tx.await(c.over)
	}
	if err == nil {
		err = c.tx.wakeKeys(c.keys)
	}
	if err == nil && !c.req.Again {
		err = c.insertClaim()
	}
	if err == nil {
		err = c.readBeside()
	}
	if err != nil {
		return store.ClaimResult{}, err
	}
	if c.stopped {
		return c.cutShort(), nil
	}
	res := store.ClaimResult{Tasks: c.taken, Now: c.tx.at, Next: -1}
	switch {
	case c.remembers && !c.quarantine.Closed(): // more tasks are due, or the next claim reads the lanes
		res.Next = 0
	case c.tx.bulk != nil && !c.req.Again && len(c.taken) >= max(c.req.Limit, manyTaken):
		res.Next = 0
	case !c.quarantine.Closed():
		res.Next, err = c.next()
	}
	if res.AloneDue = c.quarantine.PassedOver(); res.AloneDue {
		c.tx.fx.Answer() // the worker must learn of it
	}
	return res, err
}

// unused reports whether the claim has changed no row and may read further ones.
func (c *claim) unused() bool { return len(c.taken) == 0 && len(c.over) == 0 && !c.stopped }

// manyTaken is the number of taken tasks from which on a full claim does not search for the
// next due row. On PostgreSQL that search passes over all rows that the claim deleted.
const manyTaken = 32

// readLanes reads the lanes or, for a claim that reads all lanes in order, reuses the
// remembered lanes.
func (c *claim) readLanes() (err error) {
	if c.stale, err = c.tx.readLanes(); err != nil {
		return err
	}
	c.remembers = c.stale > 0 && c.tx.db.Lanes().Unnoticed
	if c.remembers && (c.req.IDs != nil || c.req.Again) {
		return c.forget()
	}
	return nil
}

// forget replaces the remembered lanes by a fresh read.
func (c *claim) forget() error {
	c.stale, c.remembers = 0, false
	return c.tx.replaceLanes()
}

// readPaused reads the paused queues and types, and the limits; a nil map means that nothing is
// paused.
func (c *claim) readPaused() error {
	queues, types, revision, err := c.tx.restrictions()
	if err != nil {
		return err
	}
	c.paused, c.pausedTypes = setOf(queues), setOf(types)
	var read bool
	c.limits, read, err = c.tx.limitsAt(c.tx.fx.memory, revision)
	if read {
		c.tx.db.Lanes().OpenAll(c.tx.ns)
	}
	return err
}

// serves reports whether the worker asked for a lane and the lane is not paused.
func (c *claim) serves(k lane.Key) bool {
	return rules.Lane(c.req, k.Queue, k.Type) && !c.paused[k.Queue] && !c.pausedTypes[k.Type]
}

// full reports whether the claim may take no further task.
func (c *claim) full() bool { return len(c.taken) >= c.req.Limit || c.quarantine.Closed() }

var (
	sqlTask      = `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlTakenTask = sqlTask + ` /*lock*/`
)

// readRest reads the rest of a candidate's task with sqlTask, or with sqlTakenTask before the
// task is taken. sqlTakenTask locks the row, so that no other transaction replaces its input.
func (c *claim) readRest(d *candidate, sql string) error {
	if d.fresh || d.read {
		return nil
	}
	st := c.tx.stmt(sql).Text(1, c.tx.ns).ID(2, &d.id)
	if st.One() {
		d.scanRest(st.Row())
	}
	return st.Done()
}

// look reports whether the claim may read one more row, and counts it.
func (c *claim) look(d *candidate) bool {
	if c.looked == rules.ClaimLooks(c.req.Limit) {
		c.stopped = true
		return false
	}
	if c.looked++; c.looked == rules.ClaimLooks(c.req.Limit) {
		c.last = d.place()
	}
	return true
}

// cutShort answers a claim that reached its row limit. If it left all rows, the next claim
// continues behind them, because it would only read the same rows again.
func (c *claim) cutShort() store.ClaimResult {
	c.tx.fx.Answer()
	res := store.ClaimResult{Tasks: c.taken, Now: c.tx.at, Stopped: true, AloneDue: c.quarantine.PassedOver()}
	if len(c.taken) == 0 && len(c.over) == 0 && c.req.IDs == nil {
		res.Behind = c.last
	}
	return res
}

// try claims the first candidate if its task may run now. Otherwise the row moves to the
// waiters of its key, or stays: because of a passed deadline, which the reaper handles, or
// because of quarantine. The claim then tries the next candidates.
func (c *claim) try(ahead []candidate) error {
	d := &ahead[0]
	if over, err := c.overCap(d); err != nil || over {
		return err
	}
	if err := c.readAhead(ahead); err != nil {
		return err
	}
	if err := c.readRest(d, sqlTakenTask); err != nil {
		return err
	}
	switch {
	case !d.open:
		// No operation leaves a dispatch row to a task that is not claimable. Such a row is
		// deleted, because every claim would read it again.
		_, err := c.tx.undispatch(&d.id)
		return err
	case !c.mayRun(d.task):
		return nil
	}
	if ok, err := c.admits(d); err != nil || !ok {
		return err
	}
	c.start(d)
	return c.take(d)
}

// overCap reports whether the key of a candidate has no room, and then moves the row to the
// waiters. A full key stays full for the rest of the claim.
func (c *claim) overCap(d *candidate) (bool, error) {
	if d.key == "" {
		return false, nil
	}
	if !c.fullKeys[d.key] {
		if free, err := c.tx.roomUnder(d.key); err != nil || free {
			return false, err
		}
		if c.fullKeys == nil {
			c.fullKeys = make(map[string]bool)
		}
		c.fullKeys[d.key] = true
	}
	c.over = append(c.over, d.id)
	return true, nil
}

// mayRun reports whether a due task may run now. Its deadline has not passed (else the reaper
// ends it), the worker reads its schema version, and quarantine has room. No chore is working
// on its job, which may end the task, unless the task is being undone.
func (c *claim) mayRun(t *task.Task) bool {
	return t.SchemaVersion <= rules.NewestSchema(c.req, t.Type) && (t.Undo != nil || !c.unclaimable[t.JobID]) &&
		rules.InTime(t, c.tx.at) && c.quarantine.HasRoom(rules.CrashesOf(t.CrashCount, t.Undo), t.QuarantineLosses)
}

// complete adds the fields that a handler needs beyond the task's row. readBeside reads the
// rest.
func (c *claim) complete(got *store.Claimed, payloads bool) {
	t := &got.Task
	t.ReadyAt = time.Time{} // as readers see a running task
	got.Lease = task.Lease{Task: t.ID, Epoch: t.Epoch, ID: t.LeaseID, Generation: c.tx.gen}
	if got.Quarantined = rules.Quarantined(rules.CrashesOf(t.CrashCount, t.Undo)); got.Quarantined {
		got.QuarantineLimit, got.Alone = rules.QuarantineLimit(c.req.Slots, t.QuarantineLosses), rules.Alone(c.req.Slots, t.QuarantineLosses)
	}
	if !t.DeadlineAt.IsZero() {
		got.TimeLeft = t.DeadlineAt.Sub(c.tx.at)
	}
	if t.AttemptNo > 1 || t.StepCount > 0 || c.req.Again {
		c.steps = append(c.steps, t.ID)
	}
	if payloads {
		c.stored = append(c.stored, t.ID)
	}
}

const sqlInsertClaim = `INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) VALUES (?1, ?2, ?3, ?4, ?5)`

// insertClaim writes the claim's row, by which the reaper finds the leases.
func (c *claim) insertClaim() error {
	if len(c.taken) == 0 {
		return nil
	}
	ids := make([]byte, 0, 16*len(c.taken))
	for i := range c.taken {
		ids = append(ids, c.taken[i].Task.ID[:]...)
	}
	c.tx.fx.Notice.Changed = true
	c.tx.fx.Claimed(c.req.LeaseID, Claim{Tasks: len(c.taken), Worker: c.req.Name, StartedAt: c.tx.mic})
	return c.tx.stmt(sqlInsertClaim).Text(1, c.tx.ns).Lease(2, &c.req.LeaseID).Text(3, string(c.req.Worker)).
		Int(4, c.expires()).Blob(5, ids).Run()
}

const sqlClaimIDs = `SELECT task_ids FROM weaver_claims WHERE namespace = ?1 AND lease_id = ?2`

// sqlHeldTasks reads the tasks of a chunk that a lease holds.
var sqlHeldTasks = newChunkSQL(func(n int) string {
	return `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id IN (` + params(3, n) + `) AND lease_id = ?2`
})

// again returns the tasks that an earlier call with the same lease ID still holds.
func (c *claim) again() error {
	st := c.tx.stmt(sqlClaimIDs).Text(1, c.tx.ns).Lease(2, &c.req.LeaseID)
	var ids []task.ID
	if st.One() {
		ids = st.ColIDs(0)
	}
	if err := st.Done(); err != nil {
		return err
	}
	held, payloads := make(map[task.ID]*task.Task, len(ids)), make(map[task.ID]bool)
	err := inChunks(ids, func(chunk []task.ID) error {
		st := c.tx.stmt(sqlHeldTasks[len(chunk)]).Text(1, c.tx.ns).Lease(2, &c.req.LeaseID)
		for i := range chunk {
			st.ID(3+i, &chunk[i])
		}
		for st.Next() {
			t := new(task.Task)
			payloads[st.ColID(0)] = scanTask(st.Row(), t)
			held[t.ID] = t
		}
		return st.Done()
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if t := held[id]; t != nil {
			c.taken = append(c.taken, store.Claimed{Task: *t})
			c.complete(&c.taken[len(c.taken)-1], payloads[id])
		}
	}
	return nil
}
