package sqlite

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// lanes is the set of (queue, type, priority) that may have dispatch rows,
// each with an instant before which none of its rows is due. Claims probe
// only these, and only when something can be due: a million rows of the
// future and ten thousand idle lanes cost nothing.
//
// It errs on one side only: a lane that has rows is in the set, and its bound
// is never too late. Rows of this process are added when they are written,
// rows of others are found by reading the lanes again when the data version
// changed.
type lanes struct {
	mu      sync.Mutex
	spaces  map[string]*laneSpace
	version uint64
}

type laneSpace struct {
	lanes  map[laneKey]*lane
	stale  bool          // others wrote since it was read
	readAt time.Time     // when it was read …
	took   time.Duration // and how long that took
}

type laneKey struct {
	queue, typ string
	priority   int64
}

type lane struct {
	bound   int64 // no row is due before
	version uint64
}

// laneSeen is what a claim found out about a lane. It holds once the claim is
// committed, if nothing was added to the lane meanwhile.
type laneSeen struct {
	key     laneKey
	version uint64
	bound   int64 // noRows: it is empty
}

const noRows = math.MaxInt64

// add notes a dispatch row, by whoever holds the write lock: no claim looks
// before he commits. A row that is rolled back costs one probe.
func (l *lanes) add(ns string, key laneKey, available int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sp := l.spaces[ns]
	if sp == nil {
		return // never read: the first claim will find the row
	}
	l.version++
	if ln := sp.lanes[key]; ln != nil {
		ln.bound = min(ln.bound, available)
		ln.version = l.version
		return
	}
	sp.lanes[key] = &lane{bound: available, version: l.version}
}

// settle applies what a committed claim saw.
func (l *lanes) settle(ns string, seen []laneSeen) {
	if len(seen) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sp := l.spaces[ns]
	if sp == nil {
		return
	}
	for _, s := range seen {
		ln := sp.lanes[s.key]
		switch {
		case ln == nil || ln.version != s.version:
		case s.bound == noRows:
			delete(sp.lanes, s.key)
		default:
			ln.bound = s.bound
		}
	}
}

// invalidate notes that somebody else wrote.
func (l *lanes) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sp := range l.spaces {
		sp.stale = true
	}
}

// laneState is a copy of one lane.
type laneState struct {
	laneKey
	bound   int64
	version uint64
}

// asked returns the lanes that ok wants, by priority, then by bound.
func (l *lanes) asked(ns string, ok func(laneKey) bool) []laneState {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []laneState
	if sp := l.spaces[ns]; sp != nil {
		for k, ln := range sp.lanes {
			if ok(k) {
				list = append(list, laneState{k, ln.bound, ln.version})
			}
		}
	}
	slices.SortFunc(list, func(a, b laneState) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.bound, b.bound), cmp.Compare(a.queue, b.queue), cmp.Compare(a.typ, b.typ))
	})
	return list
}

// fewLanes are read again whenever others wrote: it takes a millisecond.
const fewLanes = 256

// needsReading reports whether a namespace's lanes must be read from the
// table. With thousands of lanes and a busy neighbour that would be all the
// time, so reading that many takes at most a twentieth of it: wait says how
// long what is known has to do.
func (l *lanes) needsReading(ns string, now time.Time) (need bool, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sp := l.spaces[ns]
	switch {
	case sp == nil:
		return true, 0
	case !sp.stale:
		return false, 0
	case len(sp.lanes) <= fewLanes:
		return true, 0
	}
	wait = max(0, 20*sp.took-now.Sub(sp.readAt))
	return wait == 0, wait
}

// replace sets what was read from the table.
func (l *lanes) replace(ns string, read map[laneKey]int64, at time.Time, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	sp := &laneSpace{lanes: make(map[laneKey]*lane, len(read)), readAt: at, took: took}
	for k, bound := range read {
		sp.lanes[k] = &lane{bound: bound, version: l.version}
	}
	if l.spaces == nil {
		l.spaces = make(map[string]*laneSpace)
	}
	l.spaces[ns] = sp
}

// sqlNextLane finds the lane after the given one by jumping over all rows of
// it: a loose index scan, one probe per lane.
const sqlNextLane = `
SELECT queue, task_type, priority, available_at FROM weaver_outbox_events
WHERE namespace = ?1 AND (queue, task_type, priority) > (?2, ?3, ?4)
ORDER BY queue, task_type, priority, available_at LIMIT 1`

// readLanes makes the set of lanes agree with the table, or says when it will.
// A lane whose rows this transaction wrote and rolls back is one too many, no
// more.
func (t *tx) readLanes() (wait time.Duration, err error) {
	start := time.Now()
	need, wait := t.db.lanes.needsReading(t.ns, start)
	if !need {
		return wait, nil
	}
	read := make(map[laneKey]int64)
	var k laneKey
	for {
		st := t.stmt(sqlNextLane).Text(1, t.ns).Text(2, k.queue).Text(3, k.typ).Int(4, k.priority)
		found := st.One()
		if found {
			k = laneKey{st.ColName(0), st.ColName(1), st.ColInt(2)}
			read[k] = st.ColInt(3)
		}
		if err := st.Done(); err != nil {
			return 0, err
		}
		if !found {
			break
		}
	}
	t.db.lanes.replace(t.ns, read, start, time.Since(start))
	return 0, nil
}
