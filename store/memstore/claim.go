package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"
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
		c := &claim{op: o, req: req, taken: map[string]int{}, closed: map[lane.Key]bool{}, quarantine: rules.NewQuarantine(&req)}
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
	closed     map[lane.Key]bool // lanes whose limits let no further task start
	looked     int               // due rows that were taken, moved or left
	moved      int               // rows that moved to the waiters
	last       store.ClaimPlace  // place of the last row looked at
	stopped    bool              // more rows are due than one claim reads
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
		c.looked, c.moved = 0, 0
		rows = c.candidates() // without those that moved to the waiters
	}
	c.take(rows)
}

// take leases the tasks of candidates, which are in claim order. Within a priority the lanes without
// a group and the classes of those with one take turns.
func (c *claim) take(rows []store.DispatchRow) {
	c.readLanes(rows)
	for len(rows) > 0 && !c.ended() {
		n := 1
		for n < len(rows) && rows[n].Priority == rows[0].Priority {
			n++
		}
		c.takePriority(rows[:n])
		rows = rows[n:]
	}
}

// ended reports whether the claim may take no further task.
func (c *claim) ended() bool {
	return c.stopped || len(c.got) >= c.req.Limit || c.quarantine.Closed()
}

func keyOf(d *store.DispatchRow) lane.Key {
	return lane.Key{Queue: d.Queue, Type: d.Type, Group: d.Group, Priority: int64(d.Priority)}
}

// readLanes reads the lanes with a group, which keep their turns from claim to claim.
func (c *claim) readLanes(rows []store.DispatchRow) {
	if c.req.IDs != nil {
		return // hints keep their order
	}
	read := make(map[lane.Key]int64)
	for i := range rows {
		if k := keyOf(&rows[i]); k.Group != "" {
			if _, ok := read[k]; !ok {
				read[k] = rows[i].AvailableAt.UnixMicro()
			}
		}
	}
	c.lanes.Replace("", read, lane.Reading{Since: c.lanes.Version(), Now: c.now.UnixMicro()})
}

// takePriority leases tasks of one priority.
func (c *claim) takePriority(rows []store.DispatchRow) {
	var plain []store.DispatchRow
	lanes := map[string]map[string][]store.DispatchRow{} // by queue and type, then by group
	classes := []lane.Class{}
	for _, d := range rows {
		if d.Group == "" || c.req.IDs != nil {
			plain = append(plain, d)
			continue
		}
		k := keyOf(&d)
		of := d.Queue + "\x00" + d.Type
		if lanes[of] == nil {
			lanes[of] = map[string][]store.DispatchRow{}
			classes = append(classes, k.Class())
		}
		lanes[of][d.Group] = append(lanes[of][d.Group], d)
	}
	slices.SortFunc(classes, func(a, b lane.Class) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type)) })
	var sources []func() (more bool)
	if len(plain) > 0 {
		sources = append(sources, func() bool {
			if len(plain) == 0 {
				return false
			}
			d := plain[0]
			plain = plain[1:]
			c.try(d)
			return true
		})
	}
	for _, of := range classes {
		sources = append(sources, c.turns(of, lanes[of.Queue+"\x00"+of.Type]))
	}
	if len(sources) > 1 {
		first := c.lanes.NextTurn("") % len(sources)
		sources = slices.Concat(sources[first:], sources[:first])
	}
	for i := 0; len(sources) > 0 && !c.ended(); {
		i %= len(sources)
		if sources[i]() {
			i++
		} else {
			sources = slices.Delete(sources, i, i+1)
		}
	}
}

// turns returns a function that leases the tasks of the next turn of a class.
func (c *claim) turns(of lane.Class, rows map[string][]store.DispatchRow) func() (more bool) {
	seen := map[string]bool{}
	var queue, again []lane.Turn
	return func() bool {
		if !c.roomIn(of.Queue) {
			return false
		}
		if len(queue) == 0 {
			queue = c.lanes.Turns("", of, c.now.UnixMicro(), max(1, c.req.Limit-len(c.got)), func(k *lane.Key) bool { return seen[k.Group] }, c.weight)
			if len(queue) == 0 {
				queue, again = again, nil
			}
		}
		if len(queue) == 0 {
			return false
		}
		t := queue[0]
		queue, seen[t.Group] = queue[1:], true
		before := len(c.got)
		for tried := 0; len(c.got)-before < t.Most && tried < t.Most+rules.TurnLooks && len(rows[t.Group]) > 0 && !c.ended() && c.roomIn(of.Queue); tried++ {
			d := rows[t.Group][0]
			rows[t.Group] = rows[t.Group][1:]
			if !c.try(d) {
				rows[t.Group] = nil
			}
		}
		if n := len(c.got) - before; n > 0 {
			c.lanes.Took("", &t.Key, n, c.weight(t.Share))
		}
		if len(rows[t.Group]) > 0 {
			t.Most = c.weight(t.Share)
			again = append(again, t)
		}
		return true
	}
}

// weight returns how many tasks a share starts in one turn.
func (c *claim) weight(share string) int {
	if l := c.limits[store.LimitLabel+share]; l != nil {
		return max(1, l.row.Weight)
	}
	return 1
}

// try leases the task of a due row if it may run now. It reports false if the limits of its lane let
// no further task of it start.
func (c *claim) try(d store.DispatchRow) (open bool) {
	if !c.roomIn(d.Queue) || c.closed[keyOf(&d)] {
		return true // the row stays in its place
	}
	if c.looked == rules.ClaimLooks(c.req.Limit) {
		c.stopped = true
		if len(c.got) == 0 && c.moved == 0 && c.req.IDs == nil {
			c.behind = c.last
		}
		return true
	}
	c.looked++
	c.last = placeOf(d)
	r := c.tasks[d.Task]
	switch {
	case !c.hasRoom(d.ConcurrencyKey):
		c.moved++
		c.queueUp(d)
	case !c.mayRun(r):
		// The row stays in its place.
	default:
		if at, full := c.opens(r); full || !at.IsZero() {
			c.closed[keyOf(&d)] = true
			return false
		}
		c.start(r)
		c.lease(r)
		c.handOut(r)
		c.got[len(c.got)-1].Waited = max(c.now.Sub(d.AvailableAt), 0)
	}
	return true
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
			switch at, full := c.opens(r); {
			case full: // the end of a running task opens its lane
			case at.IsZero():
				return 0
			default:
				soonest = rules.Earliest(soonest, at)
			}
		}
	}
	return until(soonest, c.now)
}
