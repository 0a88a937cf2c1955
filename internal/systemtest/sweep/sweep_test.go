package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/s3"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/internal/s3test"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// testCase is a piece of real work: the handlers of the engine, and the requests of a caller with their required
// results. It must end in the same way with a fault as without.
type testCase struct {
	name      string
	cfg       weaver.Config // of the engines; the fixture fills in handlers and defaults
	handlers  func(fx *fixture) []weaver.Handler
	run       func(fx *fixture)
	untilIdle bool // engines use RunUntilIdle repeatedly
	onlySQL   bool // needs transactions of users
	onFile    bool // also runs on a file
	bucket    bool // engines and callers have a bucket in memory
	s3        bool // it is on an S3 server in memory
	hints     bool // engines have a delivery transport in memory

	losesLeases bool // leases are lost even without a fault
	// tolerates explains why a failed call may lead to other events and to more starts of step functions. "" means
	// that it may not.
	tolerates string
}

func (tc *testCase) runsOn(kind storeKind) bool {
	if kind.file {
		return tc.onFile || kind.server && (full || tc.onlySQL)
	}
	return kind.sql || !tc.onlySQL
}

// knownFailures lists the unfixed findings of the sweep: points at which the run ends differently or has other
// events. A full sweep fails when one no longer occurs.
var knownFailures []*knownFailure

type knownFailure struct {
	testCase, method string
	why              string
	shown            atomic.Int64
}

// known returns the known failure of a point. Crashes there must do no harm.
func known(tc *testCase, c faultstore.Call, f faultstore.Fault) *knownFailure {
	for _, k := range knownFailures {
		if k.testCase == tc.name && k.method == c.Method && (f == faultstore.ErrorBefore || f == faultstore.ReplyLost) {
			return k
		}
	}
	return nil
}

// full selects all cases and points.
var full = os.Getenv("WEAVER_SWEEP") == "full"

// totals is the coverage of a sweep.
type totals struct {
	mu      sync.Mutex
	cases   int
	points  int             // run
	missed  int             // run, without the call
	all     int             // known points
	methods map[string]bool // called without a fault: kind of store and method
}

// TestSweep runs cases of real engine work on each store and injects a fault at every store call in turn. The fault
// is an error of the store, a reply lost after the work, or the death of the process before or after the call. A
// caller repeats its request, another process replaces a dead one, and the case must end as it does without a fault:
//
//   - Every task and job ends in the same state, with the same output, counted
//     attempts and completed steps.
//   - No step function starts after the commit of its completed row. Without a
//     crash, no function starts more often than without a fault, no lease is
//     lost, and listeners get the same events of every end.
//   - After every write, and just after a crash, store.Check finds no violation.
//     No terminal state was left, no epoch fell, no attempt is recorded twice or
//     changed, no completed step changed, and acknowledged tasks exist.
//
// A plain run covers a fixed sample of the points. All of them:
//
//	WEAVER_SWEEP=full go test ./internal/systemtest/sweep -run Sweep -v -timeout 30m
//
// One case: -run 'Sweep/on/memstore/sleeps'.
//
// TestSweepTwoFaults does the same with two faults in one run.
func TestSweep(t *testing.T) {
	totals := &totals{methods: map[string]bool{}}
	want := 0
	t.Run("on", func(t *testing.T) { // ends after its parallel subtests
		for _, kind := range storeKinds {
			for i := range testCases {
				tc := &testCases[i]
				if !tc.runsOn(kind) || kind.server && testing.Short() {
					continue
				}
				want++
				t.Run(kind.name+"/"+tc.name, func(t *testing.T) {
					t.Parallel()
					every := sampleEvery[kind.name]
					switch {
					case full:
						every = 1
					case testing.Short():
						every *= 30
					}
					sweep(t, kind, tc, totals, i, every)
				})
			}
		}
	})
	t.Logf("%d cases of %d, %d points of %d, %d of them not reached", totals.cases, want, totals.points, totals.all, totals.missed)
	if totals.cases < want {
		return // only some were selected
	}
	for _, k := range knownFailures {
		if full && k.shown.Load() == 0 {
			t.Errorf("%s at %s: it no longer shows that %s: take it off the list", k.testCase, k.method, k.why)
		}
		t.Logf("%s at %s: shown %d times: %s", k.testCase, k.method, k.shown.Load(), k.why)
	}
	// A claim may come before every Publish of one store: only a full sweep has runs enough for each store.
	for _, m := range storeMethods() {
		called := false
		for _, kind := range storeKinds {
			here := totals.methods[kind.name+" "+m]
			called = called || here
			if full && !kind.file && !here {
				t.Errorf("no case on %s calls %s", kind.name, m)
			}
		}
		if !called {
			t.Errorf("no case calls %s", m)
		}
	}
	// A small sample says little about the share of missed calls: require only that most are reached.
	allowed := totals.points / 2
	if full {
		allowed = totals.points / 20
	}
	if totals.missed > allowed {
		t.Errorf("%d of %d points were not reached: the cases are not repeatable enough", totals.missed, totals.points)
	}
}

