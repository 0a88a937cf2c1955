package sqlstore

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlClaimTask compares the epoch that was read in this transaction. A mismatch is an error.
var sqlClaimTask = `
UPDATE weaver_tasks SET ` + SetLease("?4", "?5", "?6", "?7", "?8") + `
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id IS NULL`

// sqlSetIsolated records whether a quarantined task runs alone.
const sqlSetIsolated = `UPDATE weaver_tasks SET isolated = ?3 WHERE namespace = ?1 AND task_id = ?2`

// take leases a task and deletes its dispatch row.
func (c *claim) take(d *candidate) error {
	t := d.task
	if t.StartedVersion == 0 {
		t.StartedVersion = c.req.Types[t.Type]
	}
	if c.tx.bulk != nil || d.fresh {
		if c.leases == nil {
			c.leases = make(map[int][]ClaimTask)
		}
		c.leases[t.StartedVersion] = append(c.leases[t.StartedVersion], ClaimTask{d.id, t.Epoch})
	} else if err := c.write(&d.id, t.Epoch, t.StartedVersion); err != nil {
		return err
	}
	return c.leased(d)
}

// leased records a taken task whose lease is written, or will be written with others.
func (c *claim) leased(d *candidate) error {
	t := d.task
	t.State, t.Waiting = task.Running, task.WaitNone
	t.AttemptNo++
	t.Epoch++
	t.LeaseID, t.LeasedBy, t.LeaseExpiresAt = c.req.LeaseID, c.req.Name, sqlstmt.Instant(c.expires())
	t.StartedAt, t.UpdatedAt = c.tx.at, c.tx.at
	c.taken = slices.Grow(c.taken, 1)[:len(c.taken)+1]
	got := &c.taken[len(c.taken)-1]
	if t != &got.Task {
		*got = store.Claimed{Task: *t}
	}
	got.Waited = max(c.tx.at.Sub(sqlstmt.Instant(d.due)), 0)
	c.complete(got, d.payloads)
	if limit, alone := c.quarantine.Add(rules.CrashesOf(t.CrashCount, t.Undo), t.QuarantineLosses); limit > 0 {
		if err := c.tx.stmt(sqlSetIsolated).Text(1, c.tx.ns).ID(2, &d.id).Bool(3, alone).Run(); err != nil {
			return err
		}
	}
	if c.slots != nil {
		c.slots[d.lane.Queue]--
	}
	if d.key == "" {
		return nil
	}
	if c.keys == nil {
		c.keys = make(map[string]bool)
	}
	c.keys[d.key] = true
	return c.tx.takeKey(d.key, t.ConcurrencyLimit)
}

// expires returns the end of this claim's leases.
func (c *claim) expires() int64 { return c.tx.mic + c.req.TTL.Microseconds() }

// write leases one task.
func (c *claim) write(id *task.ID, epoch int64, version int) error {
	n, err := c.tx.stmt(sqlClaimTask).Text(1, c.tx.ns).ID(2, id).Int(3, epoch).Lease(4, &c.req.LeaseID).Text(5, c.req.Name).
		Int(6, c.expires()).Int(7, c.tx.mic).Int(8, int64(version)).Exec()
	if err == nil && n != 1 {
		err = fmt.Errorf("task %v changed while it was claimed", *id)
	}
	if err != nil {
		return err
	}
	_, err = c.tx.undispatch(id)
	return err
}

// sqlClaimMany is sqlClaimTask for a chunk of tasks that were never leased.
var sqlClaimMany = newChunkSQL(func(n int) string {
	return `
UPDATE weaver_tasks SET ` + SetLease("?2", "?3", "?4", "?5", "?6") + `
WHERE namespace = ?1 AND task_id IN (` + params(7, n) + `) AND lease_epoch = 0 AND lease_id IS NULL`
})

// writeLeases writes the pending leases. A Bulk database writes all of them with one statement
// per version; the others write the plain, never leased tasks in chunks.
func (c *claim) writeLeases() error {
	for version, rows := range c.leases {
		if b := c.tx.bulk; b != nil {
			n, err := b.ClaimTasks(c.tx, &ClaimLease{c.req.LeaseID, c.req.Name, c.expires()}, version, rows)
			if err := allLeased(n, len(rows), err); err != nil {
				return err
			}
			continue
		}
		err := inChunks(rows, func(chunk []ClaimTask) error {
			st := c.tx.stmt(sqlClaimMany[len(chunk)]).Text(1, c.tx.ns).Lease(2, &c.req.LeaseID).Text(3, c.req.Name).
				Int(4, c.expires()).Int(5, c.tx.mic).Int(6, int64(version))
			ids := make([]task.ID, len(chunk))
			for i := range chunk {
				ids[i] = chunk[i].ID
				st.ID(7+i, &ids[i])
			}
			n, err := st.Exec()
			if err := allLeased(n, len(chunk), err); err != nil {
				return err
			}
			return c.tx.undispatchMany(ids)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// allLeased returns an error if a statement leased only n of the tasks.
func allLeased(n, of int, err error) error {
	if err == nil && n != of {
		err = fmt.Errorf("%d of %d tasks changed while they were claimed", of-n, of)
	}
	return err
}
