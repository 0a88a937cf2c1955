package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Claim implements store.Core.
func (s *Store) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if req.LeaseID.IsZero() {
		return store.ClaimResult{}, errors.New("the lease id is zero")
	}
	var res store.ClaimResult
	err := s.do(ctx, ns, func(o *op) {
		c := &claim{op: o, req: req, taken: map[string]int{}, quarantine: rules.NewQuarantine(&req)}
		if req.Again {
			c.lookUp()
		} else {
			c.run()
			o.propagate()
		}
		res = store.ClaimResult{Tasks: c.got, Now: o.now, Stopped: c.stopped, Behind: c.behind, Next: -1}
		switch {
		case c.stopped:
			res.Next = 0
		case !c.quarantine.Closed():
			res.Next = c.next()
		}
		res.AloneDue = c.quarantine.PassedOver()
	})
	return res, err
}

// claim is one claim call.
type claim struct {
	*op
	req        store.ClaimRequest
	got        []store.Claimed
	taken      map[string]int // by queue
	quarantine rules.Quarantine
	stopped    bool // more rows are due than one claim reads
	behind     store.ClaimPlace
}

// lookUp returns the tasks that an earlier call claimed under this lease and still holds.
func (c *claim) lookUp() {
	for _, r := range c.sorted(func(r *row) bool { return r.LeaseID == c.req.LeaseID }) {
		c.handOut(r)
	}
}

// run leases due tasks: the highest priority first, then the oldest.
func (c *claim) run() {
	rows := c.candidates()
	if c.req.LeaveSent && c.req.IDs == nil {
		c.take(slices.DeleteFunc(slices.Clone(rows), func(d store.DispatchRow) bool { return d.Leave(c.now) }))
		if len(c.got) > 0 || c.stopped {
			return
		}
		rows = c.candidates() // without those that moved to the waiters
	}
	c.take(rows)
}

// take leases the tasks of candidates.
func (c *claim) take(rows []store.DispatchRow) {
	looked, moved := 0, 0
	var last store.ClaimPlace
	for _, d := range rows {
		if len(c.got) >= c.req.Limit || c.quarantine.Closed() {
			return
		}
		if !c.roomIn(d.Queue) {
			continue // the row stays in its place
		}
		if looked == rules.ClaimLooks(c.req.Limit) {
			c.stopped = true
			if len(c.got) == 0 && moved == 0 && c.req.IDs == nil {
				c.behind = last
			}
			return
		}
		looked++
		last = placeOf(d)
		r := c.tasks[d.Task]
		switch {
		case !c.hasRoom(d.ConcurrencyKey):
			moved++
			c.queueUp(d)
		case !c.mayRun(r):
			// The row stays in its place.
		default:
			c.lease(r)
			c.handOut(r)
			c.got[len(c.got)-1].Waited = max(c.now.Sub(d.AvailableAt), 0)
		}
	}
}

// candidates returns the due dispatch rows of the requested lanes in claim order.
func (c *claim) candidates() []store.DispatchRow {
	var rows []store.DispatchRow
	for _, d := range c.dispatch {
		if c.asked(d) && c.reads(c.tasks[d.Task]) && !d.AvailableAt.After(c.now) && byPlace(placeOf(d), c.req.Behind) > 0 &&
			(c.req.IDs == nil || slices.Contains(c.req.IDs, d.Task)) {
			rows = append(rows, d)
		}
	}
	slices.SortFunc(rows, func(a, b store.DispatchRow) int { return byPlace(placeOf(a), placeOf(b)) })
	return rows
}

func placeOf(d store.DispatchRow) store.ClaimPlace {
	return store.ClaimPlace{Priority: d.Priority, Due: d.AvailableAt, Task: d.Task}
}

func byPlace(a, b store.ClaimPlace) int {
	return cmp.Or(a.Priority-b.Priority, a.Due.Compare(b.Due), a.Task.Compare(b.Task))
}

// reads reports whether the worker reads a task's schema version.
func (c *claim) reads(r *row) bool { return r.SchemaVersion <= rules.NewestSchema(&c.req, r.Type) }

// asked reports whether this call may claim from a row's lane (W2).
func (c *claim) asked(d store.DispatchRow) bool {
	return rules.Lane(&c.req, d.Queue, d.Type) && c.pauseOf(d.Queue, d.Type) == task.PauseNone
}

// roomIn reports whether the queue has a slot left for this call.
func (c *claim) roomIn(queue string) bool {
	return c.req.Queues == nil || c.taken[queue] < c.req.Queues[queue]
}

// mayRun reports whether a due task may run now: its deadline has not passed (else the
// reaper ends it), the worker reads its schema version, and quarantine permits it.
func (c *claim) mayRun(r *row) bool {
	return c.reads(r) && rules.InTime(&r.Task, c.now) && c.quarantine.HasRoom(rules.CrashesOf(r.CrashCount, r.Undo), r.QuarantineLosses)
}

// lease leases a task to the caller (R1, R3).
func (c *claim) lease(r *row) {
	delete(c.dispatch, r.ID)
	c.notice.Changed = true
	holds := r.State == task.Pending && r.HoldsKey()
	r.AttemptNo++
	r.Epoch++
	c.move(r, task.Running, task.WaitNone, r.Error)
	r.LeaseID = c.req.LeaseID
	r.LeasedBy = c.req.Name
	r.LeaseExpiresAt = rules.Instant(c.now.Add(c.req.TTL))
	r.StartedAt = c.now
	if r.StartedVersion == 0 {
		r.StartedVersion = c.req.Types[r.Type]
	}
	r.worker = c.req.Worker
	_, r.alone = c.quarantine.Add(rules.CrashesOf(r.CrashCount, r.Undo), r.QuarantineLosses)
	c.taken[r.Queue]++
	if !holds {
		c.hold(r)
	}
}

// handOut adds a leased task to the result.
func (c *claim) handOut(r *row) {
	got := store.Claimed{
		Task:        c.derived(r, c.now),
		Lease:       task.Lease{Task: r.ID, Epoch: r.Epoch, ID: r.LeaseID, Generation: c.generation},
		Steps:       copyAll(c.steps[r.ID], copyStep),
		Quarantined: rules.Quarantined(rules.CrashesOf(r.CrashCount, r.Undo)),
	}
	got.Task.Pause = task.PauseNone // it may have been paused since
	if got.Quarantined {
		got.QuarantineLimit, got.Alone = rules.QuarantineLimit(c.req.Slots, r.QuarantineLosses), rules.Alone(c.req.Slots, r.QuarantineLosses)
	}
	if !r.DeadlineAt.IsZero() {
		got.TimeLeft = r.DeadlineAt.Sub(c.now)
	}
	c.got = append(c.got, got)
}

// next returns the time until the next claim of these lanes is useful. Rows that are due
// and may not run (quarantine, a key without room) return to the lanes by themselves.
func (c *claim) next() time.Duration {
	var soonest time.Time
	for _, d := range c.dispatch {
		if !c.asked(d) {
			continue
		}
		r := c.tasks[d.Task]
		switch {
		case d.AvailableAt.After(c.now):
			soonest = rules.Earliest(soonest, d.AvailableAt)
		case c.mayRun(r) && c.hasRoom(d.ConcurrencyKey):
			return 0
		}
	}
	return until(soonest, c.now)
}
