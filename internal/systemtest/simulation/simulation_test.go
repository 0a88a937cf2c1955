package simulation_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// With a small heap, garbage collection takes up to half of the test time.
func init() { debug.SetGCPercent(400) }

func env(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// mustHappen lists the events that must occur in some seed.
var mustHappen = []string{
	"tasks succeeded", "tasks failed", "tasks cancelled", "tasks blocked", "tasks poisoned",
	"leases reaped", "crashes", "deadlines passed", "claims found again",
	"finishes again", "finishes refused", "records refused", "heartbeats refused",
	"calls refused", "calls unheard", "calls late",
	"transactions " + txCommitted, "transactions " + txRolledBack, "transactions " + txRefused, "transactions " + txUnknown, "transactions waited",
	"signals sent", "signals sent again", "signals that contradict", "waits timed out", "decompositions",
	"calls that succeeded", "calls with children that failed", "races won by number 0", "races won by number 1", "races won by number 2", "reruns", "budgets used up", "undos begun",
}

// TestSimulation runs seeds 1, 2, 3 … WEAVER_SIMULATION=20000 sets their number, WEAVER_SIMULATION_FROM=301 the first
// seed. WEAVER_SIMULATION_SEED=7 runs seed 7 only and prints its log (with -v).
func TestSimulation(t *testing.T) {
	t.Parallel()
	if one := env(t, "WEAVER_SIMULATION_SEED", 0); one > 0 {
		lines, wrong, _ := simulate(t, uint64(one))
		fmt.Println(strings.Join(lines, "\n"))
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
	from, total := env(t, "WEAVER_SIMULATION_FROM", 1), env(t, "WEAVER_SIMULATION", size(seeds))
	var mu sync.Mutex
	tally := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		const lanes = 4
		for lane := range lanes {
			t.Run(fmt.Sprintf("from %d", from+lane), func(t *testing.T) {
				t.Parallel()
				failed := 0
				for seed := from + lane; seed < from+total && failed < 3; seed += lanes {
					lines, wrong, counts := simulateWatched(t, seed)
					if len(wrong) > 0 {
						failed++
						t.Errorf("seed %d (WEAVER_SIMULATION_SEED=%d prints its log):\n%s", seed, seed, strings.Join(lines[max(0, len(lines)-12):], "\n"))
					}
					mu.Lock()
					for what, n := range counts {
						tally[what] += n
					}
					mu.Unlock()
				}
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%8d %s", tally[what], what)
	}
	// Runs without these events prove nothing.
	for _, what := range mustHappen {
		if tally[what] == 0 && total >= 100 {
			t.Errorf("in %d seeds there were no %s", total, what)
		}
	}
}

// size reduces a default with -short.
func size(n int) int {
	if testing.Short() {
		return max(1, n/30)
	}
	return n
}

// simulateWatched is simulate, and names the seed if the run does not settle: then a goroutine loops, and no virtual
// time passes.
func simulateWatched(t *testing.T, seed int) (lines, wrong []string, tally map[string]int) {
	watchdog := time.AfterFunc(3*time.Minute, func() { panic(fmt.Sprintf("seed %d never gets quiet", seed)) })
	defer watchdog.Stop()
	return simulate(t, uint64(seed))
}

// TestSameSeedSameLog runs seeds twice. A difference shows that the run depends on more than the seed.
func TestSameSeedSameLog(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for seed := 1; seed <= env(t, "WEAVER_SIMULATION_TWICE", size(twice)); seed++ {
		first, _, _ := simulate(t, uint64(seed))
		second, _, _ := simulate(t, uint64(seed))
		if hash(first) == hash(second) {
			continue
		}
		for i := range first {
			if i >= len(second) || first[i] != second[i] {
				t.Errorf("seed %d: the logs differ from line %d on:\n%s\n%s", seed, i+1, strings.Join(first[max(0, i-5):i+1], "\n"), strings.Join(second[min(i, len(second)):min(i+1, len(second))], "\n"))
				break
			}
		}
	}
}

// hash returns the part of a log that is the same in two runs of a seed.
func hash(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}
