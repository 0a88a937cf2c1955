package simulation_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// fate is what becomes of one who waited at the gate.
type fate uint8

const (
	goesOn  fate = iota // it happens, and the caller is answered
	refused             // it never happens
	unheard             // it happens, and the answer is lost
	late                // the caller gives up first, then it happens
	gone                // the caller's process is dead
)

func (f fate) String() string {
	return [...]string{"", " refused", " unheard", " late", " gone"}[f]
}

// item is one who waits at the gate: a goroutine, or something that the world
// does itself.
type item struct {
	proc  *process        // nil: the world
	name  string          // no two who wait at one time share it
	ctx   context.Context // may be nil; its end opens the gate early
	after time.Duration   // not sooner than this after it came
	ready func() bool     // nil, or must hold too
	call  bool            // to the store: faults may meet it
	do    func()          // what the world does; for a call: what happens late
	open  chan fate       // nil: the world does it

	key      string
	came     time.Time
	admitted bool
	left     bool // it went away by itself
	at       time.Time
	fate     fate
}

// whose names the item for the log and for the order of those who wait.
func (it *item) whose() string {
	if it.proc == nil {
		return "world " + it.name
	}
	return it.proc.name + " " + it.name
}

func (it *item) expired() bool { return it.ctx != nil && it.ctx.Err() != nil }

// gate is where everybody waits, and the log of who passed.
type gate struct {
	seed    uint64
	rng     *rand.Rand // who passes next
	begun   time.Time
	arrived chan struct{}

	mu       sync.Mutex // guards the rest; nobody waits while holding it
	waiting  []*item
	passages int
	lines    []string
}

func (g *gate) init(seed uint64) {
	g.seed = seed
	g.rng = g.stream("gate")
	g.begun = time.Now()
	g.arrived = make(chan struct{}, 1)
}

// stream returns a generator of its own for one purpose: what one of them
// draws does not depend on when the others do.
func (g *gate) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes every write
	return rand.New(rand.NewPCG(g.seed, h.Sum64()))
}

func (g *gate) logf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, fmt.Sprintf("%12.6f ", time.Since(g.begun).Seconds())+fmt.Sprintf(format, args...))
}

// result adds to the line of whoever passed last.
func (g *gate) result(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines[len(g.lines)-1] += text
}

func (g *gate) put(it *item) {
	it.came, it.key = time.Now(), it.whose()
	g.mu.Lock()
	g.waiting = append(g.waiting, it)
	g.mu.Unlock()
	g.signal()
}

func (g *gate) signal() {
	select {
	case g.arrived <- struct{}{}:
	default:
	}
}

// park waits at the gate.
func (g *gate) park(it *item) fate {
	it.open = make(chan fate, 1)
	if it.ctx != nil {
		stop := context.AfterFunc(it.ctx, g.signal)
		defer stop()
	}
	if it.proc != nil && it.proc.dead.Load() {
		return gone
	}
	g.put(it)
	return <-it.open
}

// leave takes back an item that nobody let pass.
func (g *gate) leave(it *item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	it.left = true
}

// sorted returns those who wait, by name.
func (g *gate) sorted() []*item {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(it *item) bool { return it.left })
	slices.SortFunc(g.waiting, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	return slices.Clone(g.waiting)
}

// turn lets one pass, or lets time pass until somebody may.
func (w *world) turn(until time.Time) {
	synctest.Wait()
	now := time.Now()
	next := until
	var able []*item
	for _, it := range w.sorted() {
		if !it.admitted {
			w.admit(it)
		}
		at := it.at
		if it.expired() {
			at = now
		}
		if it.proc != nil && it.proc.frozen.After(at) {
			at = it.proc.frozen
		}
		switch {
		case at.After(now):
			if at.Before(next) {
				next = at
			}
		case it.ready == nil || it.ready():
			able = append(able, it)
		}
	}
	if len(able) == 0 {
		timer := time.NewTimer(next.Sub(now))
		defer timer.Stop()
		select {
		case <-w.arrived:
		case <-timer.C:
		}
		return
	}
	w.pass(able[w.rng.IntN(len(able))])
	// No two pass at the same instant, so that hardly any two timers that they
	// set ever end at the same instant.
	time.Sleep(time.Microsecond + time.Duration(w.rng.IntN(50_000)))
}

// admit decides what will become of an item, and when.
func (w *world) admit(it *item) {
	it.admitted = true
	it.at = it.came.Add(it.after)
	if it.proc == nil || it.open == nil {
		return
	}
	class, _, _ := strings.Cut(it.name, " ")
	delay, f := w.fault(it.proc, class, it.call)
	it.at, it.fate = it.at.Add(delay), f
}

func (w *world) pass(it *item) {
	w.mu.Lock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other *item) bool { return other == it })
	w.passages++
	w.mu.Unlock()
	if it.call && it.expired() {
		class, _, _ := strings.Cut(it.name, " ")
		it.fate = w.afterEnd(it.proc.stream(class))
	}
	if it.call && it.fate != goesOn && !w.outage.After(it.came) {
		it.proc.trouble = time.Now() // of its own
	}
	w.logf("%s%s", it.key, it.fate)
	if it.fate != goesOn {
		w.count("calls"+it.fate.String(), 1)
	}
	if it.open == nil {
		it.do()
		return
	}
	if it.fate == late {
		w.put(&item{name: fmt.Sprintf("late %s %d", it.key, w.passages), after: time.Duration(w.rng.Int64N(int64(2 * w.ttl))), do: func() {
			w.tooLate = true
			it.do()
			w.tooLate = false
		}})
	}
	it.open <- it.fate
}
