package model_test

import (
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

// A small heap would be collected all the time, which costs up to half of what the tests do.
func init() { debug.SetGCPercent(400) }

// modelSteps is the average number of actions in a sequence.
const modelSteps = 60

// TestModel applies the same random operations to memstore, which is the
// model, and to SQLite, and compares every answer and, after every
// action, all rows of both. Each sequence lives in a bubble of its own, so
// both stores read the same clock and instants are compared exactly; ids are
// drawn by the test, so they are equal, too.
//
// A failure prints its seed and the shortest sequence found. To repeat it:
//
//	go test ./internal/systemtest/model -run TestModel -rapid.seed=N
//
// To soak, from a random seed:
//
//	go test ./internal/systemtest/model -run TestModel -rapid.seed=0 -rapid.checks=20000 -rapid.steps=100 -timeout 2h
//
// One sequence in three uses a file that two processes have open, as far as
// the store can distinguish them: two handles, of which the second dies now and
// then with the workers that joined through it.
//
// The log has how often the sequences met each step of undo (undo_test.go).
//
// What is not covered: several callers at once (that is for storetest and the
// histories beside this test), and Wait of a claim.
func TestModel(t *testing.T) {
	// The flags belong to the process: one test at a time may turn them.
	checks := modelChecks
	if testing.Short() {
		checks /= 3 // and rapid divides it, and the steps, by five
	}
	unlessGiven(t, "rapid.checks", strconv.Itoa(checks))
	unlessGiven(t, "rapid.steps", strconv.Itoa(modelSteps))
	unlessGiven(t, "rapid.seed", "1")          // the same sequences each time: chance is for the soak
	unlessGiven(t, "rapid.nofailfile", "true") // the seed is enough, and leaves no file in the tree
	met := tally{}
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, func(t *rapid.T) { runSequence(t, "", met) }) })
	if checks == modelChecks && !t.Failed() {
		met.check(t)
	}
}

// unlessGiven sets a flag for this test, unless the command line or the
// environment did.
func unlessGiven(t *testing.T, name, value string) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	f := flag.Lookup(name)
	own := map[string]string{"rapid.checks": "100", "rapid.steps": "30", "rapid.seed": "0", "rapid.nofailfile": "false"}
	if given || f.DefValue != own[name] { // rapid reads its environment into the defaults
		return
	}
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) }) // a value it had
}

// runSequence is one sequence, on SQLite or on the PostgreSQL of a URL.
func runSequence(t *rapid.T, url string, met tally) {
	p := &pair{T: t, met: met, mem: memstore.New(), url: url, generations: map[string]string{}, workers: []store.WorkerID{"reaper", "ann", "bob"}}
	if url != "" {
		p.first, p.second = p.open(), p.open()
	} else if p.rarely(3, "on a file") {
		dir, err := os.MkdirTemp("", "weaver-model")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) // rapid has no folder of a test
		p.path = filepath.Join(dir, "weaver.db")
		p.first, p.second = p.open(), p.open()
	} else {
		p.first = p.open()
	}
	t.Cleanup(func() {
		p.shut(p.first)
		if p.second != nil {
			p.shut(p.second)
		}
	})
	p.snapshots()
	if p.fed = p.rarely(2, "with a feed"); p.fed {
		p.keepFeed()
	}
	for _, w := range p.workers {
		p.join(w)
	}
	t.Repeat(map[string]func(*rapid.T){
		"":                 p.check,
		"enqueue":          p.enqueueSome,
		"enqueue a job":    p.enqueueJob,
		"enqueue again":    p.enqueueAgain,
		"claim":            p.claimSome,
		"claim more":       p.claimSome,
		"claim hinted":     p.claimHinted,
		"claim again":      p.claimAgain,
		"finish":           p.finishSome,
		"finish more":      p.finishSome,
		"finish one":       p.finishSome,
		"finish again":     p.finishAgain,
		"record":           p.recordSome,
		"record more":      p.recordSome,
		"record again":     p.recordAgain,
		"run undoables":    p.recordUndoables,
		"saga":             p.playSaga,
		"undo":             p.undoSome,
		"undo more":        p.undoSome,
		"sleep":            p.sleepAndSuspend,
		"wait":             p.waitSome,
		"wait more":        p.waitSome,
		"call":             p.callSome,
		"heartbeat":        p.heartbeat,
		"reap":             p.reap,
		"reap in time":     p.beatAndReap,
		"time":             p.pass,
		"more time":        p.pass,
		"operate on tasks": p.operateTasks,
		"operate more":     p.operateTasks,
		"operate":          p.operateRest,
		"operate on undos": p.operateUndos,
		"operate on more":  p.operateUndos,
		"leave or join":    p.leaveOrJoin,
		"step transaction": p.stepTx,
		"kill":             p.killProcess,
		"read":             p.readSome,
	})
}

