package pipeline

import (
	"fmt"
)

// The undo of a task is a task that runs when the job ends without success: see
// weaver.Undoes. It has the keys of a hook except those that the undo phase fixes:
// it is retried for 24 h, and it may not be allowed to fail.

// undoName returns the name of a task's undo: "undo charge".
func undoName(task string) string { return "undo " + task }

// notOfUndo has the reason and correction for each task key that an undo may not
// have.
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

// notUndone has, by key, the reason why a task may not have an undo.
var notUndone = map[string]string{
	"approve":      "it waits for a person, and does nothing that can be undone",
	"foreach_from": "its nodes are not known before it runs",
}

// undo reads the undo of one node, in the scope of the node's values.
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

// checkUndo refuses settings that an undo cannot have.
func (d *decoder) checkUndo(e entry, of string) {
	if request, ok := e.value.get("http"); ok && request.value.kind == mapping {
		if until, polls := request.value.get("until"); polls {
			d.r.add(until.at, fmt.Sprintf("http of %s polls, and an undo is tried again until it succeeds", of), "remove until, and write which statuses are wanted, as in expect: [200]")
		}
	}
}

// addUndos appends the undos of the file's own tasks to the tasks.
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

// checkUndos limits the number of tasks including the undos of all files.
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
