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
	places      = 3 // concurrent engines
	crashBudget = 3

	// checkEvery is the number of passages between checks of the whole store.
	checkEvery = 64

	// maxPassages and maxTime end a run that should have settled. The run fails and lists its unfinished tasks.
	maxPassages = 60_000
	maxTime     = 30 * time.Minute
)

// simulation is the run of one seed.
type simulation struct {
	gate
	checker
	faultPlan
	mem *memstore.Store
	rnd *rand.Rand // commands of operators and their times

	procs   [places]*process
	lives   [places]int
	running sync.WaitGroup // engines and waiters
	waiters []*process
	outage  time.Time   // the store is unreachable until then
	tooLate bool        // the current action happens after its caller gave up
	calm    bool        // no more faults
	broken  atomic.Bool // a violation was found
	wrong   []string

	tasks []task.ID // submitted, in order
	jobs  []task.ID
	// Transactions of the user, and tasks that no engine serves (transaction_test.go).
	txs       int
	openTxs   atomic.Int64
	unserved  []task.ID
	ids       *task.IDs
	signals   map[signalKey]string // accepted, with their payloads
	exhausted map[task.ID]bool     // jobs whose budget was seen used up
	helps     int                  // signals sent to waiting tasks at the end
	deadly    map[task.ID]bool
	deleted   map[task.ID]bool
	crashes   map[task.ID]int
	tally     map[string]int // counts of events
}

// faultPlan is drawn by a seed: the shape of a run and the probability of each fault.
type faultPlan struct {
	ttl   time.Duration
	slots [places]int
	lossy [places]bool

	fail, lose, tardy, slow float64 // per call
	drop, twice             float64 // per notice

	freezes, kills, stops, jumps, restores int
	outages                                int  // of the store, for every process
	declare                                bool // the store learns of deaths at once
	skewed                                 bool // clocks differ
	poison                                 int  // tasks that kill their process
	onlyPoison                             bool // and no other faults
	length                                 time.Duration
	loads                                  int
}

func (sim *simulation) drawFaults() {
	r := sim.stream("troubles")
	some := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return most * r.Float64()
	}
	few := func(most int) int { return r.IntN(2) * (1 + r.IntN(most)) }
	sim.ttl = []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second}[r.IntN(3)]
	sim.slots = [places]int{8, 7, 5}
	kind := r.IntN(3) // all processes get every notice, no process does, or some do
	for i := range sim.lossy {
		sim.lossy[i] = kind == 1 || kind == 2 && r.IntN(2) == 0
	}
	sim.fail, sim.lose, sim.tardy, sim.slow = some(0.08), some(0.08), some(0.02), some(0.1)
	sim.drop, sim.twice = some(0.8), some(0.3)
	sim.freezes, sim.kills, sim.stops, sim.jumps, sim.restores = few(4), few(4), few(2), few(3), r.IntN(5)/4
	if kind == 1 { // a store in memory, with complete notices, is always reachable
		sim.outages = r.IntN(4)
	}
	if sim.outages > 0 && r.IntN(2) == 0 { // and no other faults
		sim.fail, sim.lose, sim.tardy, sim.freezes = 0, 0, 0, 0
		sim.slow = 0.3
	}
	sim.declare = r.IntN(2) == 0
	sim.skewed = sim.jumps > 0
	sim.poison = r.IntN(4) / 3
	if sim.onlyPoison = sim.poison > 0 && r.IntN(2) == 0; sim.onlyPoison {
		sim.fail, sim.lose, sim.tardy, sim.freezes, sim.kills, sim.stops, sim.restores, sim.outages = 0, 0, 0, 0, 0, 0, 0, 0
	}
	sim.length = 8 * sim.ttl
	sim.loads = 10 + r.IntN(8)
}

func (sim *simulation) drawSkew() time.Duration {
	if !sim.skewed {
		return 0
	}
	return time.Duration(sim.rnd.Int64N(int64(12*time.Hour))-int64(6*time.Hour)) / time.Microsecond * time.Microsecond
}

// fault decides the fate of an item that arrived at the gate.
func (sim *simulation) fault(p *process, class string, call bool) (delay time.Duration, f outcome) {
	rng := p.stream(class)
	delay = time.Duration(rng.IntN(1000)) * time.Microsecond
	hit, slow := rng.Float64(), rng.Float64()
	switch {
	case sim.calm || !call:
		return delay, proceeds
	case p.eng != nil && sim.outage.After(time.Now()):
		return delay, refused
	}
	if slow < sim.slow {
		delay += time.Duration(rng.Int64N(int64(sim.ttl / 6)))
	}
	// The call is so slow that its caller gives up. The engine joins without a deadline.
	if slow < sim.tardy && class != "join" && !p.stopping {
		delay += time.Duration(rng.Int64N(int64(2 * sim.ttl)))
	}
	switch {
	case hit < sim.fail:
		return delay, refused
	case hit < sim.fail+sim.lose:
		return delay, replyLost
	}
	return delay, proceeds
}

// afterEnd decides the fate of a call whose caller gave up.
func (sim *simulation) afterEnd(rng *rand.Rand) outcome {
	if sim.calm {
		return refused
	}
	return []outcome{refused, replyLost, late}[rng.IntN(3)]
}

func (sim *simulation) failf(format string, args ...any) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.failLocked(format, args...)
}

