package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Actions that leave the worker: waits for signals, calls, races and decompositions, and the commands of operators
// about them.

var simSignals = []*weaver.Signal[string]{weaver.DefineSignal[string]("go"), weaver.DefineSignal[string]("stop")}

// wait runs an action that leaves the worker.
func (y *attempt) wait(ctx context.Context, name string, long time.Duration, d action) (string, error) {
	if !y.p.point(ctx, 0, "before "+y.tag+" "+name) {
		return "", errDead
	}
	switch d.What {
	case "signal":
		v, ok, err := simSignals[d.N%2].Wait(ctx, name, long)
		if err == nil && !ok {
			y.p.sim.count("waits timed out", 1)
		}
		return v, err
	case "call":
		outs, err := weaver.CallAll(ctx, name, taskType, d.Of)
		if ce := (*weaver.CallError)(nil); errors.As(err, &ce) {
			y.p.sim.count("calls with children that failed", 1)
			if d.N == 0 { // it continues without them
				err = nil
			}
		} else if err == nil {
			y.p.sim.count("calls that succeeded", 1)
		}
		return fmt.Sprint(outs), err
	case "race":
		var word string
		var out []string
		first, err := weaver.Race(ctx, name, weaver.OnSleep(long), weaver.OnSignal(simSignals[d.N%2], &word), weaver.OnCall(taskType, d.Of[0], &out))
		if ce := (*weaver.CallError)(nil); errors.As(err, &ce) {
			err = nil
		}
		if err == nil {
			y.p.sim.count(fmt.Sprintf("races won by number %d", first), 1)
		}
		return word, err
	case "parts", "whole":
		children, err := weaver.Children(ctx)
		if err != nil || len(children) > 0 && d.What == "parts" {
			return fmt.Sprint(len(children)), err
		}
		var drafts []weaver.Draft
		for _, s := range d.Of {
			drafts = append(drafts, taskType.With(s, weaver.MaxAttempts(2), weaver.Backoff(100*time.Millisecond)))
		}
		join := weaver.JoinRerun
		if d.What == "whole" {
			join = weaver.JoinComplete
		}
		y.p.sim.count("decompositions", 1)
		return "", weaver.Decompose(join, drafts...)
	}
	return "", fmt.Errorf("the script says %q", d.What)
}

// outputBeside returns the output that a handler returns together with an error.
func outputBeside(err error) json.RawMessage {
	if d := (*engine.Decompose)(nil); errors.As(err, &d) && d.Join == task.JoinComplete {
		return json.RawMessage(`["joined"]`)
	}
	return nil
}

// drawWait draws an action that leaves the worker.
func drawWait(rng *rand.Rand, long time.Duration) action {
	d := action{For: 1 + rng.IntN(int(long.Milliseconds())), N: rng.IntN(2)}
	for range 1 + rng.IntN(3) {
		d.Of = append(d.Of, drawChild(rng, long))
	}
	d.What = []string{"signal", "signal", "call", "call", "race", "parts", "whole"}[rng.IntN(7)]
	if d.What == "signal" {
		d.Of = nil
		if rng.IntN(2) == 0 {
			d.For = 0 // without a time limit
		}
	}
	return d
}

// drawChild draws the script of a child, which mostly has no waits.
func drawChild(rng *rand.Rand, long time.Duration) script {
	do := action{What: []string{"step", "step", "work", "sleep", "fail", "permanent", "signal", "spend"}[rng.IntN(8)], For: 1 + rng.IntN(int(long.Milliseconds()/2)), N: 1 + rng.IntN(2)}
	if do.What == "step" {
		do.N = 0
	}
	if rng.IntN(8) == 0 {
		do = action{What: "call", Of: []script{leaf}}
	}
	return script{Do: []action{do}}
}

// signalKey identifies repeated sends of a signal.
type signalKey struct {
	task      task.ID
	name, key string
}

// sendSignal sends a signal, mostly to a task that waits for it. It checks that several sends with one key have one
// effect.
func (sim *simulation) sendSignal() {
	r := sim.rnd
	to := sim.tasks[r.IntN(len(sim.tasks))]
	if waiting := sim.awaiting(); len(waiting) > 0 && r.IntN(3) > 0 {
		to = waiting[r.IntN(len(waiting))].id
	}
	key := signalKey{to, simSignals[r.IntN(2)].Name(), fmt.Sprint(r.IntN(3))}
	payload := fmt.Sprintf("%q", key.key)
	if r.IntN(8) == 0 {
		payload = `"another"`
	}
	for range 1 + r.IntN(4)/3 { // an answer may be lost
		sim.signalTo(key, payload)
	}
}

func (sim *simulation) signalTo(key signalKey, payload string) {
	got := sim.operate(store.SendSignal{Audit: store.Audit{By: "op"}, Task: key.task, Name: key.name, Key: key.key, Payload: json.RawMessage(payload)})
	sim.result(fmt.Sprintf(" %s %s %s", sim.label(key.task), key.name, key.key))
	old, sent := sim.signals[key]
	switch {
	case got.Err == nil && !got.Existing && !sent:
		sim.signals[key] = payload
		sim.count("signals sent", 1)
	case got.Err == nil && got.Existing && sent && old == payload:
		sim.count("signals sent again", 1)
	case errors.Is(got.Err, store.ErrConflict) && sent && old != payload:
		sim.count("signals that contradict", 1)
	case errors.Is(got.Err, store.ErrState), errors.Is(got.Err, store.ErrNotFound):
		if sent && !sim.deleted[key.task] {
			sim.failf("W3: the signal %v of %s was accepted once and is refused now: %v", key, sim.label(key.task), got.Err)
		}
	default:
		sim.failf("W3: the signal %v to %s, sent before: %v (%s), is answered existing=%v, %v", key, sim.label(key.task), sent, old, got.Existing, got.Err)
	}
}

