package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishManyCases = []testCase{
	{"a batch of many writes what the same ones write one by one", func(e *env) {
		e.twice(func(e *env, single bool) []string {
			rs, fs := work(e.a.gets(e.many(many)))
			return append(e.recordEach(single, rs), e.finishEachOrAll(single, fs)...)
		})
	}},
	{"one odd element of many ends as it does by itself", func(e *env) {
		e.twice(func(e *env, single bool) (answers []string) {
			for _, l := range losers {
				cs := e.a.takeAll(e.many(many / 2)...)
				rs, fs := work(cs)
				l.make(e, cs[5], &rs[5], &fs[5])
				answers = append(answers, l.name)
				answers = append(answers, e.recordEach(single, rs)...)
				answers = append(answers, e.finishEachOrAll(single, fs)...)
			}
			return answers
		})
	}},
	{"an element may come twice in a batch of many", func(e *env) {
		e.twice(func(e *env, single bool) []string {
			rs, fs := work(e.a.gets(e.many(many)))
			rs, fs = append(rs, rs[1], rs[many-1]), append(fs, fs[1], fs[many-1])
			return append(e.recordEach(single, rs), e.finishEachOrAll(single, fs)...)
		})
	}},
	{"many leases of an earlier epoch are refused", func(e *env) {
		// An old epoch with the current lease ID is refused.
		e.finishAll(finishes(e.a.gets(e.many(many)), func(c store.Claimed) store.Finish { return retry(c, 0) })...)
		rs, fs := work(e.b.claim().Tasks)
		for i := range rs {
			rs[i].Lease.Epoch, fs[i].Lease.Epoch = 1, 1
		}
		e.unchanged("what forged leases show", func() {
			for _, answers := range append(e.recordEach(false, rs), e.finishEachOrAll(false, fs)...) {
				e.require(strings.Contains(answers, store.ErrLeaseLost.Error()), "a forged lease got %q", answers)
			}
		})
	}},
	{"many second attempts keep what the first left", func(e *env) {
		e.twice(func(e *env, single bool) []string {
			cs := e.a.gets(e.many(many))
			rs, fs := work(cs)
			answers := e.recordEach(single, rs)
			for i := range fs {
				fs[i] = retry(cs[i], 0)
			}
			answers = append(answers, e.finishEachOrAll(single, fs)...)
			cs = e.b.claim().Tasks
			for _, c := range cs {
				answers = append(answers, fmt.Sprint(c.Task.AttemptNo, c.Lease.Epoch, len(c.Steps)))
			}
			rs, fs = work(cs)
			for i := range rs {
				rs[i].Step.Name = "u"
			}
			answers = append(answers, e.recordEach(single, rs)...)
			return append(answers, e.finishEachOrAll(single, fs)...)
		})
	}},
	{"a batch of several claims and types writes what single ones write", func(e *env) {
		e.twice(func(e *env, single bool) []string {
			var rs []store.Record
			var fs []store.Finish
			for i := range 4 {
				opts := [][]opt{{}, {typed(beta)}, {labels("k", "v")}, {key("k", many)}}[i]
				ids := e.many(many/2, opts...)
				r, f := work([]*worker{e.a, e.b}[i%2].takeAll(ids...))
				rs, fs = append(rs, r...), append(fs, f...)
			}
			// The claims are interleaved.
			half := len(rs) / 4
			mixed, ends := make([]store.Record, 0, len(rs)), make([]store.Finish, 0, len(fs))
			for i := range half {
				for j := range 4 {
					mixed, ends = append(mixed, rs[j*half+i]), append(ends, fs[j*half+i])
				}
			}
			return append(e.recordEach(single, mixed), e.finishEachOrAll(single, ends)...)
		})
	}},
	{"ends of all kinds in one batch are those of single ones", func(e *env) {
		e.twice(func(e *env, single bool) (answers []string) {
			var nodes []string
			for i := range many {
				nodes = append(nodes, fmt.Sprintf("n%d", i))
			}
			g := e.job(append(nodes, "last: n0 n1", "both: *n0 *n1 *n2 *n3", "alarm: !n2 !n3 !n4")...)
			ids := slices.Concat(g.all(nodes...), e.many(many), e.many(many, typed(beta)))
			for round := range 3 {
				var fs []store.Finish
				for _, c := range e.a.claim(only(ids...), limit(len(ids))).Tasks {
					i := (slices.Index(ids, c.Task.ID) + 5*round) % many
					f := endOfKind(e, c, i)
					f.CodeVersion, f.Handler, f.RouteReason = 1+i%3, fmt.Sprint("h", i%2), "the test says so"
					fs = append(fs, f)
				}
				answers = append(answers, fmt.Sprint(len(fs)))
				odd := fs[7] // the same lease again, with another end
				odd.Outcome, odd.Error, odd.Decision = task.OutcomeCancelled, &task.Error{Kind: task.KindCancelled, Message: "odd"}, nil
				lost := fs[8]
				lost.Lease.ID[3] ^= 1
				early := fs[9]
				early.Lease.Epoch--
				fs = append(fs, fs[3], odd, lost, early)
				fs = slices.Insert(fs, 4, lost, early)
				answers = append(answers, e.finishEachOrAll(single, fs)...)
			}
			return answers
		})
	}},
	{"the last progress is stored with the end", func(e *env) {
		for _, n := range []int{1, 10} {
			ids := e.many(n)
			var fins []store.Finish
			for i, c := range e.a.takeAll(ids...) {
				f := success(c)
				f.Progress = &task.Progress{Current: float64(i), Total: 10}
				fins = append(fins, f)
			}
			e.finishOK(fins...)
			for i, t := range e.tasks(ids...) {
				e.equal("the progress", t.Progress, &task.Progress{Current: float64(i), Total: 10})
			}
		}
	}},
	{"many attempts that another handle finishes name their worker", func(e *env) {
		ids := e.many(10)
		fins := finishes(e.a.takeAll(ids...), success)
		_, err := e.second().Finish(e.Context(), e.ns, fins...)
		e.require(err == nil, "Finish through another handle: %v", err)
		for _, id := range ids {
			a := e.lastAttempt(id)
			e.equal("the worker", a.Worker, e.a.name)
			e.near("the start", a.StartedAt, e.now())
		}
	}},
}

