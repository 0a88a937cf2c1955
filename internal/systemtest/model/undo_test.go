package model_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

// undoables are the names of steps with an undo. No other step uses these names, so each has the round that an engine
// gives it.
var undoables = []string{"u0", "u1", "u2"}

// saga is the model's record of a task's steps with an undo.
type saga struct {
	now   map[string]task.Step // steps that count as run, or began
	round map[string]int       // round of the next record of each step
	open  []task.Step          // steps to undo, the last begun first
}

func (p *pair) sagaOf(id task.ID) saga {
	g := saga{map[string]task.Step{}, map[string]int{}, nil}
	h, err := p.mem.History(p.Context(), namespace, id)
	if err != nil { // the task was deleted
		return g
	}
	for _, s := range h.Steps {
		switch {
		case !slices.Contains(undoables, s.Name) || s.Kind != task.KindStep || s.State == task.StepFailed:
		case s.Past():
			g.round[s.Name] = max(g.round[s.Name], s.Round+1)
		default:
			g.now[s.Name] = s
			if s.Undo == task.UndoOpen {
				g.open = append(g.open, s)
			}
		}
	}
	slices.SortFunc(g.open, func(a, b task.Step) int { return b.UndoNo - a.UndoNo })
	return g
}

// undoable returns a record of a step with an undo: its beginning, a failed try, its value, or a point of no return.
func (p *pair) undoable(c store.Claimed, g *saga) store.Record {
	i := p.number(len(undoables), "step with an undo")
	name := undoables[i]
	step := task.Step{Name: name, Index: 40 + i, Kind: task.KindStep, State: task.StepCompleted, Try: 1, Round: g.round[name]}
	r := store.Record{Lease: c.Lease, Step: &step}
	what := p.number(8, "record")
	if _, ok := g.now[name]; !ok && what >= 2 && what <= 6 && !p.rarely(6, "without a beginning") {
		what = 0
	}
	if what > 1 {
		r.Elapsed = time.Millisecond
	}
	switch what {
	case 0, 1:
		step.State, step.Undo = task.StepBegun, task.UndoOpen
	case 2:
		step.State, step.Try = task.StepFailed, 1+p.number(2, "try")
		step.Error = &task.Error{Kind: task.KindHandler, Message: "not this time", Step: name}
	case 3:
		step.Undo, step.Error = task.UndoOpen, &task.Error{Kind: task.KindHandler, Message: "never"}
	case 4, 5, 6:
		step.Value = json.RawMessage(fmt.Sprint(p.number(2, "value")))
		if !p.rarely(5, "code without an undo") {
			step.Undo = task.UndoOpen
		}
	case 7:
		step = task.Step{Name: fmt.Sprint("point", i), Index: 50 + i, Kind: task.KindPoint, State: task.StepCompleted, Try: 1}
		r.Elapsed = 0
	}
	if step.State != task.StepBegun && p.rarely(4, "spends") {
		step.Cost = int64(1 + p.number(3, "cost"))
	}
	return r
}

// undoOf returns a record of the undo of a step, or of a failed try of the undo.
func (p *pair) undoOf(c store.Claimed, s *task.Step, fails bool) store.Record {
	step := task.Step{Name: s.Name, Index: s.Index, Kind: task.KindUndo, State: task.StepCompleted, Try: 1, Round: s.Round}
	if fails {
		step.State, step.Error = task.StepFailed, &task.Error{Kind: task.KindHandler, Message: "psp 503", Step: s.Name}
	}
	if p.rarely(6, "another round") {
		step.Round += p.number(3, "round")
	}
	return store.Record{Lease: c.Lease, Elapsed: time.Millisecond, Step: &step}
}

