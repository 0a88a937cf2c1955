package simulation_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

const (
	ns          = "sim"
	places      = 3 // engines at a time
	crashBudget = 3

	// lookEvery is after how many passages the whole store is judged.
	lookEvery = 64

	// mostPassages and mostTime are when a world that should have come to rest
	// is given up, with its unfinished tasks.
	mostPassages = 60_000
	mostTime     = 30 * time.Minute
)

// world is one simulation.
type world struct {
	gate
	judge
	troubles
	mem *memstore.Store
	rnd *rand.Rand // what people do, and when

	procs   [places]*process
	lives   [places]int
	running sync.WaitGroup // engines and waiters
	waiters []*process
	outage  time.Time   // nobody reaches the store before
	tooLate bool        // what happens now does so after its caller gave up
	calm    bool        // no more faults
	broken  atomic.Bool // a violation was found
	wrong   []string

	tasks   []task.ID // submitted by people, in order
	jobs    []task.ID
	ids     *task.IDs
	deadly  map[task.ID]bool
	deleted map[task.ID]bool
	crashes map[task.ID]int
	tally   map[string]int // what happened how often
}

// troubles are what a seed has in store: a shape, and how likely each fault
// is.
type troubles struct {
	ttl   time.Duration
	slots [places]int
	lossy [places]bool

	fail, lose, tardy, slow float64 // of a call
	drop, twice             float64 // of a notice

	freezes, kills, stops, jumps, restores int
	outages                                int  // of the store, for everybody
	declare                                bool // deaths are known to the store at once
	skewed                                 bool // clocks differ
	poison                                 int  // tasks that kill their process
	pure                                   bool // and nothing else goes wrong
	days                                   time.Duration
	loads                                  int
}

func (w *world) drawTroubles() {
	r := w.stream("troubles")
	some := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	few := func(most int) int { return r.IntN(2) * (1 + r.IntN(most)) }
	w.ttl = []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second}[r.IntN(3)]
	w.slots = [places]int{8, 7, 5}
	kind := r.IntN(3) // all hear everything, nobody does, or some do
	for i := range w.lossy {
		w.lossy[i] = kind == 1 || kind == 2 && r.IntN(2) == 0
	}
	w.fail, w.lose, w.tardy, w.slow = some(0.08), some(0.08), some(0.02), some(0.1)
	w.drop, w.twice = some(0.8), some(0.3)
	w.freezes, w.kills, w.stops, w.jumps, w.restores = few(4), few(4), few(2), few(3), r.IntN(5)/4
	if kind == 1 { // memory, of which all is heard, is never out of reach
		w.outages = r.IntN(4)
	}
	if w.outages > 0 && r.IntN(2) == 0 { // and nothing else goes wrong
		w.fail, w.lose, w.tardy, w.freezes = 0, 0, 0, 0
		w.slow = 0.3
	}
	w.declare = r.IntN(2) == 0
	w.skewed = w.jumps > 0
	w.poison = r.IntN(4) / 3
	if w.pure = w.poison > 0 && r.IntN(2) == 0; w.pure {
		w.fail, w.lose, w.tardy, w.freezes, w.kills, w.stops, w.restores, w.outages = 0, 0, 0, 0, 0, 0, 0, 0
	}
	w.days = 8 * w.ttl
	w.loads = 14 + r.IntN(8)
}

func (w *world) drawSkew() time.Duration {
	if !w.skewed {
		return 0
	}
	return time.Duration(w.rnd.Int64N(int64(12*time.Hour))-int64(6*time.Hour)) / time.Microsecond * time.Microsecond
}

// fault decides what happens to one that came to the gate.
func (w *world) fault(p *process, class string, call bool) (delay time.Duration, f fate) {
	rng := p.stream(class)
	delay = time.Duration(rng.IntN(1000)) * time.Microsecond
	hit, slow := rng.Float64(), rng.Float64()
	switch {
	case w.calm || !call:
		return delay, goesOn
	case p.eng != nil && w.outage.After(time.Now()):
		return delay, refused
	}
	if slow < w.slow {
		delay += time.Duration(rng.Int64N(int64(w.ttl / 6)))
	}
	// So slow that callers give up. The engine joins without a deadline.
	if slow < w.tardy && class != "join" && !p.stopping {
		delay += time.Duration(rng.Int64N(int64(2 * w.ttl)))
	}
	switch {
	case hit < w.fail:
		return delay, refused
	case hit < w.fail+w.lose:
		return delay, unheard
	}
	return delay, goesOn
}

// afterEnd decides what becomes of a call whose caller gave up.
func (w *world) afterEnd(rng *rand.Rand) fate {
	if w.calm {
		return refused
	}
	return []fate{refused, unheard, late}[rng.IntN(3)]
}

