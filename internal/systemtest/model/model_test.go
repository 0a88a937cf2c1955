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

// With a small heap, garbage collection takes up to half of the test time.
func init() { debug.SetGCPercent(400) }

// modelSteps is the average number of actions in a sequence.
const modelSteps = 60

// TestModel applies the same random operations to memstore, which is the model, and to SQLite. It compares every
// answer and, after every action, all rows of both. Each sequence runs in its own bubble: both stores read the same
// clock, so instants are compared exactly. The test draws the IDs, so they are equal too.
//
// A failure prints its seed and the shortest sequence found. To repeat it:
//
//	go test ./internal/systemtest/model -run TestModel -rapid.seed=N
//
// To soak, from a random seed:
//
//	go test ./internal/systemtest/model -run TestModel -rapid.seed=0 -rapid.checks=20000 -rapid.steps=100 -timeout 2h
//
// One sequence in three uses a file opened by two processes, as far as the store can distinguish them. They are two
// handles, of which the second dies at times, with the workers that joined through it.
//
// The log shows the number of times that the sequences reached each step of undo (undo_test.go).
//
// Not covered: concurrent callers (see storetest and the linearizability tests) and Wait of a claim.
func TestModel(t *testing.T) {
	// Flags belong to the process, so only one test at a time may set them.
	checks := modelChecks
	if testing.Short() {
		checks /= 3 // rapid also divides it, and the steps, by five
	}
	unlessGiven(t, "rapid.checks", strconv.Itoa(checks))
	unlessGiven(t, "rapid.steps", strconv.Itoa(modelSteps))
	unlessGiven(t, "rapid.seed", "1")          // the same sequences each time: random ones are for the soak
	unlessGiven(t, "rapid.nofailfile", "true") // the seed is enough, and leaves no file in the tree
	met := tally{}
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, func(t *rapid.T) { runSequence(t, "", met) }) })
	if checks == modelChecks && !t.Failed() {
		met.check(t)
	}
}

// unlessGiven sets a flag for this test unless the command line or the environment set it.
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
	t.Cleanup(func() { _ = f.Value.Set(before) }) // an earlier value of the flag is valid
}

// runSequence runs one sequence, on SQLite or on the PostgreSQL at url.
func runSequence(t *rapid.T, url string, met tally) {
	p := &pair{T: t, met: met, mem: memstore.New(), url: url, generations: map[string]string{}, workers: []store.WorkerID{"reaper", "ann", "bob"}}
	if url != "" {
		p.first, p.second = p.open(), p.open()
	} else if p.rarely(3, "on a file") {
		dir, err := os.MkdirTemp("", "weaver-model")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) // rapid.T has no TempDir
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

// namespace is the namespace of the sequences; each sequence has its own store.
const namespace = "model"

// modelTTL is the duration of most leases.
const modelTTL = 3 * time.Second

// database is a database under test.
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

// pair is two stores that receive the same calls, and the state of the test.
type pair struct {
	*rapid.T
	mem    *memstore.Store
	first  database
	second database // another process's handle on the same file or server; nil in memory
	path   string   // of the file; "" in memory
	url    string   // of the database on PostgreSQL; "" on SQLite
	asked  int      // number of calls; every third one goes to the second handle

	// workers are joined from the start. The first one is the reaper and also claims; the last one belongs to the
	// second process.
	workers []store.WorkerID
	dead    int  // dead processes
	fed     bool // both keep a feed

	// generations maps the model's generations to those of the other store: each store draws its own. All leases kept
	// here are the model's.
	generations map[string]string

	ids     []task.ID // of drafted tasks, including deleted ones
	jobs    []task.ID
	subs    []store.Submission
	claims  []store.ClaimRequest
	held    []store.Claimed // leases that may still be valid
	lost    []store.Claimed // stale leases: used up or lost
	fins    []store.Finish
	records []store.Record
	drawn   uint64 // number of IDs drawn
	met     tally
}

// stores returns both stores, the model first.
func (p *pair) stores() [2]store.Store {
	p.asked++
	if p.second != nil && p.asked%3 == 0 {
		return [2]store.Store{p.mem, p.second}
	}
	return [2]store.Store{p.mem, p.first}
}

// home returns both stores as seen by the process of a worker.
func (p *pair) home(id store.WorkerID) [2]store.Store {
	if p.second != nil && id == p.workers[len(p.workers)-1] {
		return [2]store.Store{p.mem, p.second}
	}
	return [2]store.Store{p.mem, p.first}
}

// lease converts a lease of the model for store i.
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

// check compares the rows of both stores and checks the invariants.
func (p *pair) check(*rapid.T) {
	synctest.Wait()
	snaps := p.snapshots()
	for i, s := range snaps {
		for _, v := range store.Check(s) {
			// I8 does not hold: no worker has to reap here, and the clock jumps far ahead.
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
