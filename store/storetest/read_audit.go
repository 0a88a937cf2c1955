package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
)

var readAuditCases = []testCase{
	{"the audit says who did what to what, when and why, newest first", func(e *env) {
		e.equal("the audit of nothing", len(e.audit(store.AuditFilter{})), 0)
		id, at := e.one(), e.now()
		e.operate(pauseTaskOf(id))
		e.pass(time.Second)
		e.operate(store.PauseQueue{Audit: store.Audit{By: "bob"}, Queue: "x"})
		got := e.audit(store.AuditFilter{})
		e.require(len(got) == 2, "the audit is %+v, want two entries", got)
		e.near("the first entry", got[1].At, at)
		e.near("the second entry", got[0].At, e.now())
		e.check(got[0].ID > got[1].ID && got[1].ID > 0, "the ids are %d and %d", got[0].ID, got[1].ID)
		for i := range got {
			got[i].ID, got[i].At = 0, time.Time{}
		}
		e.equal("the audit", got, []store.AuditEntry{
			{Actor: "bob", Verb: "pause", Target: "x"}, {Actor: admin.By, Verb: "pause_task", Target: id.String(), Reason: admin.Reason},
		})
		e.equal("of another namespace", len(e.in(otherNamespace).audit(store.AuditFilter{})), 0)
	}},
	{"the audit is filtered by target, actor and verb, all of which must hold", func(e *env) {
		for i, by := range []string{"ann", "bob", "ann"} {
			q := fmt.Sprint("q", i%2)
			e.operate(store.PauseQueue{Audit: store.Audit{By: by}, Queue: q})
			e.operate(store.ResumeQueue{Audit: store.Audit{By: "eve"}, Queue: q})
		}
		for _, tt := range []struct {
			f    store.AuditFilter
			want int
		}{
			{store.AuditFilter{Target: "q0"}, 4},
			{store.AuditFilter{Target: "q1"}, 2},
			{store.AuditFilter{Actor: "ann"}, 2},
			{store.AuditFilter{Verb: "resume"}, 3},
			{store.AuditFilter{Target: "q0", Actor: "ann", Verb: "pause"}, 2},
			{store.AuditFilter{Target: "q1", Actor: "ann"}, 0},
			{store.AuditFilter{Target: "q"}, 0},
		} {
			got := e.audit(tt.f)
			e.check(len(got) == tt.want, "%+v: %+v, want %d", tt.f, got, tt.want)
			e.check(!slices.ContainsFunc(got, func(a store.AuditEntry) bool { return !tt.f.Selects(&a) }), "%+v: %+v", tt.f, got)
		}
	}},
	{"a page of the audit goes on behind the one before, whatever was written since", func(e *env) {
		note := func(by string) {
			e.operate(store.PauseQueue{Audit: store.Audit{By: by}, Queue: "x"})
		}
		for i := range 7 {
			note(fmt.Sprint(i))
		}
		for _, target := range []string{"", "x"} {
			var seen []string
			for f := (store.AuditFilter{Limit: 3, Target: target}); ; {
				page, next, err := e.s.Audit(e.Context(), e.ns, f)
				e.require(err == nil && len(page) <= 3, "Audit: %+v, %v", page, err)
				for _, a := range page {
					seen = append(seen, a.Actor)
				}
				note("later")
				if f.After = next; next == "" {
					break
				}
			}
			seen = slices.DeleteFunc(seen, func(by string) bool { return by == "later" })
			e.equal("what all pages show", seen, []string{"6", "5", "4", "3", "2", "1", "0"})
		}
	}},
	{"the audit of a task that was deleted goes on", func(e *env) {
		id := e.one()
		e.operate(cancelOf(id))
		e.operate(store.DeleteTask{Audit: admin, Task: id})
		got := mapped(e.audit(store.AuditFilter{Target: id.String()}), func(a store.AuditEntry) string { return a.Verb })
		e.equal("the verbs", got, []string{"delete", "cancel"})
	}},
	{"a cursor that did not come from the audit is refused", func(e *env) {
		for _, after := range []string{"x", "0", "-1", "1.5", "007", "99999999999999999999", e.newID().String()} {
			_, _, err := e.s.Audit(e.Context(), e.ns, store.AuditFilter{After: after})
			e.wantErr("Audit after "+after, err, store.ErrBadCursor)
		}
	}},
}

// audit reads the first page of the audit and expects it to be the last.
func (e *env) audit(f store.AuditFilter) []store.AuditEntry {
	e.Helper()
	list, next, err := e.s.Audit(e.Context(), e.ns, f)
	e.require(err == nil && next == "", "Audit: next %q, %v", next, err)
	return list
}