// hinted claims some tasks by ID, for a worker that takes any task.
func (p *pair) hinted(ids ...task.ID) {
	w := pick(p, p.workers, "worker")
	p.claim(store.ClaimRequest{
		Worker: w, Name: string(w), LeaseID: p.newLeaseID(), TTL: modelTTL, Limit: len(ids), Slots: 32, QuarantineLimit: 32,
		Types: map[string]int{modelTypes[0]: 2, modelTypes[1]: 2}, IDs: ids,
	})
}

// attempt draws a lease, mostly of a task with undoable steps, or of a new task.
func (p *pair) attempt() (store.Claimed, bool) {
	var ids []task.ID
	switch p.number(5, "attempt") {
	case 4:
		return p.drawLease()
	case 0, 1, 2: // small numbers are drawn more often
		again := slices.DeleteFunc(p.read(), func(t task.Task) bool {
			ended := t.State == task.Failed || t.State == task.Cancelled
			return t.Undo != nil || t.State != task.Ready && !ended || len(p.sagaOf(t.ID).round) == 0 && (ended || t.UndoNo == 0)
		})
		if len(again) == 0 {
			break
		}
		t := pick(p, again, "task")
		if t.State != task.Ready {
			p.operate(store.RetryTask{Task: t.ID, KeepSteps: p.rarely(3, "kept steps")})
		}
		ids = append(ids, t.ID)
	}
	if len(ids) == 0 {
		n := p.draft()
		n.Delay, n.At = 0, time.Time{}
		p.submit(store.Submission{Tasks: []task.New{n}})
		ids = append(ids, n.ID)
	}
	p.hinted(ids...)
	for _, c := range p.held {
		if c.Task.ID == ids[0] {
			return c, true
		}
	}
	return p.drawLease()
}

// read returns the model's tasks.
func (p *pair) read() []task.Task {
	tasks, err := p.mem.Tasks(p.Context(), namespace, p.ids...)
	if err != nil {
		p.Fatal(err)
	}
	return tasks
}

// addOnce adds a record to a call, unless its order in the call is not defined. An engine waits for the answer before
// the next record of a step. The value of a step without an undo may be written after later records.
func addOnce(recs []store.Record, r store.Record) []store.Record {
	plain := func(s *task.Step) bool {
		return s.Kind == task.KindStep && s.State == task.StepCompleted && s.Undo == task.UndoNone
	}
	if slices.ContainsFunc(recs, func(o store.Record) bool { return o.Step.Name == r.Step.Name || plain(o.Step) || plain(r.Step) }) {
		return recs
	}
	return append(recs, r)
}

// recordUndoables runs an attempt with undoable steps and mostly ends it.
func (p *pair) recordUndoables(*rapid.T) {
	c, ok := p.attempt()
	if !ok {
		return
	}
	for range 1 + p.number(3, "batches") {
		g := p.sagaOf(c.Task.ID)
		var recs []store.Record
		for range 1 + p.number(3, "records") {
			recs = addOnce(recs, p.undoable(c, &g))
		}
		p.record(recs...)
	}
	f := store.Finish{Lease: c.Lease, Elapsed: time.Millisecond, Outcome: task.OutcomeFailure, Error: &task.Error{Kind: task.KindHandler, Message: "no luck"}}
	f.Decision = &task.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Policy: "test", Version: 1, Text: "the test says so"}}
	switch p.number(10, "end") {
	case 0, 1, 2:
		p.finish(f)
	case 3:
		f.Decision.Kind = task.DecideRetry
		p.finish(f)
	case 4:
		p.operate(store.CancelTask{Task: c.Task.ID})
		f.Outcome, f.Error, f.Decision = task.OutcomeCancelled, &task.Error{Kind: task.KindCancelled, Message: "gave up"}, nil
		p.finish(f)
	case 5:
		p.operate(store.CancelTask{Task: c.Task.ID, Force: true})
	case 6:
		time.Sleep(modelTTL + time.Second)
		p.askReap(p.workers[0], modelTTL)
	case 7, 8:
		f.Outcome, f.Error, f.Decision = task.OutcomeSuccess, nil, nil
		p.finish(f)
		p.operate(store.RerunTask{Task: c.Task.ID, New: p.draft(), StepsBelow: 41 + p.number(20, "steps")})
	}
}

