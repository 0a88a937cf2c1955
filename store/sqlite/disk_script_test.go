package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The script: every kind of write call, alone and in groups. A failed call is not repeated,
// and calls that depend on it are left out.

func (r *rig) submission(n int, change ...func(*task.New)) store.Submission {
	f := fixture{ids: r.ids}
	return f.drafts(n, change...)
}

// long gives a task some pages of its own with unique content: after a lost write, no older
// bytes may equal it.
func long(n *task.New) {
	n.Input = json.RawMessage(`"` + strings.Repeat(n.ID.String(), 800) + `"`)
}

// jobOf drafts a job: a task, and its dependents.
func (r *rig) jobOf(n int) store.Submission {
	sub := r.submission(n)
	sub.Job = &task.NewJob{ID: r.ids.New(), Name: "disk"}
	for i := range sub.Tasks {
		sub.Tasks[i].Node = fmt.Sprint("n", i)
		if i > 0 {
			sub.Tasks[i].Needs = []task.Edge{{Needs: sub.Tasks[0].ID, Kind: task.OnSuccess}}
		}
	}
	return sub
}

func (r *rig) enqueue(what string, sub store.Submission) bool {
	err := r.led.do("enqueue "+what, showsTasks(sub, ""), func() error {
		_, err := r.db.Enqueue(r.Context(), fixNS, nil, sub)
		return err
	})
	return err == nil
}

// claim leases up to n tasks, long enough that no other worker gets them.
func (r *rig) claim(n int) (claimed []store.Claimed) {
	req := fixClaim("w", n)
	req.LeaseID, req.TTL = r.leaseID(), hour
	var got []store.Claimed // read by shows, after the end
	_ = r.led.do(fmt.Sprint("claim ", n), showsLease(req.LeaseID, &got), func() error {
		res, err := r.db.Claim(r.Context(), fixNS, req)
		got = res.Tasks
		return err
	})
	return got
}

func completed(name, value string) *task.Step {
	return &task.Step{Name: name, Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1, Value: json.RawMessage(value)}
}

// record records a step of each attempt, in one call.
func (r *rig) record(name string, claimed ...store.Claimed) {
	var recs []store.Record
	var shows []func(*found) (int, int)
	for i, c := range claimed {
		value := fmt.Sprintf(`"%s %d"`, name, i)
		recs = append(recs, store.Record{Lease: c.Lease, Step: completed(name, value)})
		shows = append(shows, showsStep(c.Task.ID, name, value, ""))
	}
	_ = r.led.do(fmt.Sprintf("record %d steps", len(recs)), showsAll(shows), func() error {
		res, err := r.db.Record(r.Context(), fixNS, recs...)
		for i := range res {
			err = errors.Join(err, res[i].Err)
		}
		return err
	})
}

// finish ends attempts in one call.
func (r *rig) finish(outcome task.Outcome, becomes task.State, claimed ...store.Claimed) {
	var fins []store.Finish
	var shows []func(*found) (int, int)
	for _, c := range claimed {
		fin := store.Finish{Lease: c.Lease, Outcome: outcome, CodeVersion: 1}
		switch outcome {
		case task.OutcomeSuccess:
			fin.Output = json.RawMessage(`"done"`)
		default:
			fin.Error = &task.Error{Kind: task.KindHandler, Message: "no"}
			fin.Decision = &task.Decision{Kind: task.DecideMarkDead}
		}
		fins = append(fins, fin)
		shows = append(shows, showsEnd(c.Lease, outcome, becomes))
	}
	_ = r.led.do(fmt.Sprintf("finish %d with %s", len(fins), outcome), showsAll(shows), func() error {
		res, err := r.db.Finish(r.Context(), fixNS, fins...)
		for i := range res {
			err = errors.Join(err, res[i].Err)
		}
		return err
	})
}

const insertOrder = "INSERT INTO orders VALUES (?)"

// inTx enqueues in a transaction of the user, together with a row of the user's own.
func (r *rig) inTx(note string) {
	sub := r.submission(2)
	_ = r.led.do("a user's transaction", showsTasks(sub, note), func() error {
		tx, err := r.db.DB().BeginTx(r.Context(), nil)
		if err != nil {
			return driversError{err}
		}
		defer func() { _ = tx.Rollback() }() // the database may have done it already
		if _, err := tx.ExecContext(r.Context(), insertOrder, note); err != nil {
			return driversError{err}
		}
		if _, err := r.db.Enqueue(r.Context(), fixNS, sqlite.Tx(tx), sub); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return driversError{err}
		}
		return nil
	})
}

// driversError is an error that database/sql returned to the user. It lacks the store's
// message.
type driversError struct{ error }