// notSwept are the methods of a store that no process of a case has to call.
var notSwept = []string{
	"Capabilities", "Transient", "Session", "Warnings", "Wake", "Migrate", "MigrationStatus", "Blobs", "Artifact", "RewriteValues",
	"Types", "Scan", "Scrub", "Orphans", "Events", "Feed", "WriteStats", "ReadStats",
}

// storeMethods are those of a store that the cases have to call, and the moments inside
// its StepTx.
func storeMethods() []string {
	names := []string{faultstore.StepTxBegun, faultstore.StepTxRan}
	for i := range reflect.TypeFor[store.Store]().NumMethod() {
		if name := reflect.TypeFor[store.Store]().Method(i).Name; !slices.Contains(notSwept, name) {
			names = append(names, name)
		}
	}
	return names
}

// sweep runs one case without a fault, and then with each fault at each of its calls.
func sweep(t *testing.T, kind storeKind, tc *testCase, totals *totals, offset, every int) {
	ref := reference(t, kind, tc)
	points, missed, all := 0, 0, 0
	for _, c := range ref.calls {
		for _, f := range c.Faults() {
			all++
			if (all+offset)%every != 0 {
				continue
			}
			points++
			inj := injection{point: fmt.Sprintf("%s at %s", f, c), first: faultstore.At(c.Method, c.Nth, f)}
			var got *result
			for range 3 { // goroutines race: the call may not occur each time
				if got = runCase(t, kind, tc, inj, ref, known(tc, c, f)); len(got.strikes) > 0 {
					break
				}
			}
			if len(got.strikes) == 0 {
				missed++
				t.Log("not reached: " + inj.point)
			}
		}
	}
	totals.mu.Lock()
	defer totals.mu.Unlock()
	totals.cases++
	totals.points += points
	totals.missed += missed
	totals.all += all
	for _, c := range ref.calls {
		totals.methods[kind.name+" "+c.Method] = true
	}
	t.Logf("%d calls, %d points of %d, %d not reached", len(ref.calls), points, all, missed)
}

var references sync.Map // of *result, by kind of store and case

// reference returns the result of the case without a fault. It runs once.
func reference(t *testing.T, kind storeKind, tc *testCase) *result {
	t.Helper()
	key := kind.name + "/" + tc.name
	if ref, ok := references.Load(key); ok {
		return ref.(*result)
	}
	ref := runCase(t, kind, tc, injection{point: "without a fault"}, nil, nil)
	references.Store(key, ref)
	return ref
}

// result is the outcome of a run.
type result struct {
	calls   []faultstore.Call // of the first process
	strikes []faultstore.Strike
	digest  []string
	counts  map[string]int
}

// injection is the faults of a run.
type injection struct {
	point string          // for messages
	first faultstore.Plan // of the first process
	next  faultstore.Plan // of every process that replaces another one
}