// openWait is a wait for a signal.
type openWait struct {
	id           task.ID
	step, signal string
}

// awaiting returns the waits for signals of unfinished tasks.
func (sim *simulation) awaiting() (waits []openWait) {
	for _, t := range sim.list(task.Pending) {
		h, err := sim.mem.History(context.Background(), ns, t.ID)
		if err != nil {
			sim.failf("history: %v", err)
		}
		for _, s := range h.Steps {
			if s.State == task.StepWaiting && s.Signal != "" {
				waits = append(waits, openWait{t.ID, s.Name, s.Signal})
			}
		}
	}
	return waits
}

// rerun repeats a task.
func (sim *simulation) rerun(by store.Audit, id task.ID) {
	rows, err := sim.mem.Tasks(context.Background(), ns, id)
	if err != nil || len(rows) == 0 || rows[0].Type != taskType.Name() || sim.deadly[id] {
		return
	}
	n := sim.draft()
	n.Input = rows[0].Input
	if got := sim.operate(store.RerunTask{Audit: by, Task: id, New: n}); got.Err == nil {
		sim.result(fmt.Sprintf(" %s as %s", sim.label(id), sim.label(got.ID)))
		sim.count("reruns", 1)
		sim.acked[got.ID] = true
		sim.tasks = append(sim.tasks, got.ID)
	}
}

// checkWaits checks that each accepted signal is stored once, and that each was consumed by at most one wait, and by
// one if there was one.
func (sim *simulation) checkWaits(snap *store.Snapshot) {
	for i := range snap.Jobs {
		if j := &snap.Jobs[i]; !j.ExhaustedAt.IsZero() && !sim.exhausted[j.ID] {
			sim.exhausted[j.ID] = true
			sim.count("budgets used up", 1)
		}
	}
	steps := make(map[task.ID]map[string]*task.Step)
	for i := range snap.Steps {
		s := &snap.Steps[i]
		if s.State == task.StepFailed || s.Kind == task.KindUndo || s.Past() {
			continue
		}
		if steps[s.TaskID] == nil {
			steps[s.TaskID] = make(map[string]*task.Step)
		}
		steps[s.TaskID][s.Name] = s
	}
	undone := undoneSoFar(snap)
	there := make(map[signalKey]bool)
	taken := make(map[string]bool)
	for _, s := range snap.Signals {
		key := signalKey{s.TaskID, s.Name, s.Key}
		if there[key] || sim.signals[key] != string(s.Payload) {
			sim.failf("W3: %s has the signal %s %s = %s, sent was %s; twice: %v", sim.label(s.TaskID), s.Name, s.Key, s.Payload, sim.signals[key], there[key])
		}
		there[key] = true
		if s.Step == "" {
			for _, w := range steps[s.TaskID] {
				if w.State == task.StepWaiting && w.Signal == s.Name && !undone[s.TaskID] {
					sim.failf("W3: step %s of %s waits for the signal %s, of which one is kept", w.Name, sim.label(s.TaskID), s.Name)
				}
			}
			continue
		}
		of := s.TaskID.String() + " " + s.Step
		if w := steps[s.TaskID][s.Step]; taken[of] || w == nil || w.State != task.StepCompleted || string(w.Value) != string(s.Payload) {
			sim.failf("W3: the signal %s %s of %s went to its step %s, which has another value; twice: %v", s.Name, s.Key, sim.label(s.TaskID), s.Step, taken[of])
		}
		taken[of] = true
	}
	for key := range sim.signals {
		if !there[key] && !sim.deleted[key.task] {
			sim.failf("W3: the signal %s %s to %s was accepted and is gone", key.name, key.key, sim.label(key.task))
		}
	}
	for id, of := range steps {
		for name, w := range of {
			if w.Kind == task.KindSignal && w.State == task.StepCompleted && len(w.Value) > 0 && !taken[id.String()+" "+name] {
				sim.failf("W3: step %s of %s has the value %s, of a signal that nobody sent", name, sim.label(id), w.Value)
			}
		}
	}
	sim.checkCalls(snap, steps)
}

// checkCalls checks that all calls of a succeeded task completed.
func (sim *simulation) checkCalls(snap *store.Snapshot, steps map[task.ID]map[string]*task.Step) {
	for i := range snap.Tasks {
		t := &snap.Tasks[i]
		var s script
		if t.State != task.Succeeded || t.Type != taskType.Name() || json.Unmarshal(t.Input, &s) != nil {
			continue
		}
		for i, d := range s.Do {
			if d.What == "whole" {
				break // it succeeded with its children, and later steps were not reached
			}
			name := fmt.Sprintf("s%d", i)
			w := steps[t.ID][name]
			if d.What == "call" && (w == nil || w.State != task.StepCompleted || w.Children != len(d.Of) || w.ChildrenLeft != 0) {
				sim.failf("W3: %s succeeded, and its call %s of %d is %+v", sim.label(t.ID), name, len(d.Of), w)
			}
		}
	}
}

// help lets tasks that wait for a person continue.
func (sim *simulation) help() {
	for _, w := range sim.awaiting() {
		if !strings.Contains(w.step, "[") || sim.rnd.IntN(2) == 0 { // other waits of a race may win
			sim.helps++
			sim.signalTo(signalKey{w.id, w.signal, fmt.Sprintf("help %d", sim.helps)}, `"go on"`)
		}
	}
}
