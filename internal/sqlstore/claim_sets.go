package sqlstore

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

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
