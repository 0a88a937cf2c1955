package sqlstore

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlDueOfLane skips tasks of a newer schema than the worker reads. A backlog of them, from a
// producer deployed first, does not hold up older tasks.
var sqlDueOfLane = sqlLookDue + ` /*claim o*/`

// sqlLookDue is sqlDueOfLane including rows locked by other transactions.
var sqlLookDue = `
SELECT ` + candidateSelect + ` FROM weaver_outbox_events o
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id
WHERE o.namespace = ?1 AND o.queue = ?2 AND o.task_type = ?3 AND o.priority = ?4 AND o.lane_group = ?10 AND o.available_at <= ?5
  AND (o.available_at, o.task_id) > (?6, ?7) AND t.schema_version <= ?9
ORDER BY o.available_at, o.task_id LIMIT ?8`

// sqlLeaveSent is sqlDueOfLane without rows that store.DispatchRow.Leave leaves. A lane has few of
// them: a publisher looks at its first rows only.
var sqlLeaveSent = `
SELECT ` + candidateSelect + ` FROM weaver_outbox_events o
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id
WHERE o.namespace = ?1 AND o.queue = ?2 AND o.task_type = ?3 AND o.priority = ?4 AND o.lane_group = ?10 AND o.available_at <= ?5
  AND (o.available_at, o.task_id) > (?6, ?7) AND t.schema_version <= ?9
  AND (o.sent_until IS NULL OR o.sent_until <= ?5 OR o.attempts <> 1 OR o.last_error IS NOT NULL)
ORDER BY o.available_at, o.task_id LIMIT ?8 /*claim o*/`

// place returns the position of a candidate in the claim order.
func (d *candidate) place() store.ClaimPlace {
	return store.ClaimPlace{Priority: int(d.lane.Priority), Due: sqlstmt.Instant(d.due), Task: d.id}
}

func byPlace(a, b store.ClaimPlace) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), a.Task.Compare(b.Task))
}

func earlier(a, b *candidate) bool {
	return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:])) < 0
}