// endOfKind returns a finish of the i-th kind.
func endOfKind(e *env, c store.Claimed, i int) store.Finish {
	f := success(c)
	switch i % 13 {
	case 1:
		f = retry(c, 0)
	case 2:
		f = retry(c, time.Minute)
	case 3:
		f = dead(c)
	case 4:
		f = block(c)
	case 5:
		f = suspend(c, e.now().Add(time.Hour))
	case 6:
		f = suspend(c, e.now())
	case 7:
		f = released(c)
	case 8:
		f = internalError(c, 0)
	case 9:
		f = failure(c, task.DecideSucceed, 0)
		f.Output = json.RawMessage(`"instead"`)
	case 10:
		f.Output = fmt.Appendf(nil, "%q", strings.Repeat("o", 9000))
	case 11:
		f = decompose(c, task.JoinRerun, e.drafts(2)...)
	case 12:
		f = cancelled(c)
	}
	if i%4 == 0 {
		f.Progress = &task.Progress{Current: float64(i), Total: many}
	}
	if i%5 == 0 {
		f.StepsRun, f.Notes = []string{"s"}, map[string]string{"note": fmt.Sprint(i)}
	}
	return f
}

// many is probably more than one statement of any store takes, and a multiple of no batch size.
const many = 77

// twice runs the same calls in two namespaces, once in batches and once one by one. It compares every row and every
// answer.
func (e *env) twice(run func(e *env, single bool) []string) {
	e.Helper()
	began := e.now()
	other := e.sameIDs()
	batched := run(e, false)
	e.require(e.now().Equal(began), "the calls take time, so that instants cannot be compared")
	e.equal("the answers one by one", run(other, true), batched)
	a, b := e.snap(), other.snap()
	a.Generation, b.Generation = "", ""
	for _, s := range []*store.Snapshot{a, b} {
		for i := range s.Audit {
			s.Audit[i].Target = ""
		}
	}
	e.sameJSON("what is stored after a batch", a, b)
}

