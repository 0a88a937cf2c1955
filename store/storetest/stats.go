package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// slotNow returns the statistics slot of the store's clock.
func (e *env) slotNow() time.Time { return e.now().Truncate(store.StatsSlot) }

// stat returns a statistics row: n attempts of a type, each with n ms of run time and one second of wait.
func stat(slot time.Time, worker, typ string, n int) store.StatRow {
	r := store.StatRow{StatKey: store.StatKey{Slot: slot, Worker: store.WorkerID(worker), Type: typ, Queue: task.DefaultQueue, Outcome: task.OutcomeSuccess}}
	for range n {
		r.Count++
		r.Run.Add(time.Duration(n) * time.Millisecond)
		r.Wait.Add(time.Second)
	}
	return r
}

// failed makes r a row of failures.
func failed(r store.StatRow, kind task.ErrorKind) store.StatRow {
	r.Outcome, r.ErrorKind = task.OutcomeFailure, kind
	return r
}

func (e *env) writeStats(rows ...store.StatRow) {
	e.Helper()
	err := e.s.WriteStats(e.Context(), e.ns, rows...)
	e.require(err == nil, "WriteStats: %v", err)
}

// stats reads all pages of a query.
func (e *env) stats(q store.StatsQuery) []store.StatRow {
	e.Helper()
	var all []store.StatRow
	for {
		page, err := e.s.ReadStats(e.Context(), e.ns, q)
		e.require(err == nil, "ReadStats: %v", err)
		for i := range page.Rows {
			r := &page.Rows[i]
			if q.Step == 0 {
				r.Slot = time.Time{}
			}
			if j := slices.IndexFunc(all, func(old store.StatRow) bool { return old.StatKey == r.StatKey }); j >= 0 {
				all[j].Add(r)
			} else {
				all = append(all, *r)
			}
		}
		if page.Next.IsZero() {
			slices.SortFunc(all, func(a, b store.StatRow) int { return a.Compare(&b.StatKey) })
			return all
		}
		e.require(page.Next.After(q.From), "a page of statistics from %v goes on at %v", q.From, page.Next)
		q.From = page.Next
	}
}

// counted returns the counts of rows and checks them against their histograms.
func (e *env) counted(rows []store.StatRow) (counts []int64) {
	e.Helper()
	for i := range rows {
		r := &rows[i]
		e.check(r.Run.Count() == r.Count && r.Wait.Count() == r.Count, "%+v has %d run times and %d waiting times", r.StatKey, r.Run.Count(), r.Wait.Count())
		counts = append(counts, r.Count)
	}
	return counts
}

// last returns a query for the given span up to now.
func (e *env) last(span, step time.Duration, by ...store.StatBy) store.StatsQuery {
	return store.StatsQuery{From: e.slotNow().Add(-span), To: e.slotNow().Add(store.StatsSlot), Step: step, By: by}
}

// mergeStats merges old rows and returns the result.
func (e *env) mergeStats(keep time.Duration) (sum store.StatsMerged) {
	e.Helper()
	for range 100 {
		got, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{Stats: &store.CollectStats{Keep: keep}})
		e.require(err == nil, "Collect of statistics: %v", err)
		e.check(got.Stats.Merged+got.Stats.Dropped <= store.StatsBite || e.h.Name == "memstore", "a bite moved %d rows", got.Stats.Merged+got.Stats.Dropped)
		sum.Merged += got.Stats.Merged
		sum.Dropped += got.Stats.Dropped
		if !got.More {
			return sum
		}
	}
	e.Fatalf("statistics are never merged")
	return sum
}

var everyField = []store.StatBy{store.ByType, store.ByQueue, store.ByOutcome, store.ByErrorKind, store.ByWorker}

