package soak_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// bulkSize is the number of failed tasks to retry, the limit of a call, and the number of kills of the retrying
// process.
type bulkSize struct{ tasks, limit, kills int }

func sizeOfBulk(t *testing.T) bulkSize {
	t.Helper()
	switch size := os.Getenv("WEAVER_BULK"); size {
	case "":
		return bulkSize{tasks: 2000, limit: 80, kills: 2}
	case "full":
		return bulkSize{tasks: 100_000, limit: 1000, kills: 10}
	default:
		t.Fatalf("WEAVER_BULK is %q: want full, or nothing", size)
		return bulkSize{}
	}
}

var (
	failing  = weaver.Define[int, weaver.None]("acme.bulk.work.v1", weaver.MaxAttempts(1))
	bulkText = "state:failed type:" + failing.Name()
)

// A process that is killed again and again retries all failed tasks of a query, call by call; the next process starts
// from the beginning. Each task is retried once and audited once. A task that fails after the set was fixed is not
// retried.
func TestBulkRetryThroughKills(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	size := sizeOfBulk(t)
	o := childConfig{Role: "bulk", Dir: t.TempDir(), Tasks: size.limit, Seed: seedOfStorm(t)}
	db, err := openDatabase(t.Context(), o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var ran atomic.Int64
	var mended atomic.Bool
	eng, err := weaver.New(db, weaver.Config{Concurrency: 500, Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
		failing.Handler(func(context.Context, int) (weaver.None, error) {
			ran.Add(1)
			if !mended.Load() {
				return weaver.None{}, errByChance
			}
			return weaver.None{}, nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	failMore(t, eng, size.tasks)
	set, err := eng.Bulk(t.Context(), ops.BulkRequest{Verb: ops.BulkRetry, Query: bulkQuery(t), DryRun: true, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	o.Newest = set.Newest
	failMore(t, eng, 10)

	rnd := rand.New(rand.NewPCG(o.Seed, 2))
	for o.Life = 1; o.Life <= size.kills; o.Life++ {
		p := startProcess(t, o)
		select {
		case <-p.moment:
		case <-p.ended:
			t.Fatalf("the process of life %d ended before it was killed: %v", o.Life, p.cmd.ProcessState)
		}
		select { // during one of the following calls
		case <-p.ended:
		case <-time.After(time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))):
		}
		p.kill()
	}
	last := startProcess(t, o)
	last.askToEnd()
	last.end()

	audited := make(map[string]int)
	for f := (store.AuditFilter{Limit: 1000}); ; {
		list, next, err := eng.Audit(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Verb != "retry" || e.Actor != bulkActor {
				t.Fatalf("the audit has %+v", e)
			}
			audited[e.Target]++
		}
		if f.After = next; next == "" {
			break
		}
	}
	for id, n := range audited {
		if n != 1 {
			t.Errorf("task %s was retried %d times", id, n)
		}
	}
	if len(audited) != size.tasks {
		t.Errorf("%d tasks were retried, want %d", len(audited), size.tasks)
	}
	ran.Store(0)
	mended.Store(true)
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := eng.Search(t.Context(), *bulkQuery(t))
	if err != nil {
		t.Fatal(err)
	}
	if n := ran.Load(); n != int64(size.tasks) || len(left.Items) != 10 {
		t.Errorf("%d tasks ran again and %d are failed still, want %d and 10", n, len(left.Items), size.tasks)
	}
}

// failMore makes n tasks fail.
func failMore(t *testing.T, eng *weaver.Engine, n int) {
	t.Helper()
	for done := 0; done < n; done += 5000 {
		if _, err := failing.EnqueueMany(t.Context(), eng, make([]int, min(5000, n-done))); err != nil {
			t.Fatal(err)
		}
		if err := eng.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func bulkQuery(t testing.TB) *ops.Query {
	t.Helper()
	q, err := ops.ParseQuery(bulkText, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &q
}

const bulkActor = "bulk"

// runBulk retries the tasks of the query. It reports its first call.
func runBulk(ctx context.Context, o childConfig) error {
	db, err := openDatabase(ctx, o.Dir)
	if err != nil {
		return err
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: stderrLog()})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	q, err := ops.ParseQuery(bulkText, time.Now())
	if err != nil {
		return errors.Join(err, db.Close())
	}
	req := ops.BulkRequest{Verb: ops.BulkRetry, Query: &q, Newest: o.Newest, Limit: o.Tasks, By: bulkActor, Reason: "mended"}
	for call := 0; ; call++ {
		res, err := client.Bulk(ctx, req)
		if err == nil && len(res.Refused) > 0 {
			err = fmt.Errorf("%d tasks were refused, as %+v", len(res.Refused), res.Refused[0])
		}
		if err != nil {
			return errors.Join(err, db.Close())
		}
		if call == 0 {
			fmt.Println(momentWord)
		}
		if req.After = res.Next; res.Next == "" {
			return db.Close()
		}
	}
}