// phases lists the tasks in their undo phase, or whose undo was given up.
func (p *pair) phases() (list []task.Task) {
	return slices.DeleteFunc(p.read(), func(t task.Task) bool { return t.Undo == nil })
}

// undoSome runs an attempt of an undo phase, claiming one if no lease is held. It undoes all or some steps, or fails
// to, and mostly ends.
func (p *pair) undoSome(*rapid.T) {
	held := func(c store.Claimed) bool { return c.Task.Undo == nil }
	of := slices.DeleteFunc(slices.Clone(p.held), held)
	if len(of) == 0 {
		var due []task.ID
		for _, t := range p.phases() {
			if t.State == task.Pending && len(due) < 4 {
				due = append(due, t.ID)
			}
		}
		if len(due) == 0 {
			return
		}
		p.hinted(due...)
		if of = slices.DeleteFunc(slices.Clone(p.held), held); len(of) == 0 {
			return
		}
	}
	c := pick(p, of, "attempt of a phase")
	g := p.sagaOf(c.Task.ID)
	var recs []store.Record
	all := p.number(3, "undo") != 2
	for i := range g.open {
		if s := &g.open[i]; all || p.rarely(2, "of this step") {
			recs = append(recs, p.undoOf(c, s, !all && p.rarely(2, "fails")))
		}
	}
	if p.rarely(4, "another record") {
		recs = addOnce(recs, p.undoable(c, &g))
	}
	p.record(recs...)
	if !p.rarely(3, "goes on") {
		p.finish(p.ending(c))
	}
}

// operateUndos applies one to three commands to tasks in their undo phase or with undoable steps.
func (p *pair) operateUndos(*rapid.T) {
	ids := p.phases()
	if len(ids) == 0 || p.rarely(2, "of any task") {
		if ids = slices.DeleteFunc(p.read(), func(t task.Task) bool { return t.UndoNo == 0 }); len(ids) == 0 {
			return
		}
	}
	var cmds []store.Command
	id := pick(p, ids, "task").ID
	for range 1 + p.number(3, "commands") {
		if p.rarely(4, "another task") {
			id = pick(p, ids, "task").ID
		}
		a := p.audit()
		cmds = append(cmds, pick(p, []store.Command{
			store.CancelTask{Audit: a, Task: id, Force: true},
			store.CancelTask{Audit: a, Task: id, Abandon: true},
			store.RetryTask{Audit: a, Task: id, Cleanup: true},
			store.CancelTask{Audit: a, Task: id, Force: true, Spare: p.rarely(2, "spared")},
			store.RetryTask{Audit: a, Task: id, KeepSteps: p.rarely(2, "kept steps")},
			store.CancelTask{Audit: a, Task: id},
			store.UnblockTask{Audit: a, Task: id},
			store.DeleteTask{Audit: a, Task: id},
			store.ForgetTask{Audit: a, Task: id},
			store.PauseTask{Audit: a, Task: id},
			store.ResumeTask{Audit: a, Task: id},
			store.RescheduleTask{Audit: a, Task: id},
			store.RerunTask{Audit: a, Task: id, New: p.draft(), StepsBelow: 41 + p.number(12, "steps")},
			store.RerunTask{Audit: a, Task: id, New: p.draft(), StepsBelow: 60, KeepSteps: p.rarely(2, "kept steps")},
		}, "command"))
	}
	p.operate(cmds...)
}

// playSaga runs several of these actions in a row.
func (p *pair) playSaga(t *rapid.T) {
	p.recordUndoables(t)
	for range p.number(10, "actions") {
		pick(p, []func(*rapid.T){p.undoSome, p.undoSome, p.operateUndos, p.recordUndoables}, "action")(t)
		p.check(t)
	}
}

