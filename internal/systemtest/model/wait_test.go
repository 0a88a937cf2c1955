package model_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"

	"pgregory.net/rapid"
)

var modelSignals = []string{"go", "stop"}

// signal draws a signal, which may repeat an earlier one with another payload.
func (p *pair) signal(a store.Audit, id task.ID) store.SendSignal {
	if len(p.held) > 0 && p.rarely(2, "to one that ran") {
		id = pick(p, p.held, "receiver").Task.ID
	} else if len(p.lost) > 0 && p.rarely(2, "to one that waits") {
		id = pick(p, p.lost, "receiver").Task.ID
	}
	return store.SendSignal{
		Audit: a, Task: id, Name: pick(p, modelSignals, "signal"), Key: fmt.Sprint(p.number(5, "key")),
		Payload: json.RawMessage(fmt.Sprint(p.number(8, "payload") / 7)),
	}
}

// wait draws a wait for a signal: registered, checked again or withdrawn.
func (p *pair) wait(c store.Claimed) store.Record {
	i := p.number(3, "wait")
	step := task.Step{Name: fmt.Sprint("wait", i), Index: 20 + i, Kind: task.KindSignal, State: task.StepWaiting, Try: 1, Signal: modelSignals[i%2]}
	if p.rarely(8, "withdrawn") {
		step.State = task.StepCompleted
	}
	if p.rarely(8, "another signal") {
		step.Signal = pick(p, modelSignals, "signal")
	}
	r := store.Record{Lease: c.Lease, Elapsed: time.Millisecond, Step: &step, Timeout: pick(p, delays, "timeout")}
	if p.rarely(6, "with progress") {
		r.Progress = &task.Progress{Current: 1, Total: 2}
	}
	return r
}

// waitSome records one or two waits and mostly suspends the attempt until one of them ends.
func (p *pair) waitSome(*rapid.T) {
	c, ok := p.drawLease()
	if !ok {
		return
	}
	var recs []store.Record
	for range 1 + p.number(2, "waits") {
		recs = append(recs, p.wait(c))
	}
	got := p.record(recs...)
	p.suspend(c, got, task.WaitSignal)
}

// callSome records a call, or more of one, and mostly suspends the attempt until its children have ended.
func (p *pair) callSome(*rapid.T) {
	c, ok := p.drawLease()
	if !ok {
		return
	}
	i := p.number(2, "call")
	step := task.Step{
		Name: fmt.Sprint("call", i), Index: 30 + i, Kind: task.KindCall, State: task.StepWaiting, Try: 1,
		ChildrenLeft: 1 + p.number(4, "total"),
	}
	if p.rarely(3, "some are stored") {
		step.ChildrenStored = p.number(4, "stored")
	}
	r := store.Record{Lease: c.Lease, Elapsed: time.Millisecond, Step: &step}
	for range p.number(step.ChildrenLeft+1, "children") {
		n := p.draft()
		n.IdempotencyKey = ""
		r.Tasks = append(r.Tasks, n)
	}
	p.suspend(c, p.record(r), task.WaitChildren)
}

// suspend mostly ends an attempt that waits for its recorded wait.
func (p *pair) suspend(c store.Claimed, got []store.RecordResult, why task.Waiting) {
	f := store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuspended, Waiting: why, WakeSeq: c.Task.WakeSeq}
	for _, r := range got {
		if r.Err != nil {
			return
		}
		if r.Step.State == task.StepWaiting && !r.Step.WakeAt.IsZero() {
			f.WakeAt = r.Step.WakeAt
		}
	}
	last := got[len(got)-1].Step
	switch {
	case p.rarely(4, "goes on"):
		return
	case last.State == task.StepCompleted && f.WakeAt.IsZero():
		return // without a wait no engine would suspend
	case p.rarely(5, "and sleeps"):
		f.Waiting, f.WakeAt = task.WaitSleep, time.Now().Add(pick(p, delays, "sleep"))
	}
	p.finish(f)
}
