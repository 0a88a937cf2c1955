package pipeline

import (
	"fmt"
)

// The undo of a task is a task of its own, which runs when the job ends and did not
// succeed: see weaver.Undoes. It has the keys of a hook but for what the undo phase
// decides: it is tried for 24 h, and its failure is never allowed.

// undoName is the name of the task that undoes another one: "undo charge".
func undoName(task string) string { return "undo " + task }

// notOfUndo says of keys of tasks why an undo does not have them.
var notOfUndo = map[string]string{
	"retry":              "remove it: an undo is tried again for 24 hours",
	"allow_failure":      "remove it: an undo that was given up has to be seen to by a person",
	"needs":              "remove it: an undo runs when all tasks have ended, that of what needs the task first",
	"if":                 "remove it: an undo runs when the job failed or was cancelled, and the task has begun",
	"undo":               "remove it: an undo is not undone",
	"approve":            "remove it: an undo waits for nobody",
	"artifacts":          "remove it: an undo keeps no files",
	"artifacts_optional": "remove it: an undo keeps no files",
	"artifacts_ttl":      "remove it: an undo keeps no files",
	"foreach":            perNode,
	"foreach_glob":       perNode,
	"foreach_from":       perNode,
	"matrix":             perNode,
}

const perNode = "remove it: the undo of a task with several nodes is there once for each of them"

// notUndone says why tasks with some keys have no undo.
var notUndone = map[string]string{
	"approve":      "it waits for a person, and does nothing that can be undone",
	"foreach_from": "its nodes are not known before it runs",
}

// undo reads the undo of a node of a task of the file, in the scope of its values.
func (d *decoder) undo(f field, of entry, name string) *Task {
	if !d.mapping(f, "{run: ./refund.sh}") {
		return nil
	}
	for key, why := range notUndone {
		if _, has := of.value.get(key); has {
			d.r.add(f.at, fmt.Sprintf("%s cannot have an undo: %s", f.of, why), "remove it, and give other tasks one")
			return nil
		}
	}
	undo := undoName(name)
	if len(undo) > MaxName {
		d.r.add(f.at, fmt.Sprintf("the name of %s is %d bytes long, and with an undo at most %d are allowed", f.of, len(name), MaxName-len(undoName(""))), "shorten it: the task that undoes it is named undo and its name")
		return nil
	}
	undone := &node{kind: scalar, text: of.name, at: f.at}
	before := d.scope
	d.scope.task = undoName(of.name)
	d.needs[d.scope.task] = []field{{entry{name: "undo", at: f.at, value: undone}, f.of}}
	t := d.task(entry{name: undo, at: f.at, value: f.value}, undo, undoLevel)
	d.scope = before
	t.Undoes = name
	return &t
}

// checkUndo checks what an undo cannot do.
func (d *decoder) checkUndo(e entry, of string) {
	if request, ok := e.value.get("http"); ok && request.value.kind == mapping {
		if until, polls := request.value.get("until"); polls {
			d.r.add(until.at, fmt.Sprintf("http of %s polls, and an undo is tried again until it succeeds", of), "remove until, and write which statuses are wanted, as in expect: [200]")
		}
	}
}

// addUndos appends the undos of the file's own tasks to its tasks.
func (d *decoder) addUndos() {
	all := d.p.Tasks
	for i := range all {
		t := &all[i]
		if t.Undo == nil {
			continue
		}
		undo := *t.Undo
		if t.Group != "" {
			undo.Group = undoName(t.Group)
		}
		found, _ := d.entries[i].value.get("undo")
		e := entry{name: undo.Name, at: found.at, value: found.value}
		if at, taken := d.taken(e); taken {
			d.r.add(at, fmt.Sprintf("the task %s has the name of the one that undo of the task %s makes", quote(undo.Name), quote(t.Name)), "rename it")
			continue
		}
		d.nodes[undo.Name] = struct{}{}
		d.p.Tasks, d.entries = append(d.p.Tasks, undo), append(d.entries, e)
	}
}

// checkUndos checks how many tasks there are with the undos of all files.
func (d *decoder) checkUndos(f field) {
	n, ordinary := 0, 0
	for i := range d.p.Tasks {
		switch t := &d.p.Tasks[i]; {
		case t.Undoes != "":
			n++
		case t.Hook == "":
			ordinary++
		}
	}
	switch {
	case n == 0:
	case n+ordinary > MaxTasks:
		d.r.add(f.at, fmt.Sprintf("the pipeline has %d tasks with their undos, and at most %d are allowed", n+ordinary, MaxTasks), "split it into several pipelines")
	case n*ordinary > maxEdges/2:
		d.r.add(f.at, fmt.Sprintf("%d tasks have an undo, and each of these waits for all %d tasks, which is too many: at most %d waits are allowed", n, ordinary, maxEdges/2), "give fewer tasks an undo, or split the pipeline")
	}
}