func (sim *simulation) failLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	sim.broken.Store(true)
	sim.wrong = append(sim.wrong, text)
	sim.lines = append(sim.lines, "VIOLATION "+text)
}

// count counts events.
func (sim *simulation) count(what string, n int) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.tally[what] += n
}

// label names a task for the log, in the order of first use.
func (sim *simulation) label(id task.ID) string {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if sim.names[id] == "" {
		sim.names[id] = fmt.Sprintf("T%d", len(sim.names)+1)
	}
	return sim.names[id]
}

// idSource returns the ID source of one process or of the operators.
func (sim *simulation) idSource(name string) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprintf("%d %s", sim.seed, name))
	return rand.NewChaCha8(key)
}

// simulate runs one seed. It returns the log, the violations and the counts of events.
func simulate(t *testing.T, seed uint64) (lines, wrong []string, tally map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		sim := &simulation{
			mem: memstore.New(), signals: map[signalKey]string{}, exhausted: map[task.ID]bool{}, deadly: map[task.ID]bool{}, deleted: map[task.ID]bool{}, crashes: map[task.ID]int{}, tally: map[string]int{},
			checker: checker{
				leases: map[leaseKey]*lease{}, epochs: map[task.ID]int64{}, values: map[string]string{}, acked: map[task.ID]bool{},
				declared: map[store.WorkerID]bool{}, before: map[task.ID]task.Task{}, names: map[task.ID]string{},
				handlers: map[leaseKey]context.Context{}, lookups: map[task.LeaseID]bool{},
				never: map[task.ID]bool{}, leaves: map[task.ID]string{},
			},
		}
		sim.init(seed)
		sim.rnd = sim.stream("people")
		sim.ids = task.NewIDs(sim.idSource("people"))
		sim.drawFaults()
		sim.logf("world %+v", sim.faultPlan)
		sim.run()
		if sim.broken.Load() {
			sim.end()
		}
		sim.running.Wait()
		sim.count("passages", sim.passages)
		lines, wrong, tally = sim.lines, sim.wrong, sim.tally
	})
	return lines, wrong, tally
}

// run runs one seed: a phase with faults, then a phase without, in which every task must end, then the stop of the
// engines.
func (sim *simulation) run() {
	sim.checkStore()
	for i := range places {
		sim.start(i)
	}
	sim.planRun()
	evening := time.Now().Add(sim.length)
	if !sim.until("the evening", evening, func() bool { return !time.Now().Before(evening) }) {
		return
	}
	sim.endFaults()
	deadline := time.Now().Add(maxTime)
	if !sim.until("all tasks ended", deadline, func() bool { return sim.passages%20 == 0 && sim.allEnded() }) {
		return
	}
	notified := func() bool {
		return !slices.ContainsFunc(sim.waiters, func(p *process) bool { return !p.over.Load() })
	}
	if !sim.until("all waiters notified", deadline, notified) {
		return
	}
	for _, p := range sim.procs {
		sim.halt(p)
	}
	sim.until("the engines stopped", deadline, func() bool {
		for _, p := range sim.procs {
			if !p.over.Load() {
				return false
			}
		}
		return true
	})
	sim.checkStore()
}

// until runs the simulation until done holds. It returns false on a timeout or a violation.
func (sim *simulation) until(what string, deadline time.Time, done func() bool) bool {
	for !done() {
		sim.turn(deadline)
		sim.checkContexts()
		if sim.passages%checkEvery == 0 {
			sim.checkStore()
		}
		if sim.broken.Load() {
			return false
		}
		if (sim.passages > maxPassages || time.Now().After(deadline)) && !done() {
			sim.failf("not yet %s after %d passages and %v:\n\t%s", what, sim.passages, time.Since(sim.begun), strings.Join(sim.unfinished(), "\n\t"))
			return false
		}
	}
	return true
}

func (sim *simulation) allEnded() bool {
	for _, p := range sim.procs {
		if p.dead.Load() || p.over.Load() {
			return false
		}
	}
	return len(sim.unfinished()) == 0 && sim.openTxs.Load() == 0
}

// end stops a run with a violation.
func (sim *simulation) end() {
	for _, p := range slices.Concat(sim.procs[:], sim.waiters) {
		sim.kill(p, false)
	}
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for _, it := range sim.waiting {
		if it.open != nil && !it.gone {
			it.open <- gone
		}
	}
}

// endFaults ends the faults and resumes everything that operators had stopped.
func (sim *simulation) endFaults() {
	sim.calm = true
	sim.logf("world is calm")
	for _, p := range sim.procs {
		if now := time.Now(); p.frozen.After(now) {
			p.frozen = now
		}
	}
	for _, q := range queues {
		sim.operate(store.ResumeQueue{Queue: q})
	}
	sim.operate(store.ResumeType{Type: taskType.Name()})
	sim.unblockAll()
}

// unblockAll periodically unblocks blocked tasks, until the end.
func (sim *simulation) unblockAll() {
	for _, t := range sim.list(task.Blocked) {
		if t.Waiting == task.WaitUndo {
			sim.failf("undo: %s is blocked: %s", sim.label(t.ID), t.Error.Message)
		}
		sim.operate(store.UnblockTask{Task: t.ID, Input: []byte(`"go on"`)})
	}
	sim.help()
	sim.put(&item{name: "help", after: 5 * time.Second, do: sim.unblockAll})
}
