package rules_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// No period has more starts than the rate and its burst, and nothing that waits long enough is held up.
func TestArrival(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := task.Rate{Key: "k", Starts: 1 + random.IntN(20), Burst: 1 + random.IntN(10), Per: time.Duration(20+random.IntN(1_000_000)) * time.Microsecond}
		var a rules.Arrival
		var starts []int64
		now := int64(1_000_000)
		for range 100 {
			now += random.Int64N(1 + 2*r.Per.Microseconds()/int64(r.Starts))
			var changed bool
			if a, changed = a.Fit(r, now); changed {
				t.Fatalf("seed %d: the state %+v is not one of the rate", seed, a)
			}
			if open := a.OpenAt(r); open > now {
				if open-now > r.Spacing().Microseconds() {
					t.Fatalf("seed %d: the next start is %d µs away, with a spacing of %s", seed, open-now, r.Spacing())
				}
				continue
			}
			a = a.Start(r, now)
			starts = append(starts, now)
		}
		for i := range starts {
			n := 0
			for _, at := range starts[i:] {
				if at < starts[i]+r.Per.Microseconds() {
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
	fit, changed := a.Fit(r, day)
	if want := day + 3*time.Second.Microseconds(); !changed || fit.Next != want {
		t.Errorf("after the clock went back the next start is at %d, want %d", fit.Next, want)
	}
	if fit, changed := (rules.Arrival{Rest: 100 * day}).Fit(task.Rate{}, day); !changed || fit.Rest > day {
		t.Errorf("a rest of 99 days: %+v", fit)
	}
}
