package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// MetaWork is the metadata key for a hash of the task's work: see Update.
const MetaWork = "weaver.work"

// Earlier is the state of a task in an earlier job of the same file.
type Earlier struct {
	State     task.State
	Needed    bool   // false for a task that was cancelled because it was not needed
	Allowed   bool   // it failed, with allow_failure
	Work      string // its MetaWork
	Began     bool   // an attempt began
	Forgotten bool   // its values and its MetaWork are erased
	Age       int    // of its job; 0 is the latest job
}

// Update is the work of an update of an earlier job.
type Update struct {
	Run  []Rerun  // needs come first
	Kept []string // tasks whose result stays, in the order of the file
	Gone []string // tasks of the earlier job that are not in the file, sorted
}

// Rerun is a task to run, and the reason.
type Rerun struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Update compares the pipeline with the earlier jobs of the file. A task keeps its
// result if it succeeded or was not needed, and neither its work nor a needed task
// changed. Its work is its command, request or input, with folder, environment and
// needs. Retries, timeouts, labels, priority and concurrency are not part of it.
func (p *Pipeline) Update(earlier map[string]Earlier) Update { return p.update(earlier, nil) }

// UpdateFrom is Update that also reruns the named tasks and their dependents. A
// name is a task of the file or one of its nodes. The error names an unknown task.
func (p *Pipeline) UpdateFrom(earlier map[string]Earlier, names []string) (Update, error) {
	again, err := p.nodesOf(names)
	if err != nil {
		return Update{}, err
	}
	return p.update(earlier, again), nil
}

// UpdateOnly reruns the named tasks only, whatever else changed. The error names
// an unknown task, or a need that has not ended as a named task requires.
func (p *Pipeline) UpdateOnly(earlier map[string]Earlier, names []string) (Update, error) {
	only, err := p.nodesOf(names)
	if err != nil {
		return Update{}, err
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		for _, need := range t.Needs {
			if e := earlier[need]; only[t.Name] && !only[need] && (wasUndone(earlier, need) || !e.State.Terminal() || t.If == "" && e.State != task.Succeeded && !e.Allowed) {
				return Update{}, fmt.Errorf("task %q needs %q, which has not succeeded: run that, too", t.Name, need)
			}
		}
	}
	plan := p.update(earlier, only)
	run := plan.Run
	plan.Run, plan.Kept = nil, nil
	for _, r := range run {
		if only[r.Name] || only[p.undoes(r.Name)] {
			plan.Run = append(plan.Run, r)
		}
	}
	for i := range p.Tasks {
		if !only[p.Tasks[i].Name] && !only[p.Tasks[i].Undoes] {
			plan.Kept = append(plan.Kept, p.Tasks[i].Name)
		}
	}
	return plan, nil
}

// nodesOf returns the nodes with the given task or node names.
func (p *Pipeline) nodesOf(names []string) (map[string]bool, error) {
	nodes := make(map[string]bool)
	for _, name := range names {
		before := len(nodes)
		known := make([]string, 0, len(p.Tasks))
		for i := range p.Tasks {
			t := &p.Tasks[i]
			if t.Name == name || t.Group == name {
				nodes[t.Name] = true
			}
			known = append(known, t.Name)
		}
		if len(nodes) == before {
			return nil, fmt.Errorf("the pipeline has no task %q: %s", name, adviseName(name, known))
		}
	}
	return nodes, nil
}

func (p *Pipeline) update(earlier map[string]Earlier, again map[string]bool) Update {
	u := updating{p: p, earlier: earlier, again: again, tasks: make(map[string]*Task, len(p.Tasks)), why: make(map[string]string, len(p.Tasks)), idle: make(map[string]bool)}
	for i := range p.Tasks {
		u.tasks[p.Tasks[i].Name] = &p.Tasks[i]
	}
	for i := range p.Tasks {
		if name := p.Tasks[i].Name; u.decide(name) == "" {
			u.plan.Kept = append(u.plan.Kept, name)
		}
	}
	for name := range earlier {
		if u.tasks[name] == nil {
			u.plan.Gone = append(u.plan.Gone, name)
		}
	}
	slices.Sort(u.plan.Gone)
	return u.plan
}

