// Package lane caches which lanes of a store may have due dispatch rows. A lane is a queue, a
// task type, a group and a priority; a claim asks for some of them.
//
// The [Cache] holds the set of lanes that may have rows, each with an instant before which no
// row is due. A claim probes only these lanes, and only when a row can be due. A million
// future rows and ten thousand idle lanes therefore cost nothing.
//
// Invariant, except with [Cache.Unnoticed]: a lane with rows is in the set, and its bound is
// never too late. An extra lane, or a bound that is too early, costs one probe. Rows of this
// process are added when they are written. Rows of other processes are found when the store
// reads the lanes again, after [Cache.Invalidate].
//
// Lanes with a group are in classes of the same queue, type and priority, in which they take
// turns ([Cache.Turns]). A claim looks only at the lanes whose turn it is. A lane that a
// limit closes is not due before the limit opens ([Cache.Close]).
//
// The package runs no SQL and starts no goroutine. A Cache is safe for concurrent use.
package lane

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// Key identifies a lane.
type Key struct {
	Queue, Type string
	Group       string // what its tasks share a limit or a turn with; "": nothing
	Priority    int64
}

// Empty is the bound of a lane without rows.
const Empty = math.MaxInt64

// State is a copy of the cached state of one lane.
type State struct {
	Key
	Bound   int64 // no row is due before this time, in microseconds
	Open    int64 // a limit lets no task start before this time
	version uint64
}

// Due is the time before which claims skip the lane.
func (s *State) Due() int64 { return max(s.Bound, s.Open) }

func (l *lane) state() State { return State{l.key, l.bound, l.open, l.version} }

// Saw returns the observation that the lane's first row is due at bound, or that it has no row
// ([Empty]).
func (s *State) Saw(bound int64) Seen { return Seen{s.Key, s.version, bound} }

// Seen is a claim's observation of a lane. It is valid once the claim is committed, unless a
// row was added to the lane meanwhile.
type Seen struct {
	key     Key
	version uint64
	bound   int64
}

// Cache holds the lanes of all namespaces. The zero value is empty.
type Cache struct {
	// Unnoticed means that other processes write at any time without a signal. Then every
	// claim reads the lanes, except while reading takes long. Until the next reading a lane of
	// another process may be missing, or its bound be too late ([Cache.NeedsReading]).
	Unnoticed bool

	mu      sync.Mutex
	spaces  map[string]*space
	version uint64   // of the last change
	unsure  []string // namespaces read in the open transaction
}

// space holds the lanes of one namespace.
type space struct {
	lanes   map[Key]*lane // all of them
	plain   map[Key]*lane // those without a group
	classes map[Class]*class
	stale   bool // another process wrote since the reading
	read    Reading
	turn    int     // of the classes of a claim
	full    []*lane // closed until a task ends
}

// add adds a lane that the space does not have.
func (sp *space) add(k Key, l *lane) {
	l.key = k
	sp.lanes[k] = l
	if k.Group == "" {
		sp.plain[k] = l
		return
	}
	c := sp.classes[k.Class()]
	if c == nil {
		c = newClass()
		sp.classes[k.Class()] = c
	}
	c.wait(l)
}

// move applies a new due time of a lane.
func (sp *space) move(l *lane) {
	if l.key.Group != "" {
		sp.classes[l.key.Class()].move(l)
	}
}

func (sp *space) remove(l *lane) {
	delete(sp.lanes, l.key)
	if l.key.Group == "" {
		delete(sp.plain, l.key)
		return
	}
	of := l.key.Class()
	c := sp.classes[of]
	if c.remove(l); c.empty() {
		delete(sp.classes, of)
	}
}

// Reading describes one reading of a namespace's lanes from the database.
type Reading struct {
	Since uint64        // the cache's Version at the start
	Now   int64         // the store's clock at the start, in microseconds
	At    time.Time     // this process's clock at the start
	Took  time.Duration // duration of the reading
}

type lane struct {
	key     Key
	bound   int64
	open    int64  // a limit lets none of its tasks start before
	version uint64 // of the last added row

	place // in its class
}

// due is State.Due.
func (l *lane) due() int64 { return max(l.bound, l.open) }

// Add records a dispatch row that is due at available. The holder of the write lock calls it,
// so no claim looks before the row is committed. A row that is rolled back costs one probe.
func (c *Cache) Add(ns string, key Key, available int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.spaces[ns]
	if sp == nil {
		return // never read: the first claim finds the row
	}
	c.version++
	if l := sp.lanes[key]; l != nil {
		l.version = c.version
		if available < l.bound {
			l.bound = available
			sp.move(l)
		}
		return
	}
	sp.add(key, &lane{bound: available, version: c.version})
}

// AddDue is Add for a committed row that was due, by the store's clock, when it was written.
func (c *Cache) AddDue(ns string, key Key) {
	c.mu.Lock()
	sp := c.spaces[ns]
	c.mu.Unlock()
	if sp != nil {
		c.Add(ns, key, sp.read.Now)
	}
}

// Observe applies the observations of a committed claim.
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
			sp.remove(l)
		default:
			l.bound = s.bound
			sp.move(l)
		}
	}
}

// Invalidate records that another process wrote.
func (c *Cache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sp := range c.spaces {
		sp.stale = true
	}
}

// Lanes returns the lanes without a group that ok accepts, sorted by priority, then by the time
// from which on they may have a task to start.
func (c *Cache) Lanes(ns string, ok func(Key) bool) []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []State
	if sp := c.spaces[ns]; sp != nil {
		for k, l := range sp.plain {
			if ok(k) {
				list = append(list, l.state())
			}
		}
	}
	slices.SortFunc(list, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Due(), b.Due()), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// Few is the maximum number of lanes that are read again after every external write. Reading
// them takes a millisecond.
const Few = 256

// With Unnoticed, a reading that takes Long is not repeated for every claim, but after Latest
// at the latest.
const (
	Long   = 2 * time.Millisecond
	Latest = time.Second
)

// NeedsReading reports whether a namespace's lanes must be read from the database. With
// thousands of lanes and another process that writes constantly, reading would take all of the
// time. Reading more than [Few] lanes, or for [Long], therefore takes at most a twentieth of
// the time: wait is the time until the next reading.
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

// Version changes with each added row and each reading.
func (c *Cache) Version() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Replace sets the lanes read from the database, with their bounds. It keeps changes recorded
// since the reading began. The reading transaction may have deleted rows before, so a call of
// [Cache.Ended] must follow.
func (c *Cache) Replace(ns string, read map[Key]int64, r Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	sp := c.spaces[ns]
	if sp == nil {
		sp = &space{lanes: make(map[Key]*lane, len(read)), plain: make(map[Key]*lane), classes: make(map[Class]*class)}
	}
	sp.read, sp.stale = r, false
	for k, l := range sp.lanes {
		if _, ok := read[k]; !ok && l.version <= r.Since {
			sp.remove(l)
		}
	}
	for k, bound := range read {
		l := sp.lanes[k]
		switch {
		case l == nil:
			sp.add(k, &lane{bound: bound, version: c.version})
			continue
		case l.version > r.Since:
			bound = min(bound, l.bound)
		}
		l.bound, l.version = bound, c.version
		sp.move(l)
	}
	if c.spaces == nil {
		c.spaces = make(map[string]*space)
	}
	c.spaces[ns] = sp
	if !c.Unnoticed {
		c.unsure = append(c.unsure, ns)
	}
}

// Ended records the end of the transaction of the holder of the write lock. If it was rolled
// back, Ended drops the lanes that were read in it, because its deleted rows exist again.
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
