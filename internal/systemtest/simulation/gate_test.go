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

// outcome is the fate of an item that waited at the gate.
type outcome uint8

const (
	proceeds  outcome = iota // it happens, and the caller is answered
	refused                  // it never happens
	replyLost                // it happens, and the answer is lost
	late                     // the caller gives up first, then it happens
	gone                     // the caller's process is dead
)

func (f outcome) String() string {
	return [...]string{"", " refused", " unheard", " late", " gone"}[f]
}

// item waits at the gate: a goroutine, or an action of the simulation itself.
type item struct {
	proc  *process        // nil: the simulation
	name  string          // unique among the waiting items
	ctx   context.Context // may be nil; its end opens the gate early
	after time.Duration   // minimum wait after arrival
	ready func() bool     // an additional condition, or nil
	call  bool            // a store call: faults may hit it
	// It has several callers, which would all retry at one instant: no fault hits it.
	spared bool
	do     func()       // action of the simulation; for a call: the action that happens late
	open   chan outcome // nil: the simulation does it

	key       string
	came      time.Time
	scheduled bool
	gone      bool // it left by itself
	at        time.Time
	outcome   outcome
}

// whose returns the item's name for the log and for the order of the waiters. The names are part of the meaning of a
// seed: other names lead to another run.
func (it *item) whose() string {
	if it.proc == nil {
		return "world " + it.name
	}
	return it.proc.name + " " + it.name
}

func (it *item) expired() bool { return it.ctx != nil && it.ctx.Err() != nil }

// gate holds all waiting items and the log of the passed ones.
type gate struct {
	seed    uint64
	rng     *rand.Rand // chooses the next item
	begun   time.Time
	arrived chan struct{}

	mu       sync.Mutex // guards the fields below; no goroutine waits while holding it
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

// stream returns a separate generator for one purpose: its draws do not depend on the times of other draws.
func (g *gate) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never returns an error
	return rand.New(rand.NewPCG(g.seed, h.Sum64()))
}

func (g *gate) logf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, fmt.Sprintf("%12.6f ", time.Since(g.begun).Seconds())+fmt.Sprintf(format, args...))
}

// result adds to the log line of the item that passed last.
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
func (g *gate) park(it *item) outcome {
	it.open = make(chan outcome, 1)
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

// leave withdraws an item that has not passed.
func (g *gate) leave(it *item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	it.gone = true
}

// sorted returns the waiting items, by name.
func (g *gate) sorted() []*item {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(it *item) bool { return it.gone })
	slices.SortFunc(g.waiting, func(a, b *item) int { return strings.Compare(a.key, b.key) })
	return slices.Clone(g.waiting)
}

// turn lets one item pass, or advances time until one may.
func (sim *simulation) turn(until time.Time) {
	synctest.Wait()
	now := time.Now()
	next := until
	var able []*item
	for _, it := range sim.sorted() {
		if !it.scheduled {
			sim.schedule(it)
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
		case <-sim.arrived:
		case <-timer.C:
		}
		return
	}
	sim.open(able[sim.rng.IntN(len(able))])
	// Items never pass at the same instant, so that their timers hardly ever end at the same instant.
	time.Sleep(time.Microsecond + time.Duration(sim.rng.IntN(50_000)))
}

// schedule decides the fate of an item and its time.
func (sim *simulation) schedule(it *item) {
	it.scheduled = true
	it.at = it.came.Add(it.after)
	if it.proc == nil || it.open == nil {
		return
	}
	class, _, _ := strings.Cut(it.name, " ")
	delay, f := sim.fault(it.proc, class, it.call && !it.spared)
	it.at, it.outcome = it.at.Add(delay), f
}

func (sim *simulation) open(it *item) {
	sim.mu.Lock()
	sim.waiting = slices.DeleteFunc(sim.waiting, func(other *item) bool { return other == it })
	sim.passages++
	sim.mu.Unlock()
	if it.call && it.expired() {
		class, _, _ := strings.Cut(it.name, " ")
		it.outcome = sim.afterEnd(it.proc.stream(class))
	}
	if it.call && it.outcome != proceeds && !sim.outage.After(it.came) {
		it.proc.faultUntil = time.Now() // of this process only
	}
	sim.logf("%s%s", it.key, it.outcome)
	if it.outcome != proceeds {
		sim.count("calls"+it.outcome.String(), 1)
	}
	if it.open == nil {
		it.do()
		return
	}
	if it.outcome == late {
		sim.put(&item{name: fmt.Sprintf("late %s %d", it.key, sim.passages), after: time.Duration(sim.rng.Int64N(int64(2 * sim.ttl))), do: func() {
			sim.tooLate = true
			it.do()
			sim.tooLate = false
		}})
	}
	it.open <- it.outcome
}
