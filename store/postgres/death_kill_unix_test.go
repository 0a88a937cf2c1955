//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
)

// killed measures the time from the kill of a process until another process continues its task.
func killed(t *testing.T, victim, other process, n int) time.Duration {
	t.Helper()
	db := other.db(t)
	id := victim.enqueue(t, db, n)
	v := victim.start(t)
	v.says("begun")
	went := make(chan time.Time, 10)
	stop := other.run(t, db, func(context.Context, int) (string, error) {
		went <- time.Now()
		return "done", nil
	})
	defer stop()
	pause(2*time.Second + time.Duration(n*137%1000)*time.Millisecond) // the lock was seen held
	if len(went) > 0 {
		t.Fatal("the lease of a worker that lives was taken")
	}
	at := time.Now()
	v.kill()
	var after time.Duration
	select {
	case then := <-went:
		after = then.Sub(at)
	case <-time.After(time.Minute):
		t.Fatal("nobody goes on with the task of a process that was killed")
	}
	if got := other.succeeded(t, db, id); got.AttemptNo != 2 {
		t.Errorf("it succeeded in attempt %d", got.AttemptNo)
	}
	return after
}

// kill is a case with the maximum time until another process continues, on an idle machine.
type kill struct {
	name       string
	ttl, grace time.Duration
	elsewhere  bool
	most       time.Duration
}

var kills = []kill{
	{"on the same machine", 30 * time.Second, 0, false, time.Second},
	{"on another machine", 30 * time.Second, 0, true, 12 * time.Second},
	{"on another machine, with a short grace", 30 * time.Second, 3 * time.Second, true, 5 * time.Second},
}

// A killed process is found dead, and others continue its tasks. `make soak-death` kills 100 of
// each kind.
func testKilled(t *testing.T) {
	count, beside := 1, 1
	if full {
		count, beside = 100, 10
	}
	url := pgtest.Migrated(t, "weaver", migrateURL)
	locks := filepath.Join(t.TempDir(), "workers")
	played := kills
	if !full {
		played = slices.DeleteFunc(slices.Clone(kills), func(k kill) bool { return k.elsewhere && k.grace == 0 }) // they wait for 11 s
	}
	inTurn(t, len(played), func(i int) (string, func(t *testing.T)) {
		k := played[i]
		return k.name, func(t *testing.T) {
			var mu sync.Mutex
			var all []time.Duration
			together(t, beside, func(j int) (string, func(t *testing.T)) {
				return fmt.Sprint(j), func(t *testing.T) {
					victim := process{URL: url, NS: fmt.Sprintf("kill-%d-%d", i, j), Locks: locks, TTL: k.ttl, Grace: k.grace}
					other := victim
					other.Elsewhere = k.elsewhere
					for n := range count / beside {
						t.Run("kill", func(t *testing.T) {
							took := killed(t, victim, other, n*beside+j)
							mu.Lock()
							defer mu.Unlock()
							all = append(all, took)
						})
					}
				}
			})
			slices.Sort(all)
			if len(all) == 0 {
				t.Fatal("no kill was measured")
			}
			most := all[len(all)-1]
			t.Logf("%d kills: median %s, 99 of 100 %s, most %s", len(all), all[len(all)/2].Round(time.Millisecond), all[(len(all)*99-1)/100].Round(time.Millisecond), most.Round(time.Millisecond))
			limit := k.ttl * 2 / 3 // it was extended at most a third of the TTL ago, so it ends later
			if full {
				limit = k.most
			}
			if most > limit {
				t.Errorf("another process went on %s after the kill, want %s at most", most, limit)
			}
		}
	})
}