// scan claims the due rows of the requested lanes: by priority, then by due time and ID across
// the lanes of a priority. Lanes with a group take turns instead.
func (c *claim) scan() error {
	lanes, classes := c.tx.db.Lanes().Lanes(c.tx.ns, c.serves), c.tx.db.Lanes().Classes(c.tx.ns, c.serves)
	slices.SortFunc(classes, func(a, b lane.Class) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	for len(lanes)+len(classes) > 0 && !c.full() && !c.stopped {
		priority := int64(math.MaxInt64)
		if len(lanes) > 0 {
			priority = lanes[0].Priority
		}
		if len(classes) > 0 {
			priority = min(priority, classes[0].Priority)
		}
		n, m := 0, 0
		for n < len(lanes) && lanes[n].Priority == priority {
			n++
		}
		for m < len(classes) && classes[m].Priority == priority {
			m++
		}
		if int64(c.req.Behind.Priority) <= priority {
			if err := c.scanPriority(lanes[:n], classes[:m]); err != nil {
				return err
			}
		}
		lanes, classes = lanes[n:], classes[m:]
	}
	return nil
}

// scanPriority claims from the lanes of one priority. The plain ones are sorted by the time from
// which on they are due.
func (c *claim) scanPriority(states []lane.State, classes []lane.Class) error {
	plain := &plainSource{}
	for i := range states {
		s := &states[i]
		if s.Due() > c.tx.mic {
			break // no remaining lane has a due row that may start
		}
		if at, full, err := c.opens(&s.Key, nil); err != nil {
			return err
		} else if at > c.tx.mic {
			c.shut(&s.Key, at, full)
			continue
		}
		plain.lanes = append(plain.lanes, c.cursor(s))
	}
	if len(plain.lanes) == 1 && !plain.lanes[0].moved && c.tx.bulk != nil && len(classes) == 0 && !c.limited(&plain.lanes[0].state.Key) {
		if exhausted, err := c.claimLane(&plain.lanes[0].state); err != nil || exhausted {
			return err
		}
	}
	var sources []claimSource
	if len(plain.lanes) > 0 {
		sources = append(sources, plain)
	}
	for _, of := range classes {
		sources = append(sources, &classSource{of: of, seen: make(map[string]bool)})
	}
	if len(sources) > 1 {
		first := c.tx.db.Lanes().NextTurn(c.tx.ns) % len(sources)
		sources = slices.Concat(sources[first:], sources[:first])
	}
	for i := 0; len(sources) > 0 && !c.full() && !c.stopped; {
		i %= len(sources)
		more, err := sources[i].step(c)
		if err != nil {
			return err
		}
		if more {
			i++
		} else {
			sources = slices.Delete(sources, i, i+1)
		}
	}
	return nil
}

// claimSource is what takes turns within a priority: all lanes without a group, or a class.
type claimSource interface {
	// step claims what is next in a turn. It reports whether more may follow.
	step(c *claim) (more bool, err error)
}

// plainSource merges the lanes without a group.
type plainSource struct{ lanes []*laneCursor }

func (p *plainSource) step(c *claim) (more bool, err error) {
	best, err := c.best(&p.lanes)
	if err != nil || best == nil {
		return false, err
	}
	if c.slots != nil && c.slots[best.state.Queue] <= 0 {
		p.lanes = slices.DeleteFunc(p.lanes, func(l *laneCursor) bool { return l.state.Queue == best.state.Queue })
		return true, nil
	}
	if _, closed := c.closed[best.state.Key]; closed {
		p.lanes = slices.DeleteFunc(p.lanes, func(l *laneCursor) bool { return l == best })
		return true, nil
	}
	return true, c.tryNext(best)
}

// tryNext tries the next row of a cursor.
func (c *claim) tryNext(l *laneCursor) error {
	if l.at == 0 {
		c.taken = slices.Grow(c.taken, min(len(l.rows), c.req.Limit-len(c.taken)))
	}
	ahead := l.rows[l.at:]
	if !c.look(&ahead[0]) {
		return nil
	}
	l.at++
	return c.try(ahead)
}

// best returns the lane with the earliest head and drops the exhausted lanes.
func (c *claim) best(lanes *[]*laneCursor) (*laneCursor, error) {
	var best *laneCursor
	var first *candidate
	chunk := min(c.req.Limit-len(c.taken), maxChunk)
	if n := len(*lanes); n > 1 {
		chunk = chunk/n*2 + 1
	}
	if err := c.heads(*lanes, chunk); err != nil {
		return nil, err
	}
	kept := (*lanes)[:0]
	for _, l := range *lanes {
		d, err := c.head(l, chunk)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		kept = append(kept, l)
		if first == nil || earlier(d, first) {
			best, first = l, d
		}
	}
	*lanes = kept
	return best, nil
}

var sqlHinted = newIDSQL(func(in string) string {
	return `
SELECT ` + HintedSelect + ` FROM weaver_outbox_events o
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id
WHERE o.namespace = ?1 AND o.task_id ` + in
})

// hinted claims the tasks named by hints that are due and requested. Hints come in any order;
// the claim sorts them into the claim order.
func (c *claim) hinted() error {
	var found []candidate
	err := c.tx.lockedRows(sqlHinted, Bulk.Hinted, c.req.IDs, func(st *sqlstmt.Stmt) error {
		for st.Next() {
			d := candidate{task: new(task.Task)}
			scanCandidate(st.Row(), &d)
			version := st.ColInt(len(candidateColumns) + len(freshColumns))
			if d.due <= c.tx.mic && version <= int64(rules.NewestSchema(c.req, d.lane.Type)) && c.serves(d.lane) && byPlace(d.place(), c.req.Behind) > 0 {
				found = append(found, d)
			}
		}
		return st.Done()
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b candidate) int { return byPlace(a.place(), b.place()) })
	found = slices.CompactFunc(found, func(a, b candidate) bool { return a.id == b.id })
	for i := range found {
		d := &found[i]
		switch {
		case c.slots != nil && c.slots[d.lane.Queue] <= 0:
			continue
		case c.full() || !c.look(d):
			return nil
		}
		if _, closed := c.closed[d.lane]; closed {
			continue
		}
		if err := c.try(found[i:]); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlFirstOfLane = `
SELECT available_at FROM weaver_outbox_events
WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?6 AND available_at >= ?5
ORDER BY available_at LIMIT 1`

	sqlFutureOfLane = `
SELECT available_at FROM weaver_outbox_events
WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?6 AND available_at > ?5
ORDER BY available_at LIMIT 1`
)

// next returns the time until the next claim of these lanes can succeed, and updates the
// lanes' bounds. Due rows that may not run (quarantine, a passed deadline, a full key) become
// claimable through other operations.
func (c *claim) next() (time.Duration, error) {
	lanes := c.tx.db.Lanes().Lanes(c.tx.ns, c.serves)
	slices.SortFunc(lanes, func(a, b lane.State) int { return cmp.Compare(a.Due(), b.Due()) })
	n := nextLook{soonest: lane.Empty, looks: rules.ClaimLooks(c.req.Limit)}
	if c.stale > 0 {
		n.soonest = c.tx.mic + c.stale.Microseconds()
	}
	for i := range lanes {
		l := &lanes[i]
		if l.Due() > c.tx.mic && l.Due() >= n.soonest {
			break // its rows and those of later lanes are due later
		}
		if now, err := c.lookAt(l, &n); err != nil || now {
			return 0, err
		}
	}
	for _, of := range c.tx.db.Lanes().Classes(c.tx.ns, c.serves) {
		if now, err := c.lookAtClass(of, &n); err != nil || now {
			return 0, err
		}
	}
	if n.soonest == lane.Empty {
		return -1, nil
	}
	return time.Duration(n.soonest-c.tx.mic) * time.Microsecond, nil
}

// nextLook is the state of a search for the time of the next claim.
type nextLook struct {
	soonest int64
	looks   int // rows that may still be read
}

// lookAt reports whether a task of a lane could be claimed now. Otherwise it lowers n.soonest to the
// time from which on one might.
func (c *claim) lookAt(l *lane.State, n *nextLook) (now bool, err error) {
	open := l.Open
	if at, ok := c.closed[l.Key]; ok {
		open = max(open, at)
	}
	if open > c.tx.mic {
		n.soonest = min(n.soonest, max(open, l.Bound))
		return false, nil
	}
	first, err := c.firstOf(sqlFirstOfLane, l)
	if err != nil {
		return false, err
	}
	c.tx.fx.Lanes = append(c.tx.fx.Lanes, l.Saw(first))
	if first <= c.tx.mic {
		if could, err := c.couldRun(l, sqlDueOfLane, n); err != nil || could {
			return could, err
		}
		if c.tx.db.Passes() { // a row locked by another claim may be released without a notice
			if could, err := c.couldRun(l, sqlLookDue, n); err != nil {
				return false, err
			} else if could {
				n.soonest = min(n.soonest, c.tx.mic+lockedFor.Microseconds())
			}
		}
		if first, err = c.firstOf(sqlFutureOfLane, l); err != nil {
			return false, err
		}
	}
	n.soonest = min(n.soonest, first)
	return false, nil
}

// lockedFor is the pause before a claim asks again for a row that another claim has locked.
const lockedFor = 20 * time.Millisecond

// couldRun reports whether a due row of a lane, as read by sql, could be claimed without the
// limits of this call. At the row limit it returns true: the caller asks again.
func (c *claim) couldRun(state *lane.State, sql string, look *nextLook) (bool, error) {
	l := &laneCursor{state: *state, seen: state.Bound, sql: sql}
	for n := 1; ; n = 16 { // the first row nearly always decides
		d, err := c.head(l, n)
		if err != nil || d == nil {
			return false, err
		}
		if look.looks == 0 {
			return true, nil
		}
		look.looks--
		l.at++
		if err := c.readRest(d, sqlTask); err != nil {
			return false, err
		}
		if !d.open || !c.mayRun(d.task) {
			continue
		}
		if at, full, err := c.opens(&d.lane, d.task); err != nil {
			return false, err
		} else if at > c.tx.mic {
			c.shut(&d.lane, at, full)
			look.soonest = min(look.soonest, at)
			return false, nil
		}
		free := true
		if d.key != "" {
			if free, err = c.tx.keyFree(d.key); err != nil {
				return false, err
			}
		}
		if free {
			return true, nil
		}
	}
}

func (c *claim) bindFirst(sql string, l *lane.State, from int64) *sqlstmt.Stmt {
	return c.tx.stmt(sql).Text(1, c.tx.ns).Text(2, l.Queue).Text(3, l.Type).Int(4, l.Priority).Int(5, from).Text(6, l.Group)
}

func (c *claim) firstOf(sql string, l *lane.State) (int64, error) {
	from := l.Bound
	switch {
	case sql == sqlFutureOfLane:
		from = c.tx.mic
	case c.seen == *l: // no row was added to the lane since
		return c.first, nil
	}
	st := c.bindFirst(sql, l, from)
	first := int64(lane.Empty)
	if st.One() {
		first = st.ColInt(0)
	}
	return first, st.Done()
}
