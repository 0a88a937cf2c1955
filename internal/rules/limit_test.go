package rules_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// No period has more starts than the rate and its burst, and nothing that waits long enough is held up. Half of the
// seeds have claims that read the clock some time before they count.
func TestArrival(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := task.Rate{Key: "k", Starts: 1 + random.IntN(20), Burst: 1 + random.IntN(10), Per: time.Duration(20+random.IntN(1_000_000)) * time.Microsecond}
		var a rules.Arrival
		var starts []int64
		clock := int64(1_000_000)
		late := func() int64 { return 0 }
		if seed%2 == 1 {
			late = func() int64 { return random.Int64N(100_000) }
		}
		for range 200 {
			clock += random.Int64N(1 + r.Spacing().Microseconds())
			if random.IntN(20) == 0 { // a pause
				clock += random.Int64N(r.Spacing().Microseconds() * int64(r.Burst+1))
			}
			now := clock - late()
			var changed bool
			if a, changed = a.FitClaim(r, now); changed {
				t.Fatalf("seed %d: the state %+v is not one of the rate", seed, a)
			}
			if open := a.OpenAt(r); open > now {
				if open-clock > r.Spacing().Microseconds() {
					t.Fatalf("seed %d: the next start is %d µs away, with a spacing of %s", seed, open-clock, r.Spacing())
				}
				continue
			}
			a = a.Start(r, now)
			starts = append(starts, now)
		}
		slices.Sort(starts)
		for i := range starts {
			n := 0
			for _, at := range starts[i:] {
				if at <= starts[i]+r.Per.Microseconds() {
					n++
				}
			}
			if n > r.Starts+r.Burst {
				t.Fatalf("seed %d: %d starts in a period of %+v", seed, n, r)
			}
		}
	}
}

// A clock that goes back delays by a full burst at most, and a rest by the longest one.
func TestArrival_Fit(t *testing.T) {
	t.Parallel()
	r := task.Rate{Key: "k", Starts: 1, Per: time.Second, Burst: 3}
	day := 24 * time.Hour.Microseconds()
	a := rules.Arrival{}.Start(r, 100*day)
	fit, changed := a.FitClaim(r, day)
	if want := day + 3*time.Second.Microseconds(); !changed || fit.Next != want {
		t.Errorf("after the clock went back the next start is at %d, want %d", fit.Next, want)
	}
	little := 100*day - 5*time.Second.Microseconds()
	if fit, changed := a.Fit(r, little); !changed || fit.Next != little+3*time.Second.Microseconds() {
		t.Errorf("a rate that is set leaves the next start at %d", fit.Next)
	}
	if fit, changed := a.FitClaim(r, little); changed || fit != a {
		t.Errorf("a claim that is late makes %+v of %+v", fit, a)
	}
	if fit, changed := (rules.Arrival{Rest: 100 * day}).FitClaim(task.Rate{}, day); !changed || fit.Rest > day {
		t.Errorf("a rest of 99 days: %+v", fit)
	}
}
