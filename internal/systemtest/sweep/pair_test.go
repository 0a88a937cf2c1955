package sweep_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/goweaver/weaver/internal/faults/faultstore"
)

// pair is two faults in one run. The first fault hits a call that the run without a fault makes. The second fault
// hits the nth call after it, or the next one where such a fault is possible. That may be a call of the same process
// or, after a death or restart, of its successor.
type pair struct {
	call     faultstore.Call
	first    faultstore.Fault
	distance int // 1 is the next call
	second   faultstore.Fault

	mu    sync.Mutex
	begun bool // the first fault has occurred
	since int  // calls since then
	done  bool // the second fault has occurred
}

func (p *pair) String() string {
	return fmt.Sprintf("%s at %s, then %s %d calls later", p.first, p.call, p.second, p.distance)
}

// injection returns the faults of the pair's run.
func (p *pair) injection() injection {
	return injection{point: p.String(), first: func(c faultstore.Call) faultstore.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.begun && c.Method == p.call.Method && c.Nth == p.call.Nth {
			p.begun = true
			return p.first
		}
		return p.next(c)
	}, next: func(c faultstore.Call) faultstore.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.next(c)
	}}
}

// next returns the fault of a call other than the first one's.
func (p *pair) next(c faultstore.Call) faultstore.Fault {
	if !p.begun || p.done {
		return faultstore.None
	}
	p.since++
	if p.since < p.distance || !slices.Contains(c.Faults(), p.second) {
		return faultstore.None
	}
	p.done = true
	return p.second
}

const (
	near = 5  // the full size covers every pair of calls up to this distance
	far  = 60 // and, up to this distance, one pair per first fault
)

var faults = []faultstore.Fault{faultstore.ErrorBefore, faultstore.ReplyLost, faultstore.CrashBefore, faultstore.CrashAfter}

// pairsOf returns the pairs of a case, always in the same order.
func pairsOf(tc *testCase, calls []faultstore.Call) (pairs []*pair) {
	rnd := rand.New(rand.NewPCG(1, uint64(len(tc.name))))
	for _, c := range calls {
		for _, first := range c.Faults() {
			for d := 1; d <= near; d++ {
				for _, second := range faults {
					pairs = append(pairs, &pair{call: c, first: first, distance: d, second: second})
				}
			}
			pairs = append(pairs, &pair{call: c, first: first, distance: near + 1 + rnd.IntN(far-near), second: faults[rnd.IntN(len(faults))]})
		}
	}
	return pairs
}

// TestSweepTwoFaults runs the cases of [TestSweep] with two faults in one run, the second one possibly in a process
// that takes over. A plain run covers a fixed sample of the pairs. WEAVER_SWEEP=full covers all pairs of calls at
// most five calls apart, and a sample of the others.
//
// One case: -run 'SweepTwoFaults/on/memstore/sleeps'.
func TestSweepTwoFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	var mu sync.Mutex
	pairs, both, all, cases := 0, 0, 0, 0
	t.Run("on", func(t *testing.T) {
		for _, kind := range storeKinds {
			for i := range testCases {
				tc, every := &testCases[i], pairEvery[kind.name]
				if os.Getenv("WEAVER_SWEEP") == "full" {
					every = 1
				}
				if !tc.runsOn(kind) || every == 0 {
					continue
				}
				cases++
				t.Run(kind.name+"/"+tc.name, func(t *testing.T) {
					t.Parallel()
					n, reached, of := sweepPairs(t, kind, tc, i, every)
					mu.Lock()
					defer mu.Unlock()
					pairs, both, all = pairs+n, both+reached, all+of
				})
			}
		}
	})
	t.Logf("%d cases, %d pairs of %d, in %d of them both calls came", cases, pairs, all, both)
	if pairs < 20 { // too few to judge by
		return
	}
	if both*4 < pairs*3 {
		t.Errorf("in %d of %d pairs both calls came, want three quarters: the cases are not repeatable enough", both, pairs)
	}
}

// sweepPairs runs one case with every nth of its pairs. It returns the number of runs, the number of runs in which
// both faults occurred, and the number of pairs.
func sweepPairs(t *testing.T, kind storeKind, tc *testCase, offset, every int) (n, reached, all int) {
	ref := reference(t, kind, tc)
	pairs := pairsOf(tc, ref.calls)
	for i, p := range pairs {
		if (i+1+offset*37)%every != 0 {
			continue
		}
		n++
		if got := runCase(t, kind, tc, p.injection(), ref, nil); len(got.strikes) == 2 {
			reached++
		}
	}
	return n, reached, len(pairs)
}