var statCases = []testCase{
	{"rows come back as they were written, and replace what was", func(e *env) {
		slot := e.slotNow()
		a, b := stat(slot, "w1", alpha, 3), failed(stat(slot, "w1", alpha, 2), task.KindTimeout)
		e.writeStats(a, b)
		e.writeStats(a)
		a = stat(slot, "w1", alpha, 5)
		e.writeStats(a, stat(slot.Add(-store.StatsSlot), "w2", alpha, 1))
		e.equal("the rows", e.stats(e.last(0, store.StatsSlot, everyField...)), []store.StatRow{b, a})
		e.equal("the rows of another namespace", e.in(otherNamespace).stats(e.last(time.Hour, 0)), []store.StatRow(nil))
		e.writeStats()
	}},
	{"rows add up by step and field", func(e *env) {
		e.silence(e.slotNow().Truncate(time.Minute).Add(time.Minute).Sub(e.now()))
		minute := e.slotNow()
		e.silence(2 * time.Minute)
		other := failed(stat(minute.Add(time.Minute), "w2", beta, 4), task.KindHandler)
		other.Queue = "slow"
		e.writeStats(stat(minute, "w1", alpha, 1), stat(minute.Add(50*time.Second), "w1", alpha, 2), stat(minute.Add(50*time.Second), "w2", alpha, 8), other)
		q := store.StatsQuery{From: minute, To: minute.Add(2 * time.Minute), Step: time.Minute}
		with := func(change func(q *store.StatsQuery)) []int64 {
			c := q
			change(&c)
			return e.counted(e.stats(c))
		}
		e.equal("by minute", with(func(*store.StatsQuery) {}), []int64{11, 4})
		e.equal("by 10 s", with(func(q *store.StatsQuery) { q.Step = store.StatsSlot }), []int64{1, 10, 4})
		e.equal("by nothing", with(func(q *store.StatsQuery) { q.Step = 0 }), []int64{15})
		e.equal("by worker", with(func(q *store.StatsQuery) { q.Step, q.By = 0, []store.StatBy{store.ByWorker} }), []int64{3, 12})
		e.equal("by type", with(func(q *store.StatsQuery) { q.Step, q.By = 0, []store.StatBy{store.ByType} }), []int64{11, 4})
		e.equal("by outcome and kind", with(func(q *store.StatsQuery) { q.Step, q.By = 0, []store.StatBy{store.ByOutcome, store.ByErrorKind} }), []int64{4, 11})
		e.equal("of a type", with(func(q *store.StatsQuery) { q.Type = beta }), []int64{4})
		e.equal("of a queue", with(func(q *store.StatsQuery) { q.Queue = task.DefaultQueue }), []int64{11})
		e.equal("without the end", with(func(q *store.StatsQuery) { q.To = minute.Add(50 * time.Second) }), []int64{1})
		e.equal("with the beginning", with(func(q *store.StatsQuery) { q.From = minute.Add(50 * time.Second) }), []int64{10, 4})

		rows := e.stats(q)
		e.equal("the slots", []time.Time{rows[0].Slot, rows[1].Slot}, []time.Time{minute, minute.Add(time.Minute)})
		e.equal("the fields", rows[0].StatKey, store.StatKey{Slot: minute})
		var want store.StatRow
		for _, r := range []store.StatRow{stat(minute, "", "", 8), stat(minute, "", "", 1), stat(minute, "", "", 2)} {
			want.Add(&r)
		}
		e.equal("the histograms", [2]store.Histogram{rows[0].Run, rows[0].Wait}, [2]store.Histogram{want.Run, want.Wait})
	}},
	{"what cannot be written or asked for is refused", func(e *env) {
		k, now := e.s, e.slotNow()
		odd := stat(now.Add(time.Second), "w1", alpha, 1)
		negative := stat(now, "w1", alpha, 1)
		negative.Count = -1
		for name, rows := range map[string][]store.StatRow{"an odd slot": {odd}, "a negative count": {negative}, "too many": make([]store.StatRow, store.MaxStatsWrite+1)} {
			e.check(k.WriteStats(e.Context(), e.ns, rows...) != nil, "%s was written", name)
		}
		for name, q := range map[string]store.StatsQuery{
			"no span":         {},
			"a span backward": {From: now, To: now.Add(-time.Hour)},
			"an odd step":     {From: now, To: now.Add(time.Hour), Step: time.Second},
			"a negative step": {From: now, To: now.Add(time.Hour), Step: -time.Minute},
			"too many steps":  {From: now.Add(-100 * day), To: now, Step: store.StatsSlot},
			"another field":   {From: now, To: now.Add(time.Hour), By: []store.StatBy{"colour"}},
		} {
			_, err := k.ReadStats(e.Context(), e.ns, q)
			e.wantErr(name, err, store.ErrStatsQuery)
		}
	}},
	{"slots that may be merged already are not written", func(e *env) {
		e.silence(2 * time.Hour)
		slot := e.slotNow()
		e.writeStats(stat(slot.Add(-store.StatsLate-store.StatsSlot), "w1", alpha, 1), stat(slot.Add(-store.StatsLate+store.StatsSlot), "w1", alpha, 2))
		e.equal("what was written", e.counted(e.stats(e.last(2*time.Hour, 0))), []int64{2})
	}},
}

