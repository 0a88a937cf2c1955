package storetest

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkpoint returns a record with one checkpoint.
func checkpoint(c store.Claimed, name, value string) store.Record {
	return store.Record{Lease: c.Lease, Checkpoint: &task.Checkpoint{Name: name, Value: json.RawMessage(value)}}
}

var checkpointCases = []testCase{
	{"a checkpoint is replaced and outlives attempts and retries", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(checkpoint(c, "b", `1`))
		e.record(checkpoint(c, "a", `"x"`))
		e.pass(time.Second)
		now := e.now()
		rec := checkpoint(c, "b", `{"at":2}`)
		rec.Progress = &task.Progress{Current: 1}
		e.check(!e.record(rec).Same, "a new value is said to be the same")
		kept := e.history(id).Checkpoints
		e.require(len(kept) == 2, "%d checkpoints, want 2: %+v", len(kept), kept)
		e.near("SavedAt", kept[1].SavedAt, now)
		want := []task.Checkpoint{
			{TaskID: id, Name: "a", Value: json.RawMessage(`"x"`), AttemptNo: 1, SavedAt: kept[0].SavedAt},
			{TaskID: id, Name: "b", Value: json.RawMessage(`{"at":2}`), AttemptNo: 1, SavedAt: kept[1].SavedAt},
		}
		e.equal("the checkpoints", kept, want)
		e.equal("the progress", e.task(id).Progress, &task.Progress{Current: 1})
		e.equal("StepCount", e.task(id).StepCount, 0)
		e.finish(dead(c))
		e.operate(retryOf(id))
		e.equal("the checkpoints after a retry", e.history(id).Checkpoints, want)
		again := e.b.take(id)
		e.record(checkpoint(again, "b", `3`))
		e.equal("who saved it", e.history(id).Checkpoints[1].AttemptNo, 2)
		e.finish(success(again))
		e.operate(deleteOf(id))
		e.equal("checkpoints of a deleted task", len(e.snap().Checkpoints), 0)
	}},
	{"a new value of a checkpoint sets the crashes before it back, the same one does not", func(e *env) {
		id := e.one()
		e.crash(id, 1)
		c := e.a.take(id)
		e.record(checkpoint(c, "cursor", `1`))
		e.equal("CrashCount", e.task(id).CrashCount, 0)
		e.finish(retry(c, 0))
		e.crash(id, 1)
		c = e.a.take(id)
		e.unchanged("the same value", func() { e.check(e.record(checkpoint(c, "cursor", `1`)).Same, "it is said to be new") })
		e.equal("CrashCount", e.task(id).CrashCount, 1)
	}},
	{"a checkpoint is refused without the lease, and kept when a cancel was asked", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.operate(cancelOf(id))
		e.record(checkpoint(c, "cursor", `1`))
		lost := c
		lost.Lease.Epoch++
		e.unchanged("a lost lease", func() {
			e.wantErr("Record", e.recordAll(checkpoint(lost, "cursor", `2`))[0].Err, store.ErrLeaseLost)
		})
		e.equal("its value", string(e.history(id).Checkpoints[0].Value), `1`)
	}},
	{"a checkpoint comes alone", func(e *env) {
		c := e.a.take(e.one())
		for _, rec := range []store.Record{checkpoint(c, "", `1`), checkpoint(c, "a", `{`), checkpoint(c, "a", `1`)} {
			if rec.Checkpoint.Name == "a" && string(rec.Checkpoint.Value) == `1` {
				rec.Step = step(c, "s", `1`).Step
			}
			e.unchanged("what no engine sends", func() {
				e.check(e.recordAll(rec)[0].Err != nil, "it was accepted: %+v", rec.Checkpoint)
			})
		}
	}},
}
