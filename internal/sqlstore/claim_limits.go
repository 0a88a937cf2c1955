package sqlstore

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Limits (docs/limits.md). A limit closes lanes: a claim passes over them without reading their
// rows, and no row moves. The set limits are cached in this process, and read again when their
// revision, which every claim reads, has changed. What a claim counts is read in its transaction:
// the state of rates from weaver_rates, and the running tasks from the claims.

// limitSpec is the spec of a row of weaver_limits.
type limitSpec struct {
	store.Limit
	Rests bool `json:",omitzero"` // a handler asked the limit to rest
}

// limits are the set limits of a namespace at a revision.
type limits struct {
	revision int64
	of       map[string]limitSpec
	counts   bool // one of them counts running tasks
}

const sqlLimitSpecs = `SELECT name, spec FROM weaver_limits WHERE namespace = ?1`

// limitsAt returns the set limits, and whether they were read. revision is that of weaver_limit_changes; 0: there are none.
func (v *View) limitsAt(memory *Memory, revision int64) (l *limits, read bool, err error) {
	if l := memory.limits(v.ns, revision); l != nil {
		return l, false, nil
	}
	l = &limits{revision: revision, of: make(map[string]limitSpec)}
	st := v.stmt(sqlLimitSpecs).Text(1, v.ns)
	for st.Next() {
		var s limitSpec
		if err := json.Unmarshal([]byte(st.ColText(1)), &s); err != nil {
			return nil, false, err
		}
		l.of[st.ColText(0)] = s
		l.counts = l.counts || s.Running > 0
	}
	if err := st.Done(); err != nil {
		return nil, false, err
	}
	memory.setLimits(v.ns, l)
	return l, true, nil
}

// gate is a limit that a claim has met.
type gate struct {
	rate    task.Rate
	most    int // tasks that may run at once; 0: any
	arrival rules.Arrival
	stored  bool // weaver_rates has a row
	changed bool // the row must be written
}

// fullFor is the time after which a claim looks again at a lane that waits for the end of a task, if
// no notice told of one.
const fullFor = 200 * time.Millisecond

// runningOf counts running tasks by limit.
type runningOf map[string]int

// gates returns the limits that restrict the start of a lane's tasks. t is one of its tasks, or nil
// if it is not read yet: then a rate that tasks bring along is missing.
func (c *claim) gates(k *lane.Key, t *task.Task) (names []string) {
	for _, name := range store.LimitNames(k.Queue, k.Type, k.Group) {
		if c.gate[name] != nil {
			names = append(names, name)
			continue
		}
		spec, set := c.limits.of[name]
		g := &gate{rate: spec.Rate(), most: spec.Running}
		switch {
		case set && (g.rate.Starts > 0 || g.most > 0 || spec.Rests):
		case !set && t != nil && store.LimitRate+t.RateLimit.Key == name && t.RateLimit.Key != "":
			g.rate = t.RateLimit
		default:
			continue
		}
		if c.gate == nil {
			c.gate = make(map[string]*gate)
		}
		c.gate[name] = g
		c.unread = append(c.unread, name)
		names = append(names, name)
	}
	return names
}

// limited reports whether a limit may restrict the start of a lane's tasks.
func (c *claim) limited(k *lane.Key) bool {
	return k.Group != "" || len(c.limits.of) > 0 && len(c.gates(k, nil)) > 0
}

// opens returns the time from which on a lane's next task may start, at or before now if it may
// start now. t is that task, or nil if it is not read yet. full reports that it waits for the end of
// a running task.
func (c *claim) opens(k *lane.Key, t *task.Task) (at int64, full bool, err error) {
	if k.Group == "" && len(c.limits.of) == 0 {
		return 0, false, nil
	}
	names := c.gates(k, t)
	if len(names) == 0 {
		if _, rate := store.SplitGroup(k.Group); rate != "" && c.refused {
			return c.tx.mic + lockedFor.Microseconds(), false, nil
		}
		return 0, false, nil
	}
	if ok, err := c.lockGates(); err != nil || !ok {
		return c.tx.mic + lockedFor.Microseconds(), false, err
	}
	for _, name := range names {
		g := c.gate[name]
		at = max(at, g.arrival.OpenAt(g.rate))
		if g.most > 0 && c.running[name] >= g.most {
			full = true
		}
	}
	if full {
		at = max(at, c.tx.mic+fullFor.Microseconds())
	}
	return at, full, nil
}

const sqlRate = `SELECT arrival, rest_until FROM weaver_rates WHERE namespace = ?1 AND name = ?2`