// stepTx records a step in a transaction with a row of the user's.
func (r *rig) stepTx(c store.Claimed, note string) {
	rec := store.Record{Lease: c.Lease, Step: completed("tx", `"v"`)}
	_ = r.led.do("a step's transaction", showsStep(c.Task.ID, "tx", `"v"`, note), func() error {
		res, err := r.db.StepTx(r.Context(), fixNS, rec, time.Minute, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			_, err := tx.Handle().(*sql.Tx).ExecContext(ctx, insertOrder, note)
			return json.RawMessage(`"v"`), err
		})
		if err == nil {
			err = res.Err
		}
		return err
	})
}

func (r *rig) cancel(id task.ID) {
	_ = r.led.do("cancel a task", showsState(id, task.Cancelled), func() error {
		res, err := r.db.Operate(r.Context(), fixNS, store.CancelTask{Audit: store.Audit{By: "ops"}, Task: id})
		if err == nil {
			err = res[0].Err
		}
		return err
	})
}

// beat renews leases; it leaves no distinguishable mark.
func (r *rig) beat(claimed []store.Claimed) {
	req := store.HeartbeatRequest{Worker: "w", TTL: hour}
	for _, c := range claimed {
		req.Leases = append(req.Leases, c.Lease)
	}
	_ = r.led.do("renew leases", nil, func() error {
		_, err := r.db.Heartbeat(r.Context(), fixNS, req)
		return err
	})
}

func (r *rig) reap() {
	_ = r.led.do("reap", nil, func() error {
		_, err := r.db.Reap(r.Context(), fixNS, store.ReapRequest{Worker: "w", TTL: hour, CrashBudget: 3})
		return err
	})
}

// checkpoint copies the log into the database, as the writer does with a long log. No caller
// gets its error.
func (r *rig) checkpoint() { _ = r.db.Exec(r.Context(), "PRAGMA wal_checkpoint(PASSIVE)") }

// together commits calls in one group: the writer is kept busy until all of them wait, in this
// order.
func (r *rig) together(calls ...func()) {
	held, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = r.db.Exclusive(r.Context(), func() {
			close(held)
			<-release
		})
	})
	<-held
	for _, call := range calls {
		wg.Go(call)
		synctest.Wait() // it waits for the writer, or need not wait
	}
	close(release)
	wg.Wait()
}

// script plays every call once.
func (r *rig) script() {
	first := r.submission(5)
	if r.enqueue("five", first) {
		r.cancel(first.Tasks[4].ID)
	}
	r.enqueue("a job", r.jobOf(4))
	r.enqueue("two long ones", r.submission(2, long))
	a := r.claim(3)
	r.record("s1", a...)
	r.inTx("order 1")
	if len(a) == 3 {
		r.stepTx(a[0], "order 2")
		r.record("s2", a[1])
		r.finish(task.OutcomeSuccess, task.Succeeded, a[0])
		r.finish(task.OutcomeFailure, task.Failed, a[1])
	}
	r.checkpoint() // the log starts over
	r.beat(a)
	r.enqueue("one after the checkpoint", r.submission(1))
	b := r.claim(3)
	calls := []func(){
		func() { r.enqueue("a job in a group", r.jobOf(3)) },
		func() { r.enqueue("a long one in a group", r.submission(1, long)) },
		func() { r.enqueue("two in a group", r.submission(2)) },
		func() { r.claim(2) },
		func() { r.finish(task.OutcomeSuccess, task.Succeeded, b...) },
	}
	r.together(calls...)
	r.reap()
	r.checkpoint()
	r.together(
		func() { r.enqueue("a second group", r.submission(2, long)) },
		func() { r.inTx("order 3") },
		func() { r.enqueue("a second job in a group", r.jobOf(3)) },
	)
	r.enqueue("the last", r.submission(1))
}

// resume does the remaining work, which must succeed because the disk works again.
func (r *rig) resume() {
	r.Helper()
	f := fixtureOn(r.T, r.db)
	f.ids = r.ids
	f.enqueue(3, long)
	f.reapChores() // jobs that were cut short
	held := r.held()
	for ; len(held) > 0; held = f.claim("w", 1000) {
		f.finish(held...)
	}
	snap, err := r.db.Snapshot(r.Context(), fixNS)
	if err != nil {
		r.Fatalf("Snapshot on a disk that works again: %v", err)
	}
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; !t.State.Terminal() {
			r.Errorf("task %v is %s/%s when all work is done", t.ID, t.State, t.Waiting)
		}
	}
}

// held returns the running tasks, or the due tasks if nothing runs.
func (r *rig) held() (held []store.Claimed) {
	r.Helper()
	snap, err := r.db.Snapshot(r.Context(), fixNS)
	if err != nil {
		r.Fatalf("Snapshot on a disk that works again: %v", err)
	}
	for i := range snap.Tasks {
		if t := &snap.Tasks[i]; t.State == task.Running {
			held = append(held, store.Claimed{Lease: task.Lease{Task: t.ID, Epoch: t.Epoch, ID: t.LeaseID, Generation: snap.Generation}})
		}
	}
	if len(held) == 0 {
		held = fixtureOn(r.T, r.db).claim("w", 1000)
	}
	return held
}
