package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var scheduleCases = []testCase{
	{"a schedule is created once, changed at its revision, and deleted", func(e *env) {
		look := e.now().Add(time.Hour).Truncate(time.Second)
		made := newSchedule("nightly", look)
		made.Verb, made.Audit = "put_schedule", admin
		e.operate(made)
		s := e.schedule("nightly")
		e.equal("its documents", []string{string(s.Rule), string(s.Work), string(s.State)}, []string{`{"cron":"0 3 * * *"}`, `{"tasks":[]}`, `{}`})
		e.equal("its look", s.LookAt, look)
		e.check(s.Revision > 0, "it has no revision")
		e.near("its creation", s.CreatedAt, e.now())
		e.commandRefused(made, store.ErrChanged)

		write := store.WriteSchedule{Name: "nightly", Revision: s.Revision, State: json.RawMessage(`{"n":1}`)}
		e.operate(write)
		e.commandRefused(write, store.ErrChanged)
		again := e.schedule("nightly")
		e.equal("the changed document", string(again.State), `{"n":1}`)
		e.equal("the others", []string{string(again.Rule), string(again.Work)}, []string{string(s.Rule), string(s.Work)})
		e.equal("no look", again.LookAt, time.Time{})
		e.equal("of another namespace", len(e.in(otherNamespace).schedules(store.ScheduleFilter{}).Schedules), 0)

		e.operate(store.WriteSchedule{Name: "nightly", Revision: again.Revision, Delete: true, Verb: "delete_schedule", Audit: admin})
		e.equal("after the deletion", len(e.schedules(store.ScheduleFilter{Name: "nightly"}).Schedules), 0)
		e.commandRefused(store.WriteSchedule{Name: "nightly", Revision: again.Revision, State: json.RawMessage(`{}`)}, store.ErrNotFound)
		e.pass(time.Second)
		e.operate(newSchedule("nightly", look))
		e.commandRefused(store.WriteSchedule{Name: "nightly", Revision: s.Revision, State: json.RawMessage(`{}`)}, store.ErrChanged)
		var verbs []string
		for _, a := range e.snap().Audit {
			verbs = append(verbs, a.Verb+" "+a.Target)
		}
		e.equal("the audit", verbs, []string{"put_schedule schedule/nightly", "delete_schedule schedule/nightly"})
	}},
	{"a fire enqueues its run and moves the schedule on in one transaction, not early", func(e *env) {
		due := e.now().Add(10 * time.Second).Truncate(time.Second)
		e.operate(newSchedule("s", due))
		page := e.schedules(store.ScheduleFilter{Due: true})
		e.equal("due early", len(page.Schedules), 0)
		e.check(page.Next > 8*time.Second && page.Next <= 10*time.Second, "the next look is in %s", page.Next)

		n := e.draft()
		next := due.Add(time.Minute)
		fire := store.WriteSchedule{Name: "s", Revision: e.schedule("s").Revision, NotBefore: due, LookAt: next, State: json.RawMessage(`{"next":1}`), Fires: []store.Firing{fired(due, n)}}
		e.commandRefused(fire, store.ErrState)
		e.equal("tasks of a refused fire", len(e.snap().Tasks), 0)
		e.pass(11 * time.Second)
		page = e.schedules(store.ScheduleFilter{Due: true})
		e.equal("due", []string{page.Schedules[0].Name}, []string{"s"})
		e.equal("the next of none", page.Next, time.Duration(-1))
		got := e.operate(fire)
		e.equal("the run", got.Runs, []store.Enqueued{{ID: n.ID, Disposition: store.DispositionCreated}})
		e.commandRefused(fire, store.ErrChanged)
		e.a.gets([]task.ID{n.ID})
		rec := e.fires("s")
		e.equal("the records", len(rec), 1)
		e.equal("the recorded run", rec[0].Task, n.ID)
		e.equal("its time", rec[0].At, due)
		e.near("it was recorded", rec[0].RecordedAt, e.now())
		e.equal("the next look", e.schedule("s").LookAt, next)
	}},
	{"a time fires once, whatever the revision, and a queued one may fire later", func(e *env) {
		at := e.now().Truncate(time.Second)
		e.operate(newSchedule("s", at))
		first, second := e.draft(), e.draft()
		e.writeSchedule("s", fired(at, first))
		before := e.schedule("s")
		e.commandRefused(store.WriteSchedule{Name: "s", Revision: before.Revision, State: json.RawMessage(`{"x":1}`), Fires: []store.Firing{
			fired(at.Add(-time.Minute), e.draft()), fired(at, second),
		}}, store.ErrChanged)
		e.equal("the row of a refused fire", e.schedule("s"), before)
		e.equal("tasks", len(e.snap().Tasks), 1)

		later := at.Add(time.Minute)
		e.writeSchedule("s", store.Firing{ScheduleFire: store.ScheduleFire{At: later, Until: later, Count: 1, Kind: store.FireQueued}})
		e.writeSchedule("s", fired(later, second))
		rec := e.fires("s")
		e.equal("the records, newest first", []any{rec[0].Kind, rec[0].Task, rec[1].Task}, []any{store.FireFired, second.ID, first.ID})
	}},
	{"a run whose key is in use is the existing one", func(e *env) {
		old := e.submit(store.Submission{Tasks: []task.New{e.draft(once("schedule/s/1"))}})[0].ID
		at := e.now().Truncate(time.Second)
		e.operate(newSchedule("s", at))
		e.writeSchedule("s", fired(at, e.draft(once("schedule/s/1"))))
		e.equal("the run", e.fires("s")[0].Task, old)

		job := e.newID()
		a, b := e.draft(), e.draft()
		run := store.Firing{ScheduleFire: store.ScheduleFire{At: at.Add(time.Second), Until: at.Add(time.Second), Count: 1, Kind: store.FireFired}, Run: &store.Submission{Job: &task.NewJob{ID: job, Name: "j", IdempotencyKey: "k"}, Tasks: []task.New{a, b}}}
		e.writeSchedule("s", run)
		e.equal("the run of a job", e.fires("s")[0].Job, job)
		again := run
		again.At, again.Until = at.Add(2*time.Second), at.Add(2*time.Second)
		again.Run = &store.Submission{Job: &task.NewJob{ID: e.newID(), Name: "j", IdempotencyKey: "k"}, Tasks: []task.New{e.draft()}}
		e.writeSchedule("s", again)
		e.equal("the existing job", e.fires("s")[0].Job, job)
		e.equal("tasks", len(e.snap().Tasks), 3)
	}},
	{"records are read in a span, skipped ones with their reason, and pruned", func(e *env) {
		at := e.now().Truncate(time.Second)
		e.operate(newSchedule("s", at))
		e.writeSchedule("s", store.Firing{ScheduleFire: store.ScheduleFire{At: at, Until: at.Add(time.Hour), Count: 61, Kind: store.FireSkipped, Reason: "missed"}})
		for i := range 3 {
			e.writeSchedule("s", fired(at.Add(time.Duration(2+i)*time.Hour), e.draft()))
		}
		rec := e.fires("s")
		e.equal("the records", len(rec), 4)
		e.equal("the skipped ones", []any{rec[3].Count, rec[3].Reason, rec[3].Until}, []any{61, "missed", at.Add(time.Hour)})
		page := e.schedules(store.ScheduleFilter{Name: "s", Fires: true, From: at.Add(2 * time.Hour), To: at.Add(4 * time.Hour)})
		e.equal("in a span", len(page.Fires), 2)
		e.equal("with a limit", len(e.schedules(store.ScheduleFilter{Name: "s", Fires: true, Limit: 1}).Fires), 1)
		e.operate(store.WriteSchedule{Name: "s", Revision: e.schedule("s").Revision, Prune: at.Add(3 * time.Hour)})
		e.equal("after pruning", len(e.fires("s")), 2)
		e.equal("runs stay", len(e.snap().Tasks), 3)
	}},
	{"schedules are listed by name, in pages", func(e *env) {
		for i := range 5 {
			e.operate(newSchedule(fmt.Sprint("s", i), time.Time{}))
		}
		var names []string
		for after := ""; ; {
			page := e.schedules(store.ScheduleFilter{After: after, Limit: 2})
			if len(page.Schedules) == 0 {
				break
			}
			for i := range page.Schedules {
				names = append(names, page.Schedules[i].Name)
			}
			after = names[len(names)-1]
		}
		e.equal("the names", names, []string{"s0", "s1", "s2", "s3", "s4"})
		e.equal("none is due", len(e.schedules(store.ScheduleFilter{Due: true}).Schedules), 0)
	}},
	{"malformed writes of a schedule are refused for good", func(e *env) {
		at := e.now().Truncate(time.Second)
		good := newSchedule("s", at)
		for _, change := range []func(w *store.WriteSchedule){
			func(w *store.WriteSchedule) { w.Name = "" },
			func(w *store.WriteSchedule) { w.Name = string(make([]byte, 600)) },
			func(w *store.WriteSchedule) { w.Work = nil },
			func(w *store.WriteSchedule) { w.Delete = true },
			func(w *store.WriteSchedule) { w.Fires = []store.Firing{fired(at, e.draft()), fired(at, e.draft())} },
			func(w *store.WriteSchedule) {
				w.Fires = []store.Firing{{ScheduleFire: store.ScheduleFire{At: at, Until: at, Count: 1, Kind: store.FireFired}}}
			},
			func(w *store.WriteSchedule) {
				w.Fires = []store.Firing{fired(at, e.draft(typed(string(make([]byte, 600)))))}
			},
		} {
			bad := good
			change(&bad)
			e.commandRefused(bad, store.ErrRefused)
		}
		e.equal("schedules", len(e.schedules(store.ScheduleFilter{}).Schedules), 0)
	}},
}

