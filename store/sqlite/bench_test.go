package sqlite_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

const (
	benchNS   = "default"
	benchType = "acme.bench.noop.v1"
)

// modes are the two commit modes that users choose between.
var modes = []struct {
	name string
	sync sqlite.Sync
}{{"FULL", sqlite.Full}, {"NORMAL", sqlite.Normal}}

func perMode(b *testing.B, run func(b *testing.B, db *sqlite.DB)) {
	for _, m := range modes {
		b.Run(m.name, func(b *testing.B) {
			db := openFile(b, filepath.Join(b.TempDir(), "bench.db"), sqlite.Synchronous(m.sync))
			b.ReportAllocs()
			run(b, db)
		})
	}
}

func perSecond(b *testing.B, n int, what string) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), what+"/s")
}

func newTasks(ids *task.IDs, n int) store.Submission {
	tasks := make([]task.New, n)
	for i := range tasks {
		tasks[i] = task.New{
			ID: ids.New(), Type: benchType, Queue: task.DefaultQueue, Input: json.RawMessage(`{"n":12345}`), SchemaVersion: 1,
			Priority: task.DefaultPriority, MaxAttempts: task.DefaultMaxAttempts, MaxRepairs: task.DefaultMaxRepairs,
			Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
		}
	}
	return store.Submission{Tasks: tasks}
}

func enqueueAll(b *testing.B, db *sqlite.DB, n, batch int) {
	b.Helper()
	ids := task.NewIDs(nil)
	for n > 0 {
		k := min(n, batch)
		if _, err := db.Enqueue(b.Context(), benchNS, nil, newTasks(ids, k)); err != nil {
			b.Fatal(err)
		}
		n -= k
	}
}

func claimRequest(limit int) store.ClaimRequest {
	return store.ClaimRequest{
		Worker: "w", Name: "host:1", LeaseID: task.NewLeaseID(), TTL: 30 * time.Second, Limit: limit,
		Types: map[string]int{benchType: 1}, Slots: limit,
	}
}

func successes(cs []store.Claimed) []store.Finish {
	fins := make([]store.Finish, len(cs))
	for i := range cs {
		fins[i] = store.Finish{Lease: cs[i].Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`null`), CodeVersion: 1}
	}
	return fins
}

// BenchmarkNoop measures claim and finish of no-op tasks, including attempt rows, in batches
// of 1,000: the store's share of a task's life after the enqueue.
func BenchmarkNoop(b *testing.B) {
	perMode(b, func(b *testing.B, db *sqlite.DB) {
		enqueueAll(b, db, b.N, 1000)
		b.ResetTimer()
		for done := 0; done < b.N; {
			got, err := db.Claim(b.Context(), benchNS, claimRequest(1000))
			if err != nil {
				b.Fatal(err)
			}
			res, err := db.Finish(b.Context(), benchNS, successes(got.Tasks)...)
			if err != nil || len(res) == 0 || res[0].Err != nil {
				b.Fatal(err, res)
			}
			done += len(got.Tasks)
		}
		perSecond(b, b.N, "tasks")
	})
}

// BenchmarkFinish ends plain tasks one by one, each with its own commit.
func BenchmarkFinish(b *testing.B) {
	perMode(b, func(b *testing.B, db *sqlite.DB) {
		enqueueAll(b, db, b.N, 1000)
		var fins []store.Finish
		for len(fins) < b.N {
			got, err := db.Claim(b.Context(), benchNS, claimRequest(1000))
			if err != nil {
				b.Fatal(err)
			}
			fins = append(fins, successes(got.Tasks)...)
		}
		b.ResetTimer()
		for i := range fins {
			if res, err := db.Finish(b.Context(), benchNS, fins[i]); err != nil || res[0].Err != nil {
				b.Fatal(err, res)
			}
		}
		perSecond(b, b.N, "tasks")
	})
}

// BenchmarkEnqueue stores tasks in batches.
func BenchmarkEnqueue(b *testing.B) {
	for _, batch := range []int{1, 1000} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			perMode(b, func(b *testing.B, db *sqlite.DB) {
				ids := task.NewIDs(nil)
				subs := make([]store.Submission, (b.N+batch-1)/batch)
				for i := range subs {
					subs[i] = newTasks(ids, min(batch, b.N-i*batch))
				}
				b.ResetTimer()
				for i := range subs {
					if _, err := db.Enqueue(b.Context(), benchNS, nil, subs[i]); err != nil {
						b.Fatal(err)
					}
				}
				perSecond(b, b.N, "tasks")
			})
		})
	}
}

// BenchmarkEnqueueShared measures single enqueues by many callers, which share commits.
func BenchmarkEnqueueShared(b *testing.B) {
	perMode(b, func(b *testing.B, db *sqlite.DB) {
		ids := task.NewIDs(nil)
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := db.Enqueue(b.Context(), benchNS, nil, newTasks(ids, 1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
		perSecond(b, b.N, "tasks")
	})
}

// BenchmarkStepSequential measures one task that records steps one after the other.
func BenchmarkStepSequential(b *testing.B) {
	perMode(b, func(b *testing.B, db *sqlite.DB) {
		enqueueAll(b, db, 1, 1)
		got, err := db.Claim(b.Context(), benchNS, claimRequest(1))
		if err != nil || len(got.Tasks) != 1 {
			b.Fatal(err)
		}
		names := make([]string, b.N)
		for i := range names {
			names[i] = fmt.Sprintf("step-%d", i)
		}
		b.ResetTimer()
		for i := range b.N {
			res, err := db.Record(b.Context(), benchNS, store.Record{
				Lease: got.Tasks[0].Lease,
				Step:  &task.Step{Name: names[i], Index: i, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: json.RawMessage(`{"ok":true}`)},
			})
			if err != nil || res[0].Err != nil {
				b.Fatal(err, res)
			}
		}
		perSecond(b, b.N, "steps")
	})
}

// BenchmarkStepShared measures steps of many concurrent tasks.
func BenchmarkStepShared(b *testing.B) {
	perMode(b, func(b *testing.B, db *sqlite.DB) {
		enqueueAll(b, db, 50, 50)
		got, err := db.Claim(b.Context(), benchNS, claimRequest(50))
		if err != nil || len(got.Tasks) != 50 {
			b.Fatal(err)
		}
		var next atomic.Int64
		b.SetParallelism(25)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			lease := got.Tasks[int(next.Add(1))%50].Lease
			for pb.Next() {
				i := int(next.Add(1))
				res, err := db.Record(b.Context(), benchNS, store.Record{
					Lease: lease,
					Step:  &task.Step{Name: fmt.Sprintf("step-%d", i), Index: i, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Value: json.RawMessage(`1`)},
				})
				if err != nil || res[0].Err != nil {
					b.Error(err, res)
					return
				}
			}
		})
		perSecond(b, b.N, "steps")
	})
}

// BenchmarkClaimIdle measures a claim that finds nothing due among a million future rows.
func BenchmarkClaimIdle(b *testing.B) {
	db := openFile(b, filepath.Join(b.TempDir(), "bench.db"))
	ids := task.NewIDs(nil)
	for range 100 {
		sub := newTasks(ids, 1000)
		for i := range sub.Tasks {
			sub.Tasks[i].Delay = time.Hour
		}
		if _, err := db.Enqueue(b.Context(), benchNS, nil, sub); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		if _, err := db.Claim(b.Context(), benchNS, claimRequest(100)); err != nil {
			b.Fatal(err)
		}
	}
}