// lockGates keeps other claims from counting for limits until the transaction ends, and reads the
// state of the gates that are not read yet. It reports false if another claim holds that lock.
func (c *claim) lockGates() (bool, error) {
	if c.refused {
		return false, nil
	}
	if !c.locked {
		ok, err := c.tx.db.TryName(c.tx, "limits")
		if err != nil || !ok {
			c.refused = err == nil
			return false, err
		}
		c.locked = true
	}
	for ; len(c.unread) > 0; c.unread = c.unread[1:] {
		name := c.unread[0]
		g := c.gate[name]
		var err error
		if g.arrival, g.stored, err = c.tx.arrival(name); err != nil {
			return false, err
		}
		g.arrival, g.changed = g.arrival.FitClaim(g.rate, c.tx.mic)
		if g.most > 0 && c.running == nil {
			if c.running, err = c.tx.runningOf(); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

var sqlRunningLanes = newIDSQL(func(in string) string {
	return `SELECT queue, task_type, lane_group FROM weaver_tasks WHERE namespace = ?1 AND task_id ` + in + ` AND state = 'running'`
})

// runningOf counts the running tasks by limit.
func (v *View) runningOf() (runningOf, error) {
	claims, err := claimColumns.All(v.stmt(sqlAllClaims).Text(1, v.ns))
	if err != nil {
		return nil, err
	}
	var ids []task.ID
	for i := range claims {
		ids = append(ids, claims[i].ids...)
	}
	slices.SortFunc(ids, task.ID.Compare)
	ids = slices.Compact(ids) // a task may still be listed by an earlier claim
	lanes := make(map[lane.Key]int)
	err = v.byIDs(sqlRunningLanes, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		for st.Next() {
			lanes[lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Group: st.ColName(2)}]++
		}
		return st.Done()
	})
	of := make(runningOf)
	for k, n := range lanes {
		for _, name := range store.LimitNames(k.Queue, k.Type, k.Group) {
			of[name] += n
		}
	}
	return of, err
}

// admits reports whether the limits of a candidate's lane let its task start now. If they do not,
// the claim passes over the rest of the lane.
func (c *claim) admits(d *candidate) (bool, error) {
	at, full, err := c.opens(&d.lane, d.task)
	if err != nil || at <= c.tx.mic {
		return err == nil, err
	}
	c.shut(&d.lane, at, full)
	return false, nil
}

// shut passes over the rest of a lane whose limits are closed until an instant.
func (c *claim) shut(k *lane.Key, until int64, full bool) {
	if c.closed == nil {
		c.closed = make(map[lane.Key]int64)
	}
	c.closed[*k] = until
	c.tx.fx.Closed = append(c.tx.fx.Closed, Closed{*k, until, full})
}

// start counts a task that is taken for the limits of its lane.
func (c *claim) start(d *candidate) {
	if c.gate == nil {
		return
	}
	for _, name := range c.gates(&d.lane, d.task) {
		g := c.gate[name]
		if g.rate.Starts > 0 {
			g.arrival, g.changed = g.arrival.Start(g.rate, c.tx.mic), true
		}
		if c.running != nil {
			c.running[name]++
		}
	}
}

const (
	sqlSetRate = `
INSERT INTO weaver_rates (namespace, name, arrival, rest_until, idle_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, name) DO UPDATE SET arrival = excluded.arrival, rest_until = excluded.rest_until, idle_at = excluded.idle_at`

	// sqlForgetRates deletes rows that say nothing any more.
	sqlForgetRates = `
DELETE FROM weaver_rates WHERE namespace = ?1 AND name IN (
  SELECT name FROM weaver_rates WHERE namespace = ?1 AND idle_at <= ?2 ORDER BY idle_at LIMIT ?3)`
)

func (t *Tx) writeRate(name string, a rules.Arrival) error {
	return t.stmt(sqlSetRate).Text(1, t.ns).Text(2, name).Int(3, a.Next).Int(4, a.Rest).Int(5, a.IdleAt()).Run()
}

// writeGates stores the starts of this claim. For each new row it forgets two that say nothing to any
// claim any more, so that the table holds the keys in use.
func (c *claim) writeGates() error {
	added := 0
	for _, name := range slices.Sorted(maps.Keys(c.gate)) {
		g := c.gate[name]
		if !g.changed {
			continue
		}
		if err := c.tx.writeRate(name, g.arrival); err != nil {
			return err
		}
		if !g.stored {
			added++
		}
	}
	if added == 0 {
		return nil
	}
	if b := c.tx.bulk; b != nil {
		return b.ForgetRates(c.tx, 2*added)
	}
	return c.tx.stmt(sqlForgetRates).Text(1, c.tx.ns).Int(2, c.tx.mic-rules.ClaimLag.Microseconds()).Int(3, int64(2*added)).Run()
}
