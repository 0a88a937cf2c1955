package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// eventRows returns rows with these sequence numbers; every third is a log line.
func eventRows(e *env, seqs ...int64) []store.EventRow {
	var rows []store.EventRow
	for _, seq := range seqs {
		row := store.EventRow{Seq: seq, Type: "step.started", At: e.now().Truncate(time.Microsecond), Body: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq))}
		if seq%3 == 0 {
			row.Log, row.Type = true, "log.written"
		}
		rows = append(rows, row)
	}
	return rows
}

func (e *env) events(id task.ID, after int64, limit int) []store.EventRow {
	rows, err := e.s.Events(e.Context(), e.ns, id, after, limit)
	e.require(err == nil, "Events: %v", err)
	return rows
}

func seqs(rows []store.EventRow) (list []int64) {
	for i := range rows {
		list = append(list, rows[i].Seq)
	}
	return list
}

var eventCases = []testCase{
	{"events come with records and with the end, once", func(e *env) {
		id, other := e.one(), e.one()
		c := e.a.take(id)
		all := eventRows(e, 1, 2, 3, 4, 5, 6, 7, 8)
		rec := step(c, "s", `1`)
		rec.Events = all[:2]
		e.record(rec)
		e.record(rec) // the reply was lost
		e.record(store.Record{Lease: c.Lease, Events: all[2:4]})
		cp := checkpoint(c, "c", `1`)
		cp.Events = all[4:5]
		e.record(cp)
		failed := try(c, "t", 1)
		failed.Events = all[5:6]
		e.record(failed)
		fin := success(c)
		fin.Events = all[6:]
		e.finish(fin)
		e.finish(fin)
		e.equal("the events", e.events(id, 0, 0), all)
		e.equal("a page", seqs(e.events(id, 2, 4)), []int64{3, 4, 5, 6})
		e.equal("events of another task", len(e.events(other, 0, 0)), 0)
		e.equal("events in another namespace", len(e.in("elsewhere").events(id, 0, 0)), 0)
	}},
	{"events of what is refused are not stored", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "s", `1`))
		conflict := step(c, "s", `2`)
		conflict.Events = eventRows(e, 1)
		e.wantErr("Record", e.recordAll(conflict)[0].Err, store.ErrStepConflict)
		tooMany := store.Record{Lease: c.Lease, Events: make([]store.EventRow, store.MaxEvents+1)}
		e.check(e.recordAll(tooMany)[0].Err != nil, "%d rows are accepted", len(tooMany.Events))
		e.expire(c)
		b := e.b.take(id)
		e.wantErr("Record", e.recordAll(store.Record{Lease: c.Lease, Events: eventRows(e, 2)})[0].Err, store.ErrLeaseLost)
		late := success(c)
		late.Events = eventRows(e, 3)
		_, _ = e.s.Finish(e.Context(), e.ns, late)
		e.equal("the events", len(e.events(id, 0, 0)), 0)
		e.finish(success(b))
	}},
	{"the events of a deleted task go, however many there are", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		for from := int64(0); from < 5; from++ {
			var list []int64
			for n := int64(1); n <= 700; n++ {
				list = append(list, from*700+n)
			}
			e.record(store.Record{Lease: c.Lease, Events: eventRows(e, list...)})
		}
		e.equal("a page", len(e.events(id, 0, 5000)), store.MaxEvents)
		e.finish(success(c))
		e.operate(deleteOf(id))
		e.finishChores()
		e.equal("the events", len(e.events(id, 0, 0)), 0)
		e.equal("chores", len(e.snap().Chores), 0)
	}},
}