type updating struct {
	p       *Pipeline
	earlier map[string]Earlier
	again   map[string]bool // tasks to run in any case
	tasks   map[string]*Task
	why     map[string]string // of decided tasks; "": kept
	idle    map[string]bool   // kept tasks that were not needed
	plan    Update
}

// decide returns the reason to run a task, or "" to keep it. It decides the needs
// first; they have no cycles.
func (u *updating) decide(name string) string {
	if why, ok := u.why[name]; ok {
		return why
	}
	t := u.tasks[name]
	if t.Undoes != "" {
		return u.decideUndo(t)
	}
	again := ""
	for _, need := range t.Needs {
		// A task that did not run since its need ran does not belong to the need's job:
		// the file did not have it then.
		newer := u.earlier[need].Age < u.earlier[name].Age
		if (u.decide(need) != "" || newer) && again == "" {
			again = need
		}
	}
	why := ""
	e, known := u.earlier[name]
	switch {
	case !known:
		why = "it is new"
	case e.Forgotten:
		why = "it was forgotten"
	case e.Work != u.p.work(t):
		why = "it changed"
	case wasUndone(u.earlier, name):
		why = "it was undone"
	case e.State == task.Failed:
		why = "it failed"
	case e.State != task.Succeeded && e.Needed:
		why = "it had not succeeded"
	case again != "":
		why = fmt.Sprintf("it needs %s", again)
	}
	if u.unneeded(t) {
		why = ""
	}
	if u.again[name] {
		why = "it was asked for"
	}
	u.why[name] = why
	if why == "" {
		u.idle[name] = u.unneeded(t) || e.State != task.Succeeded
	} else {
		u.plan.Run = append(u.plan.Run, Rerun{name, why})
	}
	return why
}

// unneeded reports whether the kept needs of a task ended so that it does not run:
// no need failed, or a need that had to succeed was itself not needed.
func (u *updating) unneeded(t *Task) bool {
	switch t.If {
	case task.OnFailed:
		return !slices.ContainsFunc(t.Needs, func(need string) bool { return u.why[need] != "" })
	case task.OnDone:
		return false
	}
	return slices.ContainsFunc(t.Needs, func(need string) bool { return u.idle[need] })
}

// work returns a hash of the task's work.
func (p *Pipeline) work(t *Task) string {
	d := p.definition(t, "")
	if t.Hook != "" {
		d.Needs = nil // a new task does not change the hook
	}
	sum := sha256.Sum256(canonical(definition{
		Run: d.Run, Request: d.Request, Approve: d.Approve, Type: d.Type, Input: d.Input, Needs: slices.Sorted(slices.Values(d.Needs)), If: d.If, ForeachFrom: d.ForeachFrom,
	}))
	return hex.EncodeToString(sum[:12])
}

// undoes returns the task that a named task undoes, or "".
func (p *Pipeline) undoes(name string) string {
	for i := range p.Tasks {
		if p.Tasks[i].Name == name {
			return p.Tasks[i].Undoes
		}
	}
	return ""
}

// decideUndo decides an undo like the task that it undoes.
func (u *updating) decideUndo(t *Task) string {
	why := ""
	if u.decide(t.Undoes) != "" {
		why = fmt.Sprintf("it undoes %s", t.Undoes)
		u.plan.Run = append(u.plan.Run, Rerun{t.Name, why})
	}
	u.why[t.Name] = why
	return why
}

// wasUndone reports whether the undo of a task ran in the earlier job.
func wasUndone(earlier map[string]Earlier, name string) bool {
	undo, known := earlier[undoName(name)]
	return known && undo.Began && undo.Age == earlier[name].Age
}