// namespace of the sequences; there is one store for each.
const namespace = "model"

// modelTTL is that of most leases.
const modelTTL = 3 * time.Second

// database is one under test.
type database interface {
	store.Store
	Close() error
}

// open opens the database under test: PostgreSQL, the file, or a new one in memory.
func (p *pair) open() database {
	p.Helper()
	if p.url != "" {
		return p.openPostgres()
	}
	db, err := sqlite.OpenMemory(p.Context())
	if p.path != "" {
		db, err = sqlite.Open(p.Context(), p.path, sqlite.Synchronous(sqlite.Normal))
	}
	if err == nil {
		err = db.Migrate(p.Context())
	}
	if err != nil {
		p.Fatal(err)
	}
	return db
}

func (p *pair) shut(db database) {
	p.Helper()
	if err := db.Close(); err != nil {
		p.Errorf("Close: %v", err)
	}
}

// pair is two stores that get the same calls, and what the test keeps of them.
type pair struct {
	*rapid.T
	mem    *memstore.Store
	first  database
	second database // another process's, of the same file or server; nil in memory
	path   string   // of the file; "" in memory
	url    string   // of the database on PostgreSQL; "" on SQLite
	asked  int      // questions so far: every third one goes to the second handle

	// workers are joined from the start. The first one is the reaper, which
	// claims, too; the last one is of the second process.
	workers []store.WorkerID
	dead    int  // processes
	fed     bool // both keep a feed

	// generations maps those of the model to those of the other store: each
	// store draws its own. All leases kept here are the model's.
	generations map[string]string

	ids     []task.ID // that tasks were drafted with, deleted ones among them
	jobs    []task.ID
	subs    []store.Submission
	claims  []store.ClaimRequest
	held    []store.Claimed // leases that may still be valid
	lost    []store.Claimed // leases that were used up or lost: stale
	fins    []store.Finish
	records []store.Record
	drawn   uint64 // ids so far
	met     tally
}

// stores are both stores, the model first.
func (p *pair) stores() [2]store.Store {
	p.asked++
	if p.second != nil && p.asked%3 == 0 {
		return [2]store.Store{p.mem, p.second}
	}
	return [2]store.Store{p.mem, p.first}
}

// home are both stores, as the process of a worker has them.
func (p *pair) home(id store.WorkerID) [2]store.Store {
	if p.second != nil && id == p.workers[len(p.workers)-1] {
		return [2]store.Store{p.mem, p.second}
	}
	return [2]store.Store{p.mem, p.first}
}

// lease returns a lease of the model as store i knows it.
func (p *pair) lease(i int, l task.Lease) task.Lease {
	if i == 1 {
		l.Generation = p.generations[l.Generation]
	}
	return l
}

// snapshots takes a snapshot of both stores and keeps their generations.
func (p *pair) snapshots() [2]*store.Snapshot {
	p.Helper()
	var snaps [2]*store.Snapshot
	for i, s := range p.stores() {
		snap, err := s.Snapshot(p.Context(), namespace)
		if err != nil {
			p.Fatalf("Snapshot of store %d: %v", i, err)
		}
		snaps[i] = snap
	}
	p.generations[snaps[0].Generation] = snaps[1].Generation
	return snaps
}

// check compares everything that both stores hold, and checks the invariants.
func (p *pair) check(*rapid.T) {
	synctest.Wait()
	snaps := p.snapshots()
	for i, s := range snaps {
		for _, v := range store.Check(s) {
			// No worker has to reap here, and the clock makes great leaps.
			if v.Invariant != "I8" {
				p.Errorf("%s: store.Check: %v", modelNames[i], v)
			}
		}
	}
	p.same("Snapshot", rowsComparable(snaps[0]), rowsComparable(snaps[1]))
	var ids []task.ID
	for _, t := range snaps[0].Tasks {
		ids = append(ids, t.ID)
	}
	ask(p, "Tasks", func(_ int, s store.Store) ([]task.Task, error) {
		return s.Tasks(p.Context(), namespace, ids...)
	})
	ask(p, "Overview", func(_ int, s store.Store) (store.Overview, error) {
		o, err := s.Overview(p.Context(), namespace, store.OverviewRequest{Parts: store.OverviewCounts | store.OverviewQueues})
		o.At = time.Time{}
		return o, err
	})
	if p.fed {
		p.compareFeeds()
	}
}
