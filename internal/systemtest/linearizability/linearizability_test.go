package linearizability_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
)

// checkTimeout bounds the check of one history. A valid history takes milliseconds.
const checkTimeout = 3 * time.Second

// leaseStores opens an empty store of each kind, with one or more handles.
var leaseStores = []struct {
	name string
	open func(t *testing.T) []store.Store
}{
	{"memstore", func(*testing.T) []store.Store { return []store.Store{memstore.New()} }},
	{"sqlite memory", func(t *testing.T) []store.Store {
		db, err := sqlite.OpenMemory(t.Context())
		return []store.Store{readyLeases(t, db, err)}
	}},
	{"sqlite file", func(t *testing.T) []store.Store {
		return []store.Store{openLeases(t, filepath.Join(t.TempDir(), "weaver.db"))}
	}},
	{"sqlite file, two handles", func(t *testing.T) []store.Store {
		path := filepath.Join(t.TempDir(), "weaver.db")
		return []store.Store{openLeases(t, path), openLeases(t, path)}
	}},
}

func openLeases(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Synchronous(sqlite.Normal))
	return readyLeases(t, db, err)
}

func readyLeases(t *testing.T, db *sqlite.DB, err error) *sqlite.DB {
	t.Helper()
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

// TestLeasesAreLinearizable records histories of many goroutines that claim, beat, finish, cancel, retry and reap the
// same few tasks. For each it searches an order of the calls that the sequential model accepts.
func TestLeasesAreLinearizable(t *testing.T) {
	for _, kind := range leaseStores {
		t.Run(kind.name, func(t *testing.T) {
			histories := leaseHistories
			if testing.Short() {
				histories = 1
			}
			ops := 0
			for i := range histories {
				seed := rand.Uint64()&^1 | uint64(i%2)
				history := historyOf(t, seed, kind.open)
				result := porcupine.CheckOperationsTimeout(leaseModel, history, checkTimeout)
				ops += len(history)
				if result != porcupine.Ok {
					t.Fatalf("seed %d: the history of %d operations is %s: %s", seed, len(history), result, explainLeases(history))
				}
			}
			if want := histories * leaseClients * callsPerClient * 9 / 10; ops < want {
				t.Errorf("%d operations, want %d at least: too few to mean something", ops, want)
			}
			t.Logf("%d operations in %d histories", ops, histories)
		})
	}
}

// TestBrokenLeasesAreFound records histories of stores that each break one rule. The check must find each.
func TestBrokenLeasesAreFound(t *testing.T) {
	for _, c := range brokenStores {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(memstore.New())
			seed := rand.Uint64()
			history := historyOf(t, seed, func(*testing.T) []store.Store { return []store.Store{s} })
			if result := porcupine.CheckOperationsTimeout(leaseModel, history, checkTimeout); result != porcupine.Illegal {
				t.Errorf("seed %d: a history of %d operations is %s, want %s", seed, len(history), result, porcupine.Illegal)
			}
		})
	}
}

// historyOf records one history in a bubble. The history is checked outside, where time is real.
func historyOf(t *testing.T, seed uint64, open func(t *testing.T) []store.Store) []porcupine.Operation {
	t.Helper()
	var history []porcupine.Operation
	synctest.Test(t, func(t *testing.T) { history = recordHistory(t, seed, open(t)...) })
	return history
}

// explainLeases shows, for each task with an invalid history, the longest explainable part and the next call.
func explainLeases(history []porcupine.Operation) string {
	var text strings.Builder
	for _, part := range leasePartition(history) {
		result, info := porcupine.CheckOperationsVerbose(leaseModel, part, checkTimeout)
		if result == porcupine.Ok {
			continue
		}
		var best []porcupine.Operation
		for _, order := range info.PartialLinearizationsOperations()[0] {
			if len(order) > len(best) {
				best = order
			}
		}
		fmt.Fprintf(&text, "\ntask %s, %d of %d operations can be put in order; the last of them and the calls that follow:", part[0].Input.(leaseCall).task, len(best), len(part))
		done := map[int64]bool{}
		for _, o := range best {
			done[o.Call] = true
		}
		left := slices.DeleteFunc(slices.Clone(part), func(o porcupine.Operation) bool { return done[o.Call] })
		slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, o := range slices.Concat(best[max(0, len(best)-12):], left[:min(8, len(left))]) {
			mark := "  "
			if !done[o.Call] {
				mark = "? "
			}
			fmt.Fprintf(&text, "\n%s[%d, %d] %s", mark, o.Call, o.Return, leaseModel.DescribeOperation(o.Input, o.Output))
		}
	}
	return text.String()
}