func newSchedule(name string, look time.Time) store.WriteSchedule {
	return store.WriteSchedule{
		Name: name, LookAt: look,
		Rule: json.RawMessage(`{"cron":"0 3 * * *"}`), Work: json.RawMessage(`{"tasks":[]}`), State: json.RawMessage(`{}`),
	}
}

func fired(at time.Time, n task.New) store.Firing {
	return store.Firing{ScheduleFire: store.ScheduleFire{At: at, Until: at, Count: 1, Kind: store.FireFired}, Run: &store.Submission{Tasks: []task.New{n}}}
}

// writeSchedule writes fires at the current revision.
func (e *env) writeSchedule(name string, fires ...store.Firing) {
	e.Helper()
	e.operate(store.WriteSchedule{Name: name, Revision: e.schedule(name).Revision, Fires: fires})
}

func (e *env) schedules(f store.ScheduleFilter) store.SchedulePage {
	e.Helper()
	page, err := e.s.Schedules(e.Context(), e.ns, f)
	e.require(err == nil, "Schedules: %v", err)
	return page
}

func (e *env) schedule(name string) store.Schedule {
	e.Helper()
	page := e.schedules(store.ScheduleFilter{Name: name})
	e.require(len(page.Schedules) == 1, "schedule %s: %d rows", name, len(page.Schedules))
	return page.Schedules[0]
}

func (e *env) fires(name string) []store.ScheduleFire {
	e.Helper()
	return e.schedules(store.ScheduleFilter{Name: name, Fires: true}).Fires
}
