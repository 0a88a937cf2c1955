package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var idempotencyScenes = []scene{
	{"the existing task is returned in every state", existingInEveryState},
	{"duplicates inside one submission return the first", duplicatesInside},
	{"new and existing mix in the order submitted", mixedDispositions},
	{"the key is per task type", keyPerType},
	{"the key is per namespace", keyPerNamespace},
	{"deleting the task frees the key", deleteFreesKey},
	{"submitting again by id writes nothing", againByID},
	{"submitting again by id after the end writes nothing", againByIDLater},
	{"submitting a job again writes nothing", jobAgain},
	{"R-13 one of many concurrent submissions creates", concurrentKey},
}

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }

// existing submits a draft whose key is taken and expects the other task.
func (e *env) existing(n task.New, want task.ID) {
	e.Helper()
	e.unchanged("an enqueue with a taken key", func() {
		got := e.submit(store.Submission{Tasks: []task.New{n}})[0]
		if got.ID != want || got.Disposition != store.DispositionExisting {
			e.Errorf("Enqueue answered %v, want the existing %v", got, want)
		}
	})
}

func existingInEveryState(e *env) {
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
		if got := e.task(id); got.State != state {
			e.Fatalf("the task is %s, want %s", got.State, state)
		}
		e.existing(e.draft(once(name), input(`"other"`), queue("other"), priority(1)), id)
	}
}

func duplicatesInside(e *env) {
	drafts := e.drafts(3, once("same"))
	drafts[1].Input = json.RawMessage(`"second"`)
	got := e.submit(store.Submission{Tasks: drafts})
	e.equal("the answers", got, []store.Enqueued{
		{ID: drafts[0].ID, Disposition: store.DispositionCreated},
		{ID: drafts[0].ID, Disposition: store.DispositionExisting},
		{ID: drafts[0].ID, Disposition: store.DispositionExisting},
	})
	if n := len(e.snap().Tasks); n != 1 {
		e.Errorf("%d tasks are stored, want 1", n)
	}
	e.equal("the answers to the same call again", e.submit(store.Submission{Tasks: drafts}), got)
	e.a.gets([]task.ID{drafts[0].ID})
}

func mixedDispositions(e *env) {
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
	if n := len(e.snap().Tasks); n != 4 {
		e.Errorf("%d tasks are stored, want 4", n)
	}
}

func keyPerType(e *env) {
	e.one(once("k"), typed(alpha))
	id := e.one(once("k"), typed(beta))
	e.existing(e.draft(once("k"), typed(beta)), id)
}

func keyPerNamespace(e *env) {
	id := e.one(once("k"))
	other := e.in(otherNamespace)
	elsewhere := other.one(once("k"))
	e.existing(e.draft(once("k")), id)
	other.existing(e.draft(once("k")), elsewhere)
}

func deleteFreesKey(e *env) {
	id := e.one(once("k"))
	e.succeed(id)
	e.operate(store.DeleteTask{Audit: admin, Task: id})
	again := e.one(once("k"))
	e.existing(e.draft(once("k")), again)
}

func againByID(e *env) {
	sub := store.Submission{Tasks: []task.New{e.draft(once("k")), e.draft(after(time.Minute)), e.draft()}}
	first := e.submit(sub)
	e.unchanged("the same submission", func() {
		e.equal("the answers", e.submit(sub), first)
	})
}

func againByIDLater(e *env) {
	sub := store.Submission{Tasks: e.drafts(4)}
	first := e.submit(sub)
	e.succeed(first[0].ID)
	e.fail(first[1].ID)
	c := e.a.take(first[2].ID)
	e.unchanged("the same submission", func() {
		e.equal("the answers", e.submit(sub), first)
	})
	e.a.gets([]task.ID{first[3].ID})
	e.finish(success(c))
}

func jobAgain(e *env) {
	g := e.job("a", "b: a", "c: a b")
	e.succeed(g.id("a"))
	e.unchanged("the same job", func() {
		for i, q := range e.submit(g.sub) {
			if q.ID != g.sub.Tasks[i].ID || q.Disposition != store.DispositionCreated {
				e.Errorf("Enqueue answered %v for %v", q, g.sub.Tasks[i].ID)
			}
		}
	})
}

func concurrentKey(e *env) {
	const racers = 4
	other := e.second()
	for range e.h.Repeat / racers {
		name := once(e.newID().String())
		answers := make([]store.Enqueued, racers)
		var race []func()
		for i := range racers {
			s := e.s
			if i%2 == 1 {
				s = other
			}
			n := e.draft(name)
			race = append(race, func() {
				got, err := s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
				if err != nil {
					e.Errorf("Enqueue: %v", err)
					return
				}
				answers[i] = got[0]
			})
		}
		e.together(race...)
		created := 0
		for _, a := range answers {
			if a.Disposition == store.DispositionCreated {
				created++
			}
			if a.ID != answers[0].ID {
				e.Fatalf("one key stands for two tasks: %v", answers)
			}
		}
		if created != 1 {
			e.Fatalf("%d submissions of one key created a task: %v", created, answers)
		}
	}
}