func (w *world) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.broken.Store(true)
	w.wrong = append(w.wrong, text)
	w.lines = append(w.lines, "VIOLATION "+text)
}

// count tallies what happened.
func (w *world) count(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what] += n
}

// label names a task for people, by the order in which they are first spoken
// of.
func (w *world) label(id task.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names[id] == "" {
		w.names[id] = fmt.Sprintf("T%d", len(w.names)+1)
	}
	return w.names[id]
}

// entropy is the source of the ids that somebody makes.
func (w *world) entropy(name string) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprintf("%d %s", w.seed, name))
	return rand.NewChaCha8(key)
}

// simulate plays one seed and returns its log, what was wrong, and how often
// what happened.
func simulate(t *testing.T, seed uint64) (lines, wrong []string, tally map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			mem: memstore.New(), deadly: map[task.ID]bool{}, deleted: map[task.ID]bool{}, crashes: map[task.ID]int{}, tally: map[string]int{},
			judge: judge{
				leases: map[leaseKey]*lease{}, epochs: map[task.ID]int64{}, values: map[string]string{}, acked: map[task.ID]bool{},
				declared: map[store.WorkerID]bool{}, before: map[task.ID]task.Task{}, names: map[task.ID]string{},
				handlers: map[leaseKey]context.Context{}, lookups: map[task.LeaseID]bool{},
			},
		}
		w.init(seed)
		w.rnd = w.stream("people")
		w.ids = task.NewIDs(w.entropy("people"))
		w.drawTroubles()
		w.logf("world %+v", w.troubles)
		w.live()
		if w.broken.Load() {
			w.end()
		}
		w.running.Wait()
		w.count("passages", w.passages)
		lines, wrong, tally = w.lines, w.wrong, w.tally
	})
	return lines, wrong, tally
}

// live is the life of a world: days of trouble, then calm in which everything
// must come to an end, then the engines stop.
func (w *world) live() {
	w.look()
	for i := range places {
		w.start(i)
	}
	w.plan()
	evening := time.Now().Add(w.days)
	if !w.until("the evening", evening, func() bool { return !time.Now().Before(evening) }) {
		return
	}
	w.quieten()
	deadline := time.Now().Add(mostTime)
	if !w.until("all tasks ended", deadline, func() bool { return w.passages%20 == 0 && w.allEnded() }) {
		return
	}
	heard := func() bool {
		return !slices.ContainsFunc(w.waiters, func(p *process) bool { return !p.over.Load() })
	}
	if !w.until("all waiters heard", deadline, heard) {
		return
	}
	for _, p := range w.procs {
		w.halt(p)
	}
	w.until("the engines stopped", deadline, func() bool {
		for _, p := range w.procs {
			if !p.over.Load() {
				return false
			}
		}
		return true
	})
	w.look()
}

// until lets the world go on until done holds, and reports false when it never
// did or something went wrong.
func (w *world) until(what string, deadline time.Time, done func() bool) bool {
	for !done() {
		w.turn(deadline)
		w.heeds()
		if w.passages%lookEvery == 0 {
			w.look()
		}
		if w.broken.Load() {
			return false
		}
		if (w.passages > mostPassages || time.Now().After(deadline)) && !done() {
			w.failf("not yet %s after %d passages and %v:\n\t%s", what, w.passages, time.Since(w.begun), strings.Join(w.unfinished(), "\n\t"))
			return false
		}
	}
	return true
}

func (w *world) allEnded() bool {
	for _, p := range w.procs {
		if p.dead.Load() || p.over.Load() {
			return false
		}
	}
	return len(w.unfinished()) == 0
}

// end tears a broken world down.
func (w *world) end() {
	for _, p := range slices.Concat(w.procs[:], w.waiters) {
		w.kill(p, false)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range w.waiting {
		if it.open != nil && !it.left {
			it.open <- gone
		}
	}
}

// quieten ends the faults, and whatever people had stopped goes on.
func (w *world) quieten() {
	w.calm = true
	w.logf("world is calm")
	for _, p := range w.procs {
		if now := time.Now(); p.frozen.After(now) {
			p.frozen = now
		}
	}
	for _, q := range queues {
		w.operate(store.ResumeQueue{Queue: q})
	}
	w.help()
}

// help unblocks what is blocked, now and then, until the end.
func (w *world) help() {
	for _, t := range w.list(task.Blocked) {
		w.operate(store.UnblockTask{Task: t.ID, Input: []byte(`"go on"`)})
	}
	w.put(&item{name: "help", after: 5 * time.Second, do: w.help})
}