// recordEach writes all records in one batch, or one by one, and returns the answers.
func (e *env) recordEach(single bool, rs []store.Record) (answers []string) {
	e.Helper()
	for _, batch := range batches(single, rs) {
		got, err := e.s.Record(e.Context(), e.ns, batch...)
		e.require(err == nil && len(got) == len(batch), "Record of %d answered %d, %v", len(batch), len(got), err)
		for _, r := range got {
			answers = append(answers, fmt.Sprintf("%s %s %v", r.Step.Name, r.Step.Value, sentinelOf(r.Err)))
		}
	}
	return answers
}

// finishEachOrAll is recordEach for finishes.
func (e *env) finishEachOrAll(single bool, fs []store.Finish) (answers []string) {
	e.Helper()
	for _, batch := range batches(single, fs) {
		for _, r := range e.finishAll(batch...) {
			answers = append(answers, fmt.Sprintf("%s %s %v", r.State, r.Waiting, sentinelOf(r.Err)))
		}
	}
	return answers
}

// batches splits all into the arguments of each call.
func batches[E any](single bool, all []E) [][]E {
	if single {
		return each(all)
	}
	return [][]E{all}
}

// sentinelOf returns the sentinel of an error.
func sentinelOf(err error) error {
	for _, s := range []error{store.ErrLeaseLost, store.ErrConflict, store.ErrStepConflict, store.ErrCancelRequested} {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// work returns a record and a valid finish for every claimed task, all different.
func work(cs []store.Claimed) (rs []store.Record, fs []store.Finish) {
	for i, c := range cs {
		r := step(c, "s", fmt.Sprint(i))
		r.Elapsed = time.Duration(i) * time.Millisecond
		f := success(c)
		f.Output = fmt.Appendf(nil, `"output %d"`, i)
		f.CodeVersion = 1 + i%3
		if i%2 == 0 {
			f.StepsRun = []string{"s", fmt.Sprint("t", i)}
		}
		rs, fs = append(rs, r), append(fs, f)
	}
	return rs, fs
}

// losers are changes that invalidate one of many tasks before its work is recorded.
var losers = []struct {
	name string
	make func(e *env, c store.Claimed, r *store.Record, f *store.Finish)
}{
	{"taken by force", func(e *env, c store.Claimed, _ *store.Record, _ *store.Finish) { e.operate(forceOf(c.Task.ID)) }},
	{"to be cancelled", func(e *env, c store.Claimed, _ *store.Record, _ *store.Finish) { e.operate(cancelOf(c.Task.ID)) }},
	{"recorded with another value", func(e *env, c store.Claimed, _ *store.Record, _ *store.Finish) { e.record(step(c, "s", `"other"`)) }},
	{"recorded before", func(e *env, _ store.Claimed, r *store.Record, _ *store.Finish) { e.record(*r) }},
	{"ended before", func(e *env, _ store.Claimed, _ *store.Record, f *store.Finish) { e.finish(*f) }},
	{"ended otherwise", func(e *env, c store.Claimed, _ *store.Record, _ *store.Finish) { e.finish(block(c)) }},
	{"of a later epoch", func(_ *env, _ store.Claimed, r *store.Record, f *store.Finish) { r.Lease.Epoch, f.Lease.Epoch = 2, 2 }},
	{"of another lease", func(_ *env, _ store.Claimed, r *store.Record, f *store.Finish) {
		r.Lease.ID[3] ^= 1
		f.Lease.ID[3] ^= 1
	}},
	{"of an unknown task", func(_ *env, _ store.Claimed, r *store.Record, f *store.Finish) {
		r.Lease.Task[3] ^= 1
		f.Lease.Task[3] ^= 1
	}},
	{"with progress", func(_ *env, _ store.Claimed, r *store.Record, f *store.Finish) {
		r.Progress, f.Progress = &task.Progress{Current: 1, Total: 2}, &task.Progress{Current: 2, Total: 2}
	}},
	{"with big values", func(_ *env, _ store.Claimed, r *store.Record, f *store.Finish) {
		r.Step.Value = fmt.Appendf(nil, "%q", strings.Repeat("v", 9000))
		f.Output = fmt.Appendf(nil, "%q", strings.Repeat("o", 9000))
	}},
	{"without an output", func(_ *env, _ store.Claimed, _ *store.Record, f *store.Finish) { f.Output = nil }},
}
