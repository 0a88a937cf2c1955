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

// Claim implements store.Worker.
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

// CheckClaim refuses a request that no store can answer.
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
	paused map[string]bool // queues

	pausedTypes map[string]bool
	slots       map[string]int // free ones by queue; nil: no limits
	quarantine  rules.Quarantine
	unclaimable map[task.ID]bool // jobs of which no task is claimed before a chore is done
	taken       []store.Claimed
	leases      map[int][]ClaimTask // of those taken, by the version of the code: not yet written
	steps       []task.ID           // those taken that may have steps: not yet read
	stored      []task.ID           // those taken with texts out of line: not yet read
	keys        map[string]bool     // of the tasks taken
	looked      int                 // due rows that it took, moved or left
	over        []task.ID           // of these, those that go to the waiters: not yet written
	fullKeys    map[string]bool     // keys of which that is known
	stopped     bool                // it looked at as many as it may, and there are more
	last        store.ClaimPlace    // of the last of so many
	stale       time.Duration       // there were external writes, whose lanes are read this much later
	seen        lane.State          // a lane whose first row was read on the way; zero: none
	first       int64               // that row: until the lane changes there is none before
	remembers   bool                // the lanes are those of an earlier claim, though there may have been external writes
}

// run claims what is due. Crash after the commit: the leases expire, or the
// caller looks them up by its lease id.
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
		err = c.scan()
		if err == nil && c.remembers && len(c.taken) == 0 && len(c.over) == 0 && !c.stopped {
			if err = c.forget(); err == nil {
				err = c.scan()
			}
		}
	}
	if err == nil {
		err = c.writeLeases()
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
	case c.remembers && !c.quarantine.Closed(): // there are more, or the next claim reads the lanes
		res.Next = 0
	case c.tx.bulk != nil && !c.req.Again && len(c.taken) >= max(c.req.Limit, manyTaken):
		res.Next = 0
	case !c.quarantine.Closed():
		res.Next, err = c.next()
	}
	if res.AloneDue = c.quarantine.PassedOver(); res.AloneDue {
		c.tx.fx.Answer() // the worker is to learn of it
	}
	return res, err
}

// manyTaken is from how many tasks on a full claim does not look for more where that is
// dear: PostgreSQL passes over all the rows that the claim deleted.
const manyTaken = 32

// readLanes reads the lanes, or takes those that are remembered: for a claim that looks
// at them all in their order.
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

// forget reads the lanes that were remembered.
func (c *claim) forget() error {
	c.stale, c.remembers = 0, false
	return c.tx.replaceLanes()
}

// readPaused reads what is paused; nil maps: nothing.
func (c *claim) readPaused() error {
	queues, types, err := c.tx.paused()
	set := func(names []string) (m map[string]bool) {
		for _, name := range names {
			if m == nil {
				m = make(map[string]bool, len(names))
			}
			m[name] = true
		}
		return m
	}
	c.paused, c.pausedTypes = set(queues), set(types)
	return err
}

// serves reports whether the worker asked for a lane that is not paused.
func (c *claim) serves(k lane.Key) bool {
	return rules.Lane(c.req, k.Queue, k.Type) && !c.paused[k.Queue] && !c.pausedTypes[k.Type]
}

// full reports whether the claim may take no further task.
func (c *claim) full() bool { return len(c.taken) >= c.req.Limit || c.quarantine.Closed() }

var (
	sqlTask      = `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlTakenTask = sqlTask + ` /*lock*/`
)

// readRest reads the rest of a candidate's task, by sqlTask, or by sqlTakenTask if it is
// about to be taken: then no other transaction gives it another input meanwhile.
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

// look reports whether the claim may look at one more row, and notes that it
// does.
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

// cutShort answers a claim that looked at as many rows as it may. When it left
// all of them the next claim goes on behind them: they would be all that this
// one sees again.
func (c *claim) cutShort() store.ClaimResult {
	c.tx.fx.Answer()
	res := store.ClaimResult{Tasks: c.taken, Now: c.tx.at, Stopped: true, AloneDue: c.quarantine.PassedOver()}
	if len(c.taken) == 0 && len(c.over) == 0 && c.req.IDs == nil {
		res.Behind = c.last
	}
	return res
}

// try claims the first of some candidates if it may run now. Otherwise its row goes to
// the waiters of its key, or stays (a deadline, which is the reaper's; too many
// other quarantined tasks). The claim looks at the others next.
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
		// No operation leaves a row to a task that is not claimable; every
		// claim would meet it again.
		_, err := c.tx.undispatch(&d.id)
		return err
	case !c.mayRun(d.task):
		return nil
	}
	return c.take(d)
}

// overCap reports whether the key of a candidate has no room; then its row is
// moved to the waiters. A key that is full stays so for the rest of the claim.
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

// mayRun reports whether a due task may run now: it is in time (the reaper ends it
// otherwise), the worker reads its schema version, no chore is at work on its job
// (which may end it) unless it is being undone, and quarantine does not hold it back.
func (c *claim) mayRun(t *task.Task) bool {
	return t.SchemaVersion <= rules.NewestSchema(c.req, t.Type) && (t.Undo != nil || !c.unclaimable[t.JobID]) &&
		rules.InTime(t, c.tx.at) && c.quarantine.HasRoom(rules.CrashesOf(t.CrashCount, t.Undo), t.QuarantineLosses)
}

// complete adds what a handler needs beside the task's row; readBeside reads the rest of that.
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

// insertClaim writes the row by which the reaper finds the leases.
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

// sqlHeldTasks reads a chunk of tasks, as far as a lease holds them.
var sqlHeldTasks = newChunkSQL(func(n int) string {
	return `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id IN (` + params(3, n) + `) AND lease_id = ?2`
})

// again returns what an earlier call with the same lease id still holds.
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
