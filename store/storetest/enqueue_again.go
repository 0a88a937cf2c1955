package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var enqueueAgainCases = []testCase{
	{"a taken idempotency key returns the existing task in every state", func(e *env) {
		states := map[task.State]func(task.ID){
			task.Pending:   func(id task.ID) { e.finish(retry(e.a.take(id), time.Minute)) },
			task.Ready:     func(task.ID) {},
			task.Running:   func(id task.ID) { e.a.take(id) },
			task.Succeeded: func(id task.ID) { e.succeed(id) },
			task.Failed:    func(id task.ID) { e.fail(id) },
			task.Cancelled: func(id task.ID) { e.operate(cancelOf(id)) },
			task.Blocked:   func(id task.ID) { e.blockTask(id) },
		}
		for state, reach := range states {
			name := "key-" + string(state)
			id := e.one(once(name))
			reach(id)
			e.equal("the state", e.task(id).State, state)
			e.existing(e.draft(once(name), input(`"other"`), queue("other"), priority(1)), id)
		}
	}},
	{"duplicates inside one submission return the first", func(e *env) {
		drafts := e.drafts(3, once("same"))
		drafts[1].Input = json.RawMessage(`"second"`)
		got := e.submit(store.Submission{Tasks: drafts})
		e.equal("the answers", got, []store.Enqueued{
			{ID: drafts[0].ID, Disposition: store.DispositionCreated},
			{ID: drafts[0].ID, Disposition: store.DispositionExisting},
			{ID: drafts[0].ID, Disposition: store.DispositionExisting},
		})
		e.equal("the tasks stored", len(e.snap().Tasks), 1)
		e.equal("the answers to the same call again", e.submit(store.Submission{Tasks: drafts}), got)
		e.a.gets([]task.ID{drafts[0].ID})
	}},
	{"new and existing tasks mix in the order submitted", func(e *env) {
		old := e.one(once("old"))
		drafts := []task.New{e.draft(), e.draft(once("old")), e.draft(once("new")), e.draft(once("old")), e.draft()}
		got := e.submit(store.Submission{Tasks: drafts})
		want := []store.Enqueued{
			{ID: drafts[0].ID, Disposition: store.DispositionCreated},
			{ID: old, Disposition: store.DispositionExisting},
			{ID: drafts[2].ID, Disposition: store.DispositionCreated},
			{ID: old, Disposition: store.DispositionExisting},
			{ID: drafts[4].ID, Disposition: store.DispositionCreated},
		}
		e.equal("the answers", got, want)
		e.equal("the tasks stored", len(e.snap().Tasks), 4)
	}},
	{"an idempotency key belongs to one task type", func(e *env) {
		e.one(once("k"), typed(alpha))
		id := e.one(once("k"), typed(beta))
		e.existing(e.draft(once("k"), typed(beta)), id)
	}},
	{"the same submission again writes nothing, even after its tasks ended", func(e *env) {
		sub := store.Submission{Tasks: append(e.drafts(4), e.draft(once("k")), e.draft(after(time.Minute)))}
		first := e.submit(sub)
		again := func() {
			e.Helper()
			e.unchanged("the same submission", func() { e.equal("the answers", e.submit(sub), first) })
		}
		again()
		e.succeed(first[0].ID)
		e.fail(first[1].ID)
		c := e.a.take(first[2].ID)
		again()
		e.a.gets([]task.ID{first[3].ID, first[4].ID})
		e.finish(success(c))
	}},
	{"the same job again writes nothing", func(e *env) {
		g := e.job("a", "b: a", "c: a b")
		e.succeed(g.id("a"))
		e.unchanged("the same job", func() {
			for i, q := range e.submit(g.sub) {
				e.check(q.ID == g.sub.Tasks[i].ID && q.Disposition == store.DispositionCreated, "Enqueue answered %v for %v", q, g.sub.Tasks[i].ID)
			}
		})
	}},
}

// existing submits a draft whose key is taken and expects the other task.
func (e *env) existing(n task.New, want task.ID) {
	e.Helper()
	e.unchanged("an enqueue with a taken key", func() {
		got := e.submit(store.Submission{Tasks: []task.New{n}})[0]
		e.check(got.ID == want && got.Disposition == store.DispositionExisting, "Enqueue answered %v, want the existing %v", got, want)
	})
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }
