package soak_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// acknowledged checks that acknowledged tasks exist (I1). A row written by the producer in the transaction of an
// enqueue exists if and only if the task does (I2).
func (e *evidence) acknowledged(all []*records) {
	number, jobs := make(map[string]int), make(map[string]bool)
	unserved := make(map[string]bool)
	for _, r := range all {
		if r.Type == unservedType.Name() {
			unserved[r.ID.String()] = true
		}
		if r.numbered() {
			number[r.ID.String()] = r.in.N
		}
	}
	for _, j := range e.snap.Jobs {
		jobs[j.ID.String()] = true
	}
	for _, a := range e.acks {
		n, ok := number[a.id]
		switch {
		case a.n == jobAck && !jobs[a.id]:
			e.report("lost", "job %s was acknowledged and is not there", a.id)
		case a.n == unservedAck && !unserved[a.id]:
			e.report("lost", "task %s, which no worker knows, was acknowledged and is not there", a.id)
		case a.n == jobAck || a.n == unservedAck:
		case !ok:
			e.report("lost", "task %s (number %d) was acknowledged and is not there", a.id, a.n)
		case n != a.n:
			e.report("lost", "task %s was acknowledged as number %d and is number %d", a.id, a.n, n)
		}
	}
	rows := make(map[string]int)
	for _, o := range e.orders {
		rows[o.task]++
		if n, ok := number[o.task]; !ok || n != o.n {
			e.report("half", "the producer's row of task %s (number %d) is there, the task is not", o.task, o.n)
		}
	}
	for id, n := range number {
		if want := map[bool]int{true: 1}[inCallersTx(n)]; rows[id] != want {
			e.report("half", "task %s (number %d) is there, with %d of %d rows of the producer", id, n, rows[id], want)
		}
	}
}

// numbered reports whether a task is one of the producer's numbers.
func (r *records) numbered() bool {
	return r.in.Parent == "" && r.JobID.IsZero() && r.in.Token == "" && r.Type == workType.Name()
}

// complete checks that every number was enqueued once.
func (e *evidence) complete(all []*records) {
	count := make(map[int]int)
	for _, r := range all {
		if r.numbered() {
			count[r.in.N]++
		}
	}
	for n := range e.size.tasks {
		if count[n] != 1 {
			e.report("numbers", "number %d was enqueued %d times", n, count[n])
		}
	}
	if len(count) > e.size.tasks {
		e.report("numbers", "there are tasks of %d numbers, want %d", len(count), e.size.tasks)
	}
}

// children checks that each task that enqueues a child has exactly one child, the one named by its step.
func (e *evidence) children(all []*records) {
	of := make(map[string][]string)
	for _, r := range all {
		if r.in.Parent != "" {
			of[r.in.Parent] = append(of[r.in.Parent], r.ID.String())
		}
	}
	for _, r := range all {
		var named []string
		for _, m := range recipes[r.in.Kind] {
			if m.do != doStart && m.do != doHand {
				continue
			}
			if st := r.completed(m.names[0]); st != nil {
				named = append(named, childOf(st))
			}
		}
		if got := of[r.ID.String()]; !slices.Equal(got, named) {
			e.report("children", "task %s has the children %v, and its steps name %v", r.ID, got, named)
		}
		delete(of, r.ID.String())
	}
	for parent, ids := range of {
		e.report("children", "tasks %v were enqueued by %s, which the store does not have", ids, parent)
	}
}

// childOf returns the task named by a step's value.
func childOf(st *task.Step) string {
	var id string
	if st.Kind == task.KindStart && json.Unmarshal(st.Value, &id) == nil {
		return id
	}
	return stampOf(st).Child
}

// completed returns the first completed record of a step.
func (r *records) completed(name string) *task.Step {
	for i := range r.steps[name] {
		if st := &r.steps[name][i]; st.State == task.StepCompleted {
			return st
		}
	}
	return nil
}

func stampOf(st *task.Step) (s stamp) {
	_ = json.Unmarshal(st.Value, &s) // a zero stamp is wrong for every step
	return s
}

// job checks that there is one job, complete and succeeded. Each node has the sum that follows from the numbers, and
// was called only after its needs had returned.
func (e *evidence) job(all []*records) {
	if e.size.nodes == 0 {
		return
	}
	if len(e.snap.Jobs) != 1 || e.snap.Jobs[0].State != task.JobSucceeded || e.snap.Jobs[0].Counters.Total != e.size.nodes {
		e.report("job", "there are %d jobs: %+v; want one of %d tasks, succeeded", len(e.snap.Jobs), e.snap.Jobs, e.size.nodes)
	}
	nodes := make(map[string]*records)
	for _, r := range all {
		if r.in.Kind == "node" {
			nodes[r.Node] = r
		}
	}
	if len(nodes) != e.size.nodes {
		e.report("job", "it has %d nodes, want %d", len(nodes), e.size.nodes)
	}
	finished := make(map[string]bool) // nodes that have returned
	name := make(map[string]string)   // by task
	for n, r := range nodes {
		name[r.ID.String()] = n
	}
	for _, l := range e.log {
		n, ok := name[l.task]
		switch {
		case !ok:
		case l.what == lineExit && l.name == "ok":
			finished[n] = true
		case l.what == lineEnter:
			for _, need := range nodes[n].in.Needs {
				if !finished[need] {
					e.report("order", "%s of the job was called before %s had returned: %s", n, need, l)
				}
			}
		}
	}
	sums := make(map[string]int)
	for n := range e.size.nodes {
		sum := n
		for _, need := range needsOf(n) {
			sum = addSums(sum, sums[need])
		}
		sums[nodeName(n)] = sum
		if r := nodes[nodeName(n)]; r != nil && (len(r.out.Steps) == 0 || r.out.Steps[0].Sum != sum) {
			e.report("output", "%s of the job answered %s, want the sum %d", nodeName(n), r.Output, sum)
		}
	}
}

// ended checks that the task succeeded, and that its output consists of the stored values of its steps.
func (e *evidence) ended(r *records) {
	if r.State != task.Succeeded {
		text := ""
		if r.Error != nil {
			text = fmt.Sprintf(" (%s: %s)", r.Error.Kind, r.Error.Message)
		}
		e.report("state", "task %s (%s %d) is %s%s after %d attempts", r.ID, r.in.Kind, r.in.N, r.State, text, r.AttemptNo)
		return
	}
	want := receipt{N: r.in.N}
	for _, m := range recipes[r.in.Kind] {
		if m.do == doSleep || m.do == doStart {
			continue // without a stamp
		}
		for _, name := range m.names {
			if st := r.completed(name); st != nil {
				want.Steps = append(want.Steps, stampOf(st))
			}
		}
	}
	if r.out.N != want.N || !slices.Equal(r.out.Steps, want.Steps) {
		e.report("output", "task %s (%s %d) answered %s, and its steps say %+v", r.ID, r.in.Kind, r.in.N, r.Output, want)
	}
}

// recorded checks that exactly the steps of the recipe are completed, once each and with values returned by their
// functions. A row written by StepTx exists once, written by the call whose value was kept.
func (e *evidence) recorded(r *records) {
	expected := make(map[string]bool)
	for _, m := range recipes[r.in.Kind] {
		for _, name := range m.names {
			expected[name] = true
			st := r.completed(name)
			if st == nil {
				e.report("step", "task %s (%s %d) is %s, and its step %s is not recorded", r.ID, r.in.Kind, r.in.N, r.State, name)
				continue
			}
			if m.do == doSleep || m.do == doStart {
				continue
			}
			s := stampOf(st)
			if s.N != r.in.N || s.Step != name || s.Attempt != st.AttemptNo {
				e.report("step", "step %s of task %s has the value %s, recorded by attempt %d", name, r.ID, st.Value, st.AttemptNo)
			}
			want := []effect(nil)
			if m.do == doTx || m.do == doHand {
				want = []effect{{task: r.ID.String(), step: name, attempt: s.Attempt, life: s.Life}}
			}
			if got := r.effects[name]; !slices.Equal(got, want) {
				e.report("effect", "step %s of task %s left the rows %+v, want %+v", name, r.ID, got, want)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.steps)) {
		if !expected[name] {
			e.report("step", "task %s (%s) has a step %s, which no handler called", r.ID, r.in.Kind, name)
		}
	}
	for name := range r.effects {
		if !expected[name] {
			e.report("effect", "task %s (%s) left rows as step %s, which it does not have", r.ID, r.in.Kind, name)
		}
	}
}

// loggedErrors checks that no process logged an error and no process ended by itself.
func (e *evidence) loggedErrors() {
	for life, text := range e.stderr {
		for l := range strings.Lines(text) {
			if strings.Contains(l, "level=ERROR") || endedByItself(l) {
				e.report("logged", "process %d logged %s", life, strings.TrimSpace(l))
			}
		}
	}
}
