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

// ClaimReads are the statements whose answers a claim always needs. Their only parameter
// is the namespace.
var ClaimReads = []string{sqlPaused, sqlUnclaimable}

// claimLane claims due tasks of the only lane of a priority, which begins at its head,
// if all that it looks at are to be leased for the first time: others are looked at one
// by one, in their order. It reports whether the lane has no other due rows.
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
		c.seen = lane.State{} // its first row was read before those that are taken now
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
	c.tx.fx.Lanes = append(c.tx.fx.Lanes, s.Saw(due[n-1].due))
	return false, nil
}

// claimHead leases the tasks of the n first due rows of a lane, and reads them to where
// leased puts those that are taken next. alike is false when not all of them could be leased:
// then nothing of it must stay.
func (c *claim) claimHead(s *lane.State, n int) (due []candidate, alike bool, err error) {
	version := c.req.Types[s.Type]
	l := ClaimLease{c.req.LeaseID, c.req.Name, c.expires()}
	st := c.tx.bulk.ClaimLane(c.tx, &l, version, s, rules.NewestSchema(c.req, s.Type), n)
	var first *sqlstmt.Stmt
	if c.tx.mic-s.Bound < freshLane.Microseconds() {
		st.Send()
		first = c.bindFirst(sqlFirstOfLane, s, s.Bound).Send()
	}
	if st.Next() {
		due = dueRows(st.ColBytes(0), s.Key)
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
		return due, left == 0, err
	}
	c.seen, c.first = *s, int64(lane.Empty)
	if first.One() {
		c.first = first.ColInt(0)
	}
	return due, left == 0, first.Done()
}

// dueRows are the rows of a lane that were looked at, as ClaimLane answers.
func dueRows(list []byte, k lane.Key) []candidate {
	const id, size = len(task.ID{}), len(task.ID{}) + 8
	due := make([]candidate, 0, len(list)/size)
	for ; len(list) >= size; list = list[size:] {
		due = append(due, candidate{dispatched: dispatched{id: task.ID(list[:id]), lane: k}, due: int64(binary.BigEndian.Uint64(list[id:]))})
	}
	return due
}

// freshLane is for how long at most the first row of a lane is due when a claim probably
// takes all of the lane: then it asks for the next row at once, not in another round trip.
const freshLane = 20 * time.Millisecond

// readAhead reads the rest of the first candidate's task, if one statement reads many, and
// with it those of as many others as the claim may take. Tasks with a concurrency key are
// left out: their keys are locked first.
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

// readBeside reads what is stored beside the rows of the tasks taken: their steps, and
// texts out of line.
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