var statMergeCases = []testCase{
	{"after an hour slots are minutes, without workers", func(e *env) {
		e.silence(e.slotNow().Truncate(time.Minute).Add(time.Minute).Sub(e.now()))
		minute := e.slotNow()
		e.silence(2 * time.Minute)
		e.writeStats(stat(minute, "w1", alpha, 1), stat(minute.Add(50*time.Second), "w2", alpha, 2), stat(minute.Add(time.Minute), "w2", beta, 3))
		other := e.in(otherNamespace)
		other.writeStats(stat(minute, "w1", alpha, 7))
		before := e.stats(e.last(time.Hour, 0, store.ByType))
		e.equal("merged of the last hour", e.mergeStats(0), store.StatsMerged{})
		e.silence(time.Hour - time.Minute) // the first minute is an hour old
		e.equal("merged", e.mergeStats(0), store.StatsMerged{Merged: 2})
		e.equal("merged again", e.mergeStats(0), store.StatsMerged{})
		e.equal("the sums", e.stats(e.last(2*time.Hour, 0, store.ByType)), before)
		rows := e.stats(e.last(2*time.Hour, store.StatsSlot, store.ByWorker))
		e.equal("the rows", e.counted(rows), []int64{3, 3})
		e.equal("the minute", rows[0].StatKey, store.StatKey{Slot: minute})
		e.equal("what is no minute yet", rows[1].StatKey, store.StatKey{Slot: minute.Add(time.Minute), Worker: "w2"})
		e.equal("of another namespace", other.mergeStats(0), store.StatsMerged{Merged: 1})
	}},
	{"after a week minutes are hours, and in the end they go", func(e *env) {
		e.silence(e.slotNow().Truncate(time.Hour).Add(time.Hour).Sub(e.now()))
		hour := e.slotNow()
		for _, r := range []store.StatRow{stat(hour, "w1", alpha, 1), stat(hour.Add(40*time.Minute), "w2", alpha, 2), stat(hour.Add(80*time.Minute), "w2", alpha, 4)} {
			e.silence(r.Slot.Sub(e.now()))
			e.writeStats(r)
		}
		e.silence(2 * time.Hour)
		e.equal("merged into minutes", e.mergeStats(0), store.StatsMerged{Merged: 3})
		e.silence(8 * day)
		e.equal("merged into hours", e.mergeStats(0), store.StatsMerged{Merged: 3})
		rows := e.stats(e.last(9*day, time.Minute))
		e.equal("the hours", e.counted(rows), []int64{3, 4})
		e.equal("the first", rows[0].Slot, hour)
		e.equal("merged once more", e.mergeStats(30*day), store.StatsMerged{})
		e.equal("dropped at another age", e.mergeStats(8*day+3*time.Hour), store.StatsMerged{Dropped: 1})
		e.silence(store.StatsKept)
		e.equal("kept for ever", e.mergeStats(-1), store.StatsMerged{})
		e.equal("dropped", e.mergeStats(0), store.StatsMerged{Dropped: 1})
		e.equal("what is left", e.stats(e.last(200*day, 0)), []store.StatRow(nil))
	}},
	{"what is too old goes at once, whatever its slots", func(e *env) {
		e.writeStats(stat(e.slotNow(), "w1", alpha, 1))
		e.silence(time.Hour)
		e.equal("dropped", e.mergeStats(time.Minute), store.StatsMerged{Dropped: 1})
	}},
	{"several collectors add each row once", func(e *env) {
		e.silence(e.slotNow().Truncate(time.Minute).Add(time.Minute).Sub(e.now()))
		first := e.slotNow()
		var want int64
		for i := range 240 { // two hours and a half of them in batches
			e.silence(first.Add(time.Duration(i) * 20 * time.Second).Sub(e.now()))
			var rows []store.StatRow
			for w := range 5 {
				r := stat(e.slotNow(), fmt.Sprint("w", w), alpha, 1+w%2)
				want += r.Count
				rows = append(rows, r)
			}
			e.writeStats(rows...)
		}
		e.silence(2 * time.Hour)
		var fns []func()
		for _, s := range e.stores() {
			for range 2 {
				fns = append(fns, func() {
					for more := true; more; {
						got, err := s.Collect(e.Context(), e.ns, store.CollectRequest{Stats: &store.CollectStats{}})
						e.check(err == nil, "Collect of statistics: %v", err)
						more = err == nil && got.More
					}
				})
			}
		}
		e.together(fns...)
		e.equal("left to be merged", e.mergeStats(0), store.StatsMerged{})
		e.equal("the sum", e.counted(e.stats(e.last(5*time.Hour, 0))), []int64{want})
		e.equal("the minutes", len(e.stats(e.last(5*time.Hour, time.Minute))), 80)
	}},
}
