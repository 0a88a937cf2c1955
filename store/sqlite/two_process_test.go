package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// produce stores one task of the fixtures' kind.
func produce(ctx context.Context, db *sqlite.DB, ids *task.IDs) (task.ID, error) {
	n := (&fixture{db: db, ids: ids}).draft()
	_, err := db.Enqueue(ctx, fixNS, nil, store.Submission{Tasks: []task.New{n}})
	return n.ID, err
}

// childEnqueues stores a task for each command and prints its ID and the time.
func childEnqueues(ctx context.Context, path string, in *bufio.Scanner, out io.Writer) error {
	return opened(ctx, path, func(db *sqlite.DB) error {
		ids := task.NewIDs(nil)
		for fmt.Fprintln(out, "there"); in.Scan(); {
			id, err := produce(ctx, db, ids)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, id, time.Now().UnixNano())
		}
		return in.Err()
	})
}

// Tasks that another process enqueues are noticed here, and can be claimed at once.
func TestOtherProcessIsNoticed(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	if got := f.claim("w", 1); len(got) != 0 {
		t.Fatalf("claimed %v of nothing", got) // from now on it knows that no task is due
	}
	notices := f.notices()
	c := startChild(t, "enqueue", f.db.Path())
	c.readLine()
	for range 3 {
		c.send("go")
		f.await(notices, "another process's commit", func(n store.Notice) bool { return n.External })
		here := time.Now()
		id, at, _ := strings.Cut(c.readLine(), " ")
		there, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("noticed %v after it was acknowledged there", here.Sub(time.Unix(0, there)))
		got := f.claim("w", 10)
		if len(got) != 1 || got[0].Task.ID.String() != id {
			t.Errorf("claimed %v after the notice, want %s", got, id)
		}
		f.finish(got...)
	}
	c.end()
}

// childHolds joins, claims everything and waits for its end.
func childHolds(ctx context.Context, path string, in *bufio.Scanner, out io.Writer) error {
	return opened(ctx, path, func(db *sqlite.DB) error {
		if err := db.Join(ctx, fixNS, store.WorkerInfo{ID: "child", Name: "host:2", TTL: fixTTL}); err != nil {
			return err
		}
		req := fixClaim("child", 100)
		req.Slots = 7 // a quarantined task runs alone
		got, err := db.Claim(ctx, fixNS, req)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, len(got.Tasks))
		for in.Scan() {
		}
		return in.Err()
	})
}

// The leases of a killed process are taken at once, long before they expire; those of a living
// process are not.
func TestKilledProcessLosesItsLeases(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	f.join("here")
	ids := f.enqueue(3)
	reap := func() []store.Reaped {
		t.Helper()
		got, err := f.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "here", TTL: fixTTL, CrashBudget: 3})
		if err != nil || got.WarmingUp {
			t.Fatalf("Reap = %+v, %v", got, err)
		}
		return got.Reaped
	}
	for round := 1; round <= 3; round++ {
		c := startChild(t, "hold", f.db.Path())
		want := 3
		if round == 3 { // they are quarantined now
			want = 1
		}
		if n := c.readLine(); n != fmt.Sprint(want) {
			t.Fatalf("round %d: the other process claimed %s tasks, want %d", round, n, want)
		}
		if got := reap(); len(got) != 0 {
			t.Fatalf("reaped %+v of a process that lives", got)
		}
		c.kill()
		got := reap()
		if round == 3 { // the third consecutive loss exhausts the budget
			if len(got) != 1 || got[0].State != task.Failed || !got[0].Crash {
				t.Errorf("reaped %+v in round 3, want one poisoned task", got)
			}
			break
		}
		if len(got) != 3 {
			t.Fatalf("reaped %+v of a killed process, want its 3 tasks", got)
		}
		for _, r := range got {
			if r.State != task.Ready || !r.Crash {
				t.Errorf("reaped %+v, want it ready, and a crash", r)
			}
		}
		if again := reap(); len(again) != 0 {
			t.Errorf("reaped %+v once more", again)
		}
	}
	f.sound(ids...)
}

// work claims and finishes tasks in small batches until no task is left.
func work(ctx context.Context, db *sqlite.DB, worker store.WorkerID, done func(task.ID)) error {
	for {
		got, err := db.Claim(ctx, fixNS, fixClaim(worker, 5))
		if err != nil {
			return err
		}
		if len(got.Tasks) == 0 && got.Next < 0 {
			return nil
		}
		for _, c := range got.Tasks {
			res, err := db.Finish(ctx, fixNS, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`null`)})
			if err = errors.Join(err, res[0].Err); err != nil {
				return err
			}
			done(c.Task.ID)
		}
	}
}

func childWorks(ctx context.Context, path string, _ *bufio.Scanner, out io.Writer) error {
	return opened(ctx, path, func(db *sqlite.DB) error {
		return work(ctx, db, "child", func(id task.ID) { fmt.Fprintln(out, id) })
	})
}

// Two processes on one queue run every task exactly once.
func TestTwoProcessesShareAQueue(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	ids := f.enqueue(600)
	c := startChild(t, "work", f.db.Path())
	times := map[string]int{c.readLine(): 1} // it is working
	if err := work(t.Context(), f.db, "here", func(id task.ID) { times[id.String()]++ }); err != nil {
		t.Fatal(err)
	}
	here := len(times) - 1
	for _, line := range c.rest() {
		times[line]++
	}
	c.end()
	t.Logf("%d of %d tasks were done here", here, len(ids))
	for _, id := range ids {
		if n := times[id.String()]; n != 1 {
			t.Errorf("task %v was done %d times", id, n)
		}
	}
	f.sound(ids...)
	if n := f.count("SELECT count(*) FROM weaver_tasks WHERE state <> 'succeeded'"); n != 0 {
		t.Errorf("%d tasks did not succeed", n)
	}
}
