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
	"github.com/goweaver/weaver/internal/faultstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sweepScene is a piece of real work: what the engine's handlers do, and what
// a caller asks for and must get. It must come to the same end whatever
// happens once on the way.
type sweepScene struct {
	name      string
	cfg       weaver.Config // of the engines; the world fills in handlers and defaults
	handlers  func(w *sweepWorld) []weaver.Handler
	play      func(w *sweepWorld)
	untilIdle bool // engines use RunUntilIdle, again and again
	onlySQL   bool // users' own transactions
	onFile    bool // is played on a file, too

	loses bool // undisturbed, too, leases are lost
	// loose scenes may tell other events and run step functions more often
	// when a call fails, and say why.
	loose string
}

func (sc *sweepScene) playsOn(kind sweepKind) bool {
	if kind.file {
		return sc.onFile
	}
	return kind.sql || !sc.onlySQL
}

// sweepKnown is what the sweep found and nobody has mended yet: the play ends
// differently there, or tells other events. A full sweep says when one is gone.
var sweepKnown []*knownTrouble

type knownTrouble struct {
	scene, method string
	why           string
	shown         atomic.Int64
}

// known returns what is known of a point. Crashes there must do no harm.
func known(sc *sweepScene, c faultstore.Call, f faultstore.Fault) *knownTrouble {
	for _, k := range sweepKnown {
		if k.scene == sc.name && k.method == c.Method && (f == faultstore.ErrorBefore || f == faultstore.ReplyLost) {
			return k
		}
	}
	return nil
}

// sweepTotals are what a sweep covered.
type sweepTotals struct {
	mu      sync.Mutex
	scenes  int
	points  int             // played
	missed  int             // played, and the call did not come
	all     int             // known
	methods map[string]bool // called undisturbed: kind of store and method
}

// TestSweep plays scenes of real engine work, on each store, and lets
// something go wrong at every call of the store in turn: the store is in
// trouble; it does the work and the answer is lost; the process dies before
// the call, or after it. Whoever lives asks again, another process takes a
// dead one's place, and the scene must end as it does without any fault:
//
//   - every task and job ends in the same state, with the same output, attempts
//     that counted and completed steps
//   - no step function starts after its completed row was committed; without a
//     crash none starts more often than undisturbed, no lease is lost, and
//     listeners hear the same of every end
//   - after every write, and just after a crash, store.Check finds nothing, no
//     terminal state was left, no epoch fell, no attempt is recorded twice or
//     changed, no completed step changed, and what was acknowledged exists
//
// A plain run plays a part of the points, always the same. All of them:
//
//	WEAVER_SWEEP=full go test ./internal/systemtest/sweep -run Sweep -v -timeout 30m
//
// One scene: -run 'Sweep/on/memstore/sleeps'.
//
// What is not played: two faults in one play, and faults of the process that
// takes over.
func TestSweep(t *testing.T) {
	full := os.Getenv("WEAVER_SWEEP") == "full"
	totals := &sweepTotals{methods: map[string]bool{}}
	want := 0
	t.Run("on", func(t *testing.T) { // ends when its parallel parts have
		for _, kind := range sweepKinds {
			for i := range sweepScenes {
				sc := &sweepScenes[i]
				if !sc.playsOn(kind) {
					continue
				}
				want++
				t.Run(kind.name+"/"+sc.name, func(t *testing.T) {
					t.Parallel()
					every := sweepEvery[kind.name]
					switch {
					case full:
						every = 1
					case testing.Short():
						every *= 10
					}
					sweep(t, kind, sc, totals, i, every)
				})
			}
		}
	})
	t.Logf("%d scenes of %d, %d points of %d, %d of them not reached", totals.scenes, want, totals.points, totals.all, totals.missed)
	if totals.scenes < want {
		return // only some were asked for
	}
	for _, k := range sweepKnown {
		if full && k.shown.Load() == 0 {
			t.Errorf("%s at %s: it no longer shows that %s: take it off the list", k.scene, k.method, k.why)
		}
		t.Logf("%s at %s: shown %d times: %s", k.scene, k.method, k.shown.Load(), k.why)
	}
	for _, kind := range sweepKinds {
		for _, m := range storeMethods() {
			if !kind.file && !totals.methods[kind.name+" "+m] {
				t.Errorf("no scene on %s calls %s", kind.name, m)
			}
		}
	}
	if totals.missed*20 > totals.points {
		t.Errorf("%d of %d points were not reached: the scenes are not repeatable enough", totals.missed, totals.points)
	}
}

// storeMethods are those of a store and its optional halves.
func storeMethods() []string {
	names := []string{faultstore.StepTxBegun, faultstore.StepTxRan}
	for _, typ := range []reflect.Type{reflect.TypeFor[store.Store](), reflect.TypeFor[store.Notifier](), reflect.TypeFor[store.StepTxer]()} {
		for i := range typ.NumMethod() {
			names = append(names, typ.Method(i).Name)
		}
	}
	return names
}

