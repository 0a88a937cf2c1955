package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/faults/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// cut is a power failure at a position of a history.
type cut struct {
	at       int
	survival disktest.Survival
	seed     uint64
	drops    bool // the pages of a failed sync are lost permanently
}

func (c cut) String() string {
	s := fmt.Sprintf("power fails at %d, %v survives", c.at, c.survival)
	if c.survival > disktest.Arrived {
		s += fmt.Sprintf(" (seed %d)", c.seed)
	}
	if c.drops {
		s += ", failed syncs drop their pages"
	}
	return s
}

// powerLosses sums up the losses of many power failures.
type powerLosses struct {
	points int
	lost   int      // points at which an acknowledged call was lost
	calls  int      // lost acknowledged calls, summed over the points
	broken []string // every other defect at any point
	losses []string
}

// powerFails simulates a power failure at the given positions, with every survival, and with
// several seeds for random survivals.
func (r *rig) powerFails(positions []int, seeds int, drops bool, maybe bool) (sum powerLosses) {
	r.Helper()
	dir := r.TempDir()
	platter := r.hist.Platter(disktest.Flaws{DropsPages: drops})
	last := -1
	for _, at := range positions {
		if at == last {
			continue
		}
		last = at
		platter.Advance(at)
		for s := range disktest.Survivals {
			tries := 1
			if s > disktest.Arrived {
				tries = seeds
			}
			for seed := range uint64(tries) {
				c := cut{at: at, survival: s, seed: seed, drops: drops}
				image := platter.Image(s, rand.New(rand.NewPCG(uint64(at), seed)))
				f, bad, err := lookAt(r, dir, image)
				r.count(c, f, bad, err, maybe, &sum)
			}
		}
	}
	return sum
}

// count adds the result of a power failure.
func (r *rig) count(c cut, f *found, bad []string, err error, maybe bool, sum *powerLosses) {
	sum.points++
	if err != nil {
		sum.broken = append(sum.broken, fmt.Sprintf("%v: the file cannot be read: %v", c, err))
		return
	}
	v := r.led.compare(f, c.at, maybe)
	if bad = append(bad, v.wrong...); len(bad) > 0 {
		sum.broken = append(sum.broken, fmt.Sprintf("%v: %s", c, strings.Join(bad, "; ")))
	}
	if len(v.lost) > 0 {
		sum.lost++
		sum.calls += len(v.lost)
		sum.losses = append(sum.losses, fmt.Sprintf("%v: %s", c, strings.Join(v.lost, "; ")))
	}
}

// none reports the entries of list as errors, up to a limit.
func (r *rig) none(what string, list []string) {
	r.Helper()
	if len(list) > 0 {
		r.Errorf("%s at %d points:\n%s", what, len(list), strings.Join(list[:min(len(list), 5)], "\n"))
	}
}

// positions returns all positions of a history, or a share of those around its syncs.
func (r *rig) positions(share int) []int {
	if !diskFull {
		return some(r.hist.Syncs(), share)
	}
	all := make([]int, r.hist.Len()+1)
	for i := range all {
		all[i] = i
	}
	return all
}

// Acknowledged calls survive a power failure at any moment, with any surviving part of the
// unsynced writes.
func TestPowerFails(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		r.script()
		sum := r.powerFails(r.positions(powerShare), of(1, 3), false, false)
		t.Logf("%d points, %d with a loss", sum.points, sum.lost)
		r.none("acknowledged work is lost", sum.losses)
		r.none("the file is not in order", sum.broken)
	})
}

// The control: without a sync at each commit the same test sees losses. Under Normal the
// remains are nevertheless in order; without any sync they may be damaged.
func TestPowerFailsWithoutSyncs(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		sync    sqlite.Sync
		inOrder bool
	}{
		"normal": {sqlite.Normal, true},
		"off":    {sqlite.SyncOff, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRig(t, sqlite.Synchronous(c.sync))
				r.script()
				all := r.hist.Len()
				sum := r.powerFails(everyNth(all, spread(all, of(14, all))), of(1, 3), false, false)
				t.Logf("%d points, %d with a loss (%d acknowledged calls), %d out of order", sum.points, sum.lost, sum.calls, len(sum.broken))
				if sum.lost == 0 {
					t.Error("nothing is lost: TestPowerFails would see no loss either")
				}
				if c.inOrder {
					r.none("the file is not in order", sum.broken)
				}
			})
		})
	}
}

// everyNth returns positions up to n, including the last one.
func everyNth(n, step int) (list []int) {
	for i := 0; i < n; i += step {
		list = append(list, i)
	}
	return append(list, n)
}

// A sync fails, work continues, and then the power fails. No acknowledged call is lost,
// whether or not the system writes the pages again.
func TestPowerFailsAfterAFailedSync(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	inBubble(t, func(t *testing.T) {
		df := diskFault{counts: disktest.Sync, err: syscall.EIO, want: store.ErrUnavailable}
		dry := df.start(t, nil)
		dry.script()
		syncs, points := dry.disk.Count(disktest.Sync), 0
		for n := 1; n <= syncs; n += spread(syncs, of(4, syncs)) {
			r := df.start(t, df.plan(n))
			r.script()
			for _, drops := range []bool{false, true} {
				positions := r.hist.Syncs()
				positions = positions[max(0, len(positions)-of(2, 20)):]
				sum := r.powerFails(positions, 1, drops, true)
				points += sum.points
				what := fmt.Sprintf("sync %d fails: ", n)
				r.none(what+"acknowledged work is lost", sum.losses)
				r.none(what+"the file is not in order", sum.broken)
			}
			r.close()
		}
		t.Logf("%d points", points)
	})
}

// crowd makes goroutines write as fast as they can, so that their calls share commits at
// random.
func (r *rig) crowd(goroutines, rounds int) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				switch name := fmt.Sprint("crowd ", g, " ", i); (g + i) % 4 {
				case 0:
					r.enqueue(name, r.submission(2, long))
				case 1:
					r.enqueue(name, r.jobOf(3))
				case 2:
					r.inTx(name)
				default:
					r.enqueue(name, r.submission(1))
					if claimed := r.claim(2); len(claimed) > 0 {
						r.record("s", claimed...)
						r.finish(task.OutcomeSuccess, task.Succeeded, claimed...)
					}
				}
				if g == 0 && i%5 == 4 {
					r.checkpoint()
				}
			}
		})
	}
	wg.Wait()
}

func TestPowerFailsInACrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	inBubble(t, func(t *testing.T) {
		r := newRig(t)
		rounds := 2
		if diskFull {
			rounds = 12
		}
		r.crowd(6, rounds)
		positions := r.hist.Syncs()
		if !diskFull {
			positions = positions[len(positions)/2:]
		}
		sum := r.powerFails(some(positions, otherShare), 1, false, false)
		t.Logf("%d points in a history of %d changes, %d calls", sum.points, r.hist.Len(), len(r.led.calls))
		r.none("acknowledged work is lost", sum.losses)
		r.none("the file is not in order", sum.broken)
	})
}