// runCase runs a case in a bubble of its own. Without a reference, the run becomes the reference for the others.
func runCase(t *testing.T, kind storeKind, tc *testCase, inj injection, ref *result, tolerated *knownFailure) *result {
	t.Helper()
	res := &result{}
	defer func() {
		if p := recover(); p != nil { // probably a deadlock
			panic(fmt.Sprintf("case %q on %s, %s: %v", tc.name, kind.name, inj.point, p))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), kind.limit, errHangs)
		defer cancel()
		fx := &fixture{T: t, ctx: ctx, kind: kind, tc: tc, point: inj.point, next: inj.next, known: tolerated, changed: make(chan struct{}), marks: map[string]chan struct{}{}, counts: map[string]int{}, effects: map[string]string{}}
		fx.checker.lock, fx.checker.acked = newGate(), map[task.ID]bool{}
		defer func() {
			if t.Failed() {
				for i, p := range fx.all {
					t.Logf("process %d made %d calls and was struck by %v", i+1, len(p.fault.Calls()), p.fault.Struck())
				}
			}
		}()
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(abort); !ok {
					panic(p)
				}
			}
		}()
		fx.backend = kind.build(fx)
		defer fx.backend.close()
		if tc.bucket {
			fx.bucket = blob.NewMemory()
		}
		if tc.s3 {
			server := s3test.NewTransport(t)
			var err error
			fx.bucket, err = s3.New("bucket", s3.Options{Endpoint: "s3.test", Region: "us-east-1", PathStyle: true, Transport: server, Credentials: server.Credentials()})
			fx.must(err)
		}
		if tc.hints {
			fx.hints = delivery.NewMemory()
			defer func() { fx.must(fx.hints.Close()) }()
		}
		client, err := weaver.NewClient(fx.callerStore(), weaver.ClientConfig{Logger: discardLog, Bucket: fx.bucket})
		fx.must(err)
		fx.client = client
		first := fx.begin(inj.first)
		func() {
			defer fx.end()
			tc.run(fx)
		}()
		if errors.Is(context.Cause(ctx), errHangs) {
			fx.fatal("%v", errHangs)
		}
		snap := fx.check("in the end")
		for _, a := range snap.Attempts {
			if a.Outcome == task.OutcomeLeaseLost {
				fx.counts["a lost lease"]++
			}
		}
		res.calls, res.digest, res.counts = first.fault.Calls(), fx.digest(snap), fx.counts
		for _, p := range fx.all {
			res.strikes = append(res.strikes, p.fault.Struck()...)
		}
		if ref == nil {
			if n := fx.counts["a lost lease"]; n > 0 && !tc.losesLeases {
				fx.errorf("%d leases were lost", n)
			}
			return
		}
		fx.compareWith(ref, res)
	})
	return res
}

var errHangs = errors.New("the case hangs: its limit of time has passed")

// compareWith compares the end of a run with that of the reference run.
func (fx *fixture) compareWith(ref, res *result) {
	differs := func(format string, args ...any) {
		if fx.known != nil {
			fx.known.shown.Add(1)
			return
		}
		fx.errorf(format, args...)
	}
	if !slices.Equal(res.digest, ref.digest) {
		differs("it ended differently. Now:\n\t%s\nwithout a fault:\n\t%s",
			strings.Join(only(res.digest, ref.digest), "\n\t"), strings.Join(only(ref.digest, res.digest), "\n\t"))
	}
	if len(res.strikes) == 0 || fx.tc.tolerates != "" {
		return
	}
	for _, s := range res.strikes {
		if s.Fault == faultstore.CrashBefore || s.Fault == faultstore.CrashAfter || strings.HasPrefix(s.Method, "StepTx") {
			return // work since the last commit is repeated
		}
	}
	if !maps.Equal(res.counts, ref.counts) {
		differs("what happened to the tasks:\n\t%v\nwithout a fault:\n\t%v", res.counts, ref.counts)
	}
}

// only returns the lines of a that are not in b.
func only(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}