// sweep plays one scene without a fault, and then with each fault at each
// call that it made. It ends with the first violation.
func sweep(t *testing.T, kind sweepKind, sc *sweepScene, totals *sweepTotals, offset, every int) {
	dry := playSweep(t, kind, sc, "without a fault", nil, nil, nil)
	points, missed, all := 0, 0, 0
	for _, c := range dry.calls {
		for _, f := range c.Faults() {
			all++
			if (all+offset)%every != 0 {
				continue
			}
			points++
			point, plan := fmt.Sprintf("%s at %s", f, c), faultstore.At(c.Method, c.Nth, f)
			var got *sweepResult
			for range 3 { // goroutines race: the call may not come each time
				if got = playSweep(t, kind, sc, point, plan, dry, known(sc, c, f)); got.struck {
					break
				}
			}
			if !got.struck {
				missed++
				t.Log("not reached: " + point)
			}
		}
	}
	totals.mu.Lock()
	defer totals.mu.Unlock()
	totals.scenes++
	totals.points += points
	totals.missed += missed
	totals.all += all
	for _, c := range dry.calls {
		totals.methods[kind.name+" "+c.Method] = true
	}
	t.Logf("%d calls, %d points of %d, %d not reached", len(dry.calls), points, all, missed)
}

// sweepResult is what a play came to.
type sweepResult struct {
	calls  []faultstore.Call // of the first process
	struck bool
	digest []string
	told   map[string]int
}

// playSweep plays a scene in a bubble of its own. Without dry it is the play
// that the others are compared with.
func playSweep(t *testing.T, kind sweepKind, sc *sweepScene, point string, plan faultstore.Plan, dry *sweepResult, tolerated *knownTrouble) *sweepResult {
	t.Helper()
	res := &sweepResult{}
	defer func() {
		if p := recover(); p != nil { // a deadlock, most likely
			panic(fmt.Sprintf("scene %q on %s, %s: %v", sc.name, kind.name, point, p))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), kind.limit, errSweepHangs)
		defer cancel()
		w := &sweepWorld{T: t, ctx: ctx, kind: kind, scene: sc, point: point, known: tolerated, changed: make(chan struct{}), marks: map[string]chan struct{}{}, told: map[string]int{}}
		w.watch.lock, w.watch.acked = newGate(), map[task.ID]bool{}
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(sweepStop); !ok {
					panic(p)
				}
			}
		}()
		w.ground = kind.build(w)
		defer w.ground.tidy()
		client, err := weaver.NewClient(callerStore{courier: courier{w}}, weaver.ClientConfig{Logger: sweepLog})
		w.must(err)
		w.client = client
		first := w.begin(plan)
		func() {
			defer w.end()
			sc.play(w)
		}()
		if errors.Is(context.Cause(ctx), errSweepHangs) {
			w.giveUp("%v", errSweepHangs)
		}
		snap := w.look("in the end")
		for _, a := range snap.Attempts {
			if a.Outcome == task.OutcomeLeaseLost {
				w.told["a lost lease"]++
			}
		}
		res.calls, res.digest, res.told = first.fault.Calls(), w.digest(snap), w.told
		struck := first.fault.Struck()
		res.struck = len(struck) > 0
		if dry == nil {
			if n := w.told["a lost lease"]; n > 0 && !sc.loses {
				w.wrong("%d leases were lost", n)
			}
			return
		}
		w.compareWith(dry, res, struck)
	})
	return res
}

var errSweepHangs = errors.New("the scene hangs: its limit of time has passed")

// compareWith compares the end of a disturbed play with that of the
// undisturbed one.
func (w *sweepWorld) compareWith(dry, res *sweepResult, struck []faultstore.Strike) {
	differs := func(format string, args ...any) {
		if w.known != nil {
			w.known.shown.Add(1)
			return
		}
		w.wrong(format, args...)
	}
	if !slices.Equal(res.digest, dry.digest) {
		differs("it ended differently. Now:\n\t%s\nundisturbed:\n\t%s",
			strings.Join(only(res.digest, dry.digest), "\n\t"), strings.Join(only(dry.digest, res.digest), "\n\t"))
	}
	if len(struck) == 0 || w.scene.loose != "" {
		return
	}
	s := struck[0]
	if s.Fault == faultstore.CrashBefore || s.Fault == faultstore.CrashAfter || strings.HasPrefix(s.Method, "StepTx") {
		return // the work since the last commit is done again
	}
	if !maps.Equal(res.told, dry.told) {
		differs("what happened to the tasks:\n\t%v\nundisturbed:\n\t%v", res.told, dry.told)
	}
}

// only returns the lines of a that b has not.
func only(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}
