package sqlstore

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ClaimReads are the statements that every claim runs. Their only parameter is the namespace.
var ClaimReads = []string{sqlPaused, sqlUnclaimable}

// claimLane claims due tasks from the head of the only lane of a priority, if every row read
// is a first lease. Other rows are tried one by one, in order. It reports whether the lane has
// no other due rows.
func (c *claim) claimLane(s *lane.State) (exhausted bool, err error) {
	n := min(c.req.Limit-len(c.taken), maxChunk)
	if c.slots != nil {
		n = min(n, c.slots[s.Queue])
	}
	if n <= 0 || c.full() || c.tx.fx.Mixed(s.Key) {
		return false, nil
	}
	var due []candidate
	undone := false
	err = c.tx.undoable(func() error {
		var alike bool
		if due, alike, err = c.claimHead(s, n); err == nil && !alike {
			err = errUndo
		}
		return err
	}, func() error {
		c.tx.fx.NoteMixed(s.Key)
		c.seen = lane.State{} // its first row was read before the tasks that are taken now
		undone = true
		return nil
	})
	if err != nil || undone {
		return false, err
	}
	for i := range due {
		c.looked++
		if err := c.leased(&due[i]); err != nil {
			return false, err
		}
	}
	if len(due) < n {
		return true, nil
	}
	if !c.leaves { // rows before the last one may have been left
		c.tx.fx.Lanes = append(c.tx.fx.Lanes, s.Saw(due[n-1].due))
	}
	return false, nil
}

// claimHead leases the tasks of the first n due rows of a lane, and stores them at the next
// places of taken. If alike is false, it could not lease all of them, and the caller must roll
// back.
func (c *claim) claimHead(s *lane.State, n int) (due []candidate, alike bool, err error) {
	version := c.req.Types[s.Type]
	l := ClaimLease{c.req.LeaseID, c.req.Name, c.expires()}
	st := c.tx.bulk.ClaimLane(c.tx, &l, version, s, rules.NewestSchema(c.req, s.Type), n, c.leaves)
	var first *sqlstmt.Stmt
	deleted := 0
	if c.tx.mic-s.Bound < freshLane.Microseconds() {
		st.Send()
		first = c.bindFirst(sqlFirstOfLane, s, s.Bound).Send()
	}
	if st.Next() {
		due, deleted = dueRows(st.ColBytes(0), s.Key), int(st.ColInt(2))
	}
	c.taken = slices.Grow(c.taken, len(due))
	next := c.taken[len(c.taken) : len(c.taken)+len(due)]
	clear(next)
	at := make(map[task.ID]int, len(due))
	for i := range due {
		due[i].task, at[due[i].id] = &next[i].Task, i
	}
	left := len(due)
	for ; st.Next(); left-- {
		id := st.ColID(0)
		t := due[at[id]].task
		t.ID, t.Type, t.Queue, t.Priority, t.StartedVersion = id, s.Type, s.Queue, int(s.Priority), version
		freshColumns.Scan(st.Row(), 1, t)
	}
	if err := st.Done(); err != nil || first == nil {
		return due, left == 0 && deleted == len(due), err
	}
	c.seen, c.first = *s, int64(lane.Empty)
	if first.One() {
		c.first = first.ColInt(0)
	}
	return due, left == 0 && deleted == len(due), first.Done()
}

// dueRows decodes the rows read by ClaimLane from its answer.
func dueRows(list []byte, k lane.Key) []candidate {
	const id, size = len(task.ID{}), len(task.ID{}) + 8
	due := make([]candidate, 0, len(list)/size)
	for ; len(list) >= size; list = list[size:] {
		due = append(due, candidate{dispatched: dispatched{id: task.ID(list[:id]), lane: k}, due: int64(binary.BigEndian.Uint64(list[id:]))})
	}
	return due
}

// freshLane is the maximum age of a lane's first due row with which a claim probably takes the
// whole lane. The claim then reads the next row in the same round trip.
const freshLane = 20 * time.Millisecond

// readAhead reads the rest of the first candidate's task, together with further candidates
// that the claim may take. It does so only if the database reads many with one statement. It
// skips tasks with a concurrency key, because their keys are locked first.
func (c *claim) readAhead(ahead []candidate) error {
	unread := func(d *candidate) bool { return !d.fresh && !d.read && d.key == "" }
	if c.tx.bulk == nil || !unread(&ahead[0]) {
		return nil
	}
	n := c.req.Limit - len(c.taken)
	if c.slots != nil {
		n = min(n, c.slots[ahead[0].lane.Queue])
	}
	n = min(n, len(ahead))
	ids, of := make([]task.ID, 0, n), make(map[task.ID]*candidate, n)
	for i := 0; i < len(ahead) && len(ids) < n; i++ {
		if d := &ahead[i]; unread(d) {
			ids, of[d.id], d.read = append(ids, d.id), d, true
		}
	}
	st := c.tx.bulk.LockTasks(c.tx, ids)
	for st.Next() {
		of[st.ColID(0)].scanRest(st.Row())
	}
	return st.Done()
}

// readBeside reads the steps and out-of-line texts of the taken tasks.
func (c *claim) readBeside() error {
	if len(c.steps)+len(c.stored) == 0 {
		return nil
	}
	taken, tasks := make(map[task.ID]*store.Claimed, len(c.taken)), make(map[task.ID]*task.Task, len(c.stored))
	for i := range c.taken {
		taken[c.taken[i].Task.ID] = &c.taken[i]
	}
	for _, id := range c.stored {
		tasks[id] = &taken[id].Task
	}
	b := c.tx.bulk
	for i := 0; b == nil && i < len(c.steps); i++ {
		steps, err := c.tx.steps(&c.steps[i])
		if err != nil {
			return err
		}
		taken[c.steps[i]].Steps = steps
	}
	if b != nil && len(c.steps) > 0 {
		st := b.ReadSteps(c.tx, c.steps)
		for st.Next() {
			var s task.Step
			stepColumns.Scan(st.Row(), 0, &s)
			got := taken[s.TaskID]
			got.Steps = append(got.Steps, s)
		}
		if err := st.Done(); err != nil {
			return err
		}
	}
	return c.tx.fetchPayloads(tasks, c.stored)
}