// tally counts the undo situations reached by the sequences of a test.
type tally map[string]int

// wanted lists situations that the sequences of `make test` reach about thirty times each, or more: without them,
// undo is no longer tested. The rest is left to chance and to the soak.
var wanted = []string{"begin", "value", "try", "point", "undo", "phase begins: failure"}

// check reports missing situations.
func (m tally) check(t *testing.T) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(m)) {
		t.Logf("%6d %s", m[what], what)
	}
	for _, what := range wanted {
		if m[what] == 0 {
			t.Errorf("no sequence met %q: weigh the actions anew", what)
		}
	}
}

// countRecords counts answers of the model.
func (m tally) countRecords(before []saga, recs []store.Record, got []store.RecordResult) {
	for i := range recs {
		s := recs[i].Step
		if s == nil || !slices.Contains(undoables, s.Name) && s.Kind != task.KindPoint {
			continue
		}
		what := "value"
		switch {
		case s.Kind == task.KindPoint:
			what = "point"
		case s.Kind == task.KindUndo && s.State == task.StepFailed:
			what = "undo try"
		case s.Kind == task.KindUndo:
			what = "undo"
		case s.State == task.StepFailed:
			what = "try"
		case s.State == task.StepBegun:
			what = "begin"
		}
		if got[i].Err != nil {
			m[what+": "+sentinel(got[i].Err)]++
			continue
		}
		m[what]++
		stored := &got[i].Step
		switch {
		case what == "undo" && stored.Round > 0:
			m["undo: round 1"]++
		case what == "point" && len(before[i].open) > 0:
			m["point: undoes less"]++
		case what == "value":
			if was, ok := before[i].now[s.Name]; ok && was.State == task.StepBegun && was.AttemptNo < stored.AttemptNo {
				m["value: begun in an earlier attempt"]++
			}
		}
	}
}

func (m tally) countFinishes(fins []store.Finish, got []store.FinishResult) {
	for i := range fins {
		switch f := &fins[i]; {
		case got[i].Err != nil:
		case f.EndsAs != "":
			m[fmt.Sprintf("%s: %s", f.Outcome, got[i].State)]++
		case got[i].State == task.Pending && got[i].Waiting == task.WaitUndo:
			m["phase begins: "+string(f.Outcome)]++
		}
	}
}

func (m tally) countReaped(tasks []task.Task, reaped []store.Reaped) {
	for i := range tasks {
		if t := &tasks[i]; t.Undo != nil && t.Undo.Began.Equal(t.UpdatedAt) && slices.ContainsFunc(reaped, func(r store.Reaped) bool { return r.Task == t.ID }) {
			m["phase begins: lease lost"]++
		}
	}
}

func (m tally) countCommands(before []task.Task, cmds []store.Command, got []store.CommandResult, steps func(id task.ID) []task.Step) {
	at := map[task.ID]*task.Task{}
	for i := range before {
		at[before[i].ID] = &before[i]
	}
	for i := range cmds {
		if got[i].Err != nil {
			continue
		}
		switch c := cmds[i].(type) {
		case store.CancelTask:
			switch t := at[c.Task]; {
			case t.Undo == nil:
			case c.Abandon && t.State.Terminal():
				m["abandon: accepts"]++
			case c.Abandon:
				m["abandon"]++
			case c.Force && got[i].State.Terminal():
				m["force: abandons"]++
			case c.Force:
				m["force: revokes or marks"]++
			}
		case store.RetryTask:
			switch t := at[c.Task]; {
			case c.Cleanup && t.State.Terminal():
				m["retry --cleanup: given up"]++
			case c.Cleanup:
				m["retry --cleanup: waits"]++
			}
		case store.RerunTask:
			if slices.ContainsFunc(steps(c.New.ID), func(s task.Step) bool { return slices.Contains(undoables, s.Name) }) {
				m["rerun: takes a step over"]++
			}
		}
	}
}
