// Package lane remembers which lanes of a store may have due dispatch rows. A
// lane is a queue, a task type and a priority; a claim asks for some of them.
//
// The [Cache] holds the set of lanes that may have rows, each with an instant
// before which none of its rows is due. A claim probes only those, and only
// when something can be due, so that a million rows of the future and ten
// thousand idle lanes cost nothing.
//
// What always holds, but for [Cache.Unnoticed]: a lane that has rows is in the
// set, and its bound is never too late. A lane too many, or a bound too early, costs one probe. Rows
// of this process are added when they are written; rows of other processes are
// found when the store reads the lanes again, which it does after
// [Cache.Invalidate].
//
// The package runs no SQL and starts no goroutine. A Cache is safe for
// concurrent use.
package lane

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// Key names a lane.
type Key struct {
	Queue, Type string
	Priority    int64
}

// Empty is the bound of a lane without rows.
const Empty = math.MaxInt64

// State is a copy of what is known of one lane.
type State struct {
	Key
	Bound   int64 // no row is due before, in microseconds
	version uint64
}

// Saw returns the observation that the lane's first row is due at bound, or
// that it has none ([Empty]).
func (s *State) Saw(bound int64) Seen { return Seen{s.Key, s.version, bound} }

// Seen is what a claim found out about a lane. It holds once the claim is
// committed, if nothing was added to the lane meanwhile.
type Seen struct {
	key     Key
	version uint64
	bound   int64
}

// Cache remembers the lanes of all namespaces. The zero value knows nothing.
type Cache struct {
	// Unnoticed says that other processes write at any time and nothing tells of
	// it. Then the lanes are read for every claim, and what is remembered serves
	// only while reading takes long: a lane of another process may be missing,
	// or its bound be too late, for as long as [Cache.NeedsReading] says.
	Unnoticed bool

	mu      sync.Mutex
	spaces  map[string]*space
	version uint64   // of the last change
	unsure  []string // namespaces read in the transaction that is open
}

// space is what is known of one namespace.
type space struct {
	lanes map[Key]*lane
	stale bool // another process wrote since it was read
	read  Reading
}

// Reading is one reading of the lanes of a namespace from the database.
type Reading struct {
	Since uint64        // the cache's Version when it began
	Now   int64         // the store's clock then, in microseconds
	At    time.Time     // this process's clock then
	Took  time.Duration // how long it took
}

type lane struct {
	bound   int64
	version uint64 // of the last row added
}

// Add notes a dispatch row that is due at available. It is called by the
// holder of the write lock, so no claim looks before the row is committed. A
// row that is rolled back costs one probe.
func (c *Cache) Add(ns string, key Key, available int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return // never read: the first claim finds the row
	}
	c.version++
	if l := sp.lanes[key]; l != nil {
		l.bound = min(l.bound, available)
		l.version = c.version
		return
	}
	sp.lanes[key] = &lane{bound: available, version: c.version}
}

// AddDue is Add for a committed row that was due, by the store's clock, when it was
// written.
func (c *Cache) AddDue(ns string, key Key) {
	c.mu.Lock()
	sp := c.spaces[ns]
	c.mu.Unlock()
	if sp != nil {
		c.Add(ns, key, sp.read.Now)
	}
}

// Observe applies what a committed claim saw.
func (c *Cache) Observe(ns string, seen []Seen) {
	if len(seen) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return
	}
	for _, s := range seen {
		l := sp.lanes[s.key]
		switch {
		case l == nil || l.version != s.version:
		case s.bound == Empty:
			delete(sp.lanes, s.key)
		default:
			l.bound = s.bound
		}
	}
}

// Invalidate notes that another process wrote.
func (c *Cache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sp := range c.spaces {
		sp.stale = true
	}
}

// Lanes returns the lanes that ok accepts, by priority, then by bound.
func (c *Cache) Lanes(ns string, ok func(Key) bool) []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []State
	if sp := c.spaces[ns]; sp != nil {
		for k, l := range sp.lanes {
			if ok(k) {
				list = append(list, State{k, l.bound, l.version})
			}
		}
	}
	slices.SortFunc(list, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Bound, b.Bound), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// Few is the number of lanes up to which they are read again after every
// external write: reading them takes a millisecond.
const Few = 256

// With Unnoticed, a reading that takes Long is not repeated for every claim, but
// after Latest at the latest.
const (
	Long   = 2 * time.Millisecond
	Latest = time.Second
)

// NeedsReading reports whether a namespace's lanes must be read from the
// database. With thousands of lanes beside a process that writes all the time,
// reading would take all of the time, so reading more than [Few], or for [Long],
// takes at most a twentieth of it: wait says how much later the next reading is.
func (c *Cache) NeedsReading(ns string, now time.Time) (need bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	switch {
	case sp == nil:
		return true, 0
	case c.Unnoticed && sp.read.Took < Long:
		return true, 0
	case c.Unnoticed:
		wait = max(0, min(20*sp.read.Took, Latest)-now.Sub(sp.read.At))
		return wait == 0, wait
	case !sp.stale:
		return false, 0
	case len(sp.lanes) <= Few:
		return true, 0
	}
	wait = max(0, 20*sp.read.Took-now.Sub(sp.read.At))
	return wait == 0, wait
}

// Version changes with each row that is added and each reading.
func (c *Cache) Version() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Replace sets what was read from the database, with the bound of each lane.
// Lanes of which more became known since the reading began stay. It is read in
// a transaction that may have deleted rows before: [Cache.Ended] follows.
func (c *Cache) Replace(ns string, read map[Key]int64, r Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	sp := &space{lanes: make(map[Key]*lane, len(read)), read: r}
	for k, bound := range read {
		sp.lanes[k] = &lane{bound: bound, version: c.version}
	}
	if old := c.spaces[ns]; old != nil {
		for k, l := range old.lanes {
			if l.version <= r.Since {
				continue
			}
			if n := sp.lanes[k]; n != nil {
				n.bound = min(n.bound, l.bound)
			} else {
				sp.lanes[k] = l
			}
		}
	}
	if c.spaces == nil {
		c.spaces = make(map[string]*space)
	}
	c.spaces[ns] = sp
	if !c.Unnoticed {
		c.unsure = append(c.unsure, ns)
	}
}

// Ended notes the end of the transaction of the holder of the write lock. What
// was read in one that is lost is forgotten: the rows that it had deleted are
// there again.
func (c *Cache) Ended(committed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !committed {
		for _, ns := range c.unsure {
			delete(c.spaces, ns)
		}
	}
	c.unsure = c.unsure[:0]
}
