package storetest

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// expiring sets retention times for the fields of an input.
func expiring(list ...task.Expiry) opt { return func(n *task.New) { n.Expire = list } }

var aMinute = task.Expiry{Path: "card", After: time.Minute}

// expired returns the tasks with fields that a collector has to erase.
func (e *env) expired() (due []store.DueExpiry) {
	e.Helper()
	got, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{Expiries: true})
	e.require(err == nil, "Collect: %v", err)
	return got.Expired
}

func (e *env) expires(want ...task.ID) {
	e.Helper()
	e.equal("the tasks with fields that expired", mapped(e.expired(), func(d store.DueExpiry) task.ID { return d.Task }), want)
}

func (e *env) expireOf(id task.ID, input string, next time.Duration) store.ExpireInput {
	return store.ExpireInput{Audit: admin, Task: id, OldHash: task.PayloadHash(e.task(id).Input), Input: json.RawMessage(input), Next: next}
}

var expiryCases = []testCase{
	{"fields of an input expire in their time, once the task has ended", func(e *env) {
		id := e.one(expiring(task.Expiry{Path: "address", After: time.Hour}, aMinute))
		e.one() // has no such fields
		e.silence(59 * time.Second)
		e.expires()
		e.silence(time.Second)
		e.expires()
		e.succeed(id)
		e.silence(11 * time.Minute)
		due := e.expired()
		e.require(len(due) == 1 && due[0].Task == id, "named are %+v", due)
		e.near("since the input was stored", e.now().Add(-due[0].Elapsed), e.now().Add(-12*time.Minute))
		e.expires() // the erasure is in progress
		e.silence(11 * time.Minute)
		e.expires(id) // the erasure did not happen
		e.operate(e.expireOf(id, `{"card":1}`, time.Hour))
		e.equal("the input", string(e.task(id).Input), `{"card":1}`)
		audit := e.history(id).Audit
		e.equal("the audit", audit[len(audit)-1].Verb, "expire")
		e.silence(36 * time.Minute)
		e.expires()
		e.silence(time.Minute + time.Second)
		e.expires(id)
		e.operate(e.expireOf(id, `{}`, 0))
		e.silence(100 * time.Hour)
		e.expires()
	}},
	{"what may run again, or has another input, keeps it", func(e *env) {
		id := e.one(expiring(aMinute))
		e.commandRefused(e.expireOf(id, `{}`, 0), store.ErrState)
		c := e.a.take(id)
		e.commandRefused(e.expireOf(id, `{}`, 0), store.ErrState)
		e.finish(success(c))
		other := e.expireOf(id, `{}`, 0)
		other.OldHash = task.PayloadHash(json.RawMessage(`1`))
		e.commandRefused(other, store.ErrChanged)
		gone := e.expireOf(id, `{}`, 0)
		gone.Task = e.newID()
		e.commandRefused(gone, store.ErrNotFound)
		e.silence(time.Hour)
		e.expires(id)
		e.operate(store.ExpireInput{Audit: admin, Task: id}) // there was nothing to replace
		e.silence(time.Hour)
		e.expires()
	}},
	{"what was deleted or forgotten is not named", func(e *env) {
		ids := e.many(2, expiring(aMinute))
		for _, id := range ids {
			e.succeed(id)
		}
		e.operate(deleteOf(ids[0]))
		e.operate(store.ForgetTask{Audit: admin, Task: ids[1]})
		e.silence(time.Hour)
		e.expires()
	}},
	{"another input begins the time anew", func(e *env) {
		id := e.one(expiring(aMinute))
		c := e.a.take(id)
		e.finish(store.Finish{
			Lease: c.Lease, Outcome: task.OutcomeBlocked, Error: &task.Error{Kind: task.KindDecode, Message: "no"},
			Decision: &task.Decision{Kind: task.DecideBlock}, Waiting: task.WaitManual,
		})
		e.silence(50 * time.Second)
		e.operate(store.ReplaceInput{Audit: admin, Task: id, Input: json.RawMessage(`{"card":2}`), SchemaVersion: 1})
		e.succeed(id)
		e.silence(50 * time.Second)
		e.expires()
		e.silence(20 * time.Second)
		e.expires(id)
	}},
	{"the blob of an input goes when its fields expire", func(e *env) {
		b, without := e.blob("whole"), e.blob("without")
		id := e.one(valued(b), expiring(aMinute))
		e.succeed(id)
		e.silence(time.Hour)
		e.expires(id)
		e.operate(e.expireOf(id, string(without.Value()), 0))
		e.collects(b)
		e.equal("the state", e.blobState(without), task.BlobLive)
	}},
	{"a bite has a bound, and the next one goes on", func(e *env) {
		ids := e.many(store.ExpiryBite+1, expiring(aMinute))
		for _, id := range ids {
			e.operate(store.CancelTask{Audit: admin, Task: id})
		}
		e.silence(time.Hour)
		e.equal("named in a bite", len(e.expired()), store.ExpiryBite)
		e.equal("named in the next one", len(e.expired()), 1)
	}},
}
