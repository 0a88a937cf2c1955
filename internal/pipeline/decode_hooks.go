package pipeline

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// A hook is a task of the key on. It runs after the pipeline succeeds, after a
// task fails, or after the pipeline ends. It is an ordinary task with edges to all
// tasks of the pipeline. Edges to the last tasks alone are not enough: one of
// these can end (by a cancel, or as the alarm of a failure) while other tasks
// still run.
var hookConditions = map[string]task.EdgeKind{"success": "", "failure": task.OnFailed, "done": task.OnDone}

// hookName returns the name of a hook's task: "on failure".
func hookName(key string) string { return "on " + key }

// hooks reads the tasks of the key on; addHooks adds their needs.
func (d *decoder) hooks(f field) {
	const example = "{failure: {run: ./alarm.sh}}"
	if !d.mapping(f, example) {
		return
	}
	if len(f.value.entries) == 0 {
		d.r.add(f.spot(), f.label()+" is empty", f.example(example))
		return
	}
	d.keys(f.value, "on of the pipeline", onLevel, func(f field) {
		e := entry{name: hookName(f.name), at: f.at, value: f.value}
		if f.value.kind != mapping {
			d.wrong(f, "a mapping", "{run: ./alarm.sh}")
			return
		}
		d.scope = scope{task: e.name, hook: true}
		t := d.task(e, e.name, hookLevel)
		d.scope = scope{}
		t.Hook, t.If, t.stable = f.name, hookConditions[f.name], []string{e.name} // it needs all other tasks
		d.hookTasks, d.hookEntries = append(d.hookTasks, t), append(d.hookEntries, e)
	})
}

// addHooks adds the needs of the hooks and appends the hooks to the tasks.
func (d *decoder) addHooks() {
	all := d.p.Tasks
	idle := idleTasks(all)
	var hooks, undos []string
	for i := range all {
		if all[i].Undoes != "" {
			undos = append(undos, all[i].Name)
		}
	}
	for i, t := range d.hookTasks {
		e := d.hookEntries[i]
		if at, taken := d.taken(e); taken {
			d.r.add(at, fmt.Sprintf("the task %s has the name of the one that %q of the key on makes", quote(t.Name), t.Hook), "rename it")
			continue
		}
		if len(all) == 0 {
			continue // the only task is a foreach without values: nothing runs
		}
		for k := range all {
			if name := all[k].Name; all[k].Undoes != "" {
				continue
			} else if t.Hook == "done" || t.Hook == "success" && !idle[name] || t.Hook == "failure" && !all[k].AllowFailure {
				t.Needs = append(t.Needs, name)
			}
		}
		if t.After = undos; t.Hook == "done" {
			t.Needs, t.After = slices.Concat(t.Needs, undos), nil
		}
		switch {
		case t.Hook == "failure" && len(t.Needs) == 0:
			d.r.add(e.at, `"failure" of the key on never runs: every task has allow_failure`, "remove it, or allow_failure of a task")
		case t.Hook == "done": // runs after the other hooks
		default:
			hooks = append(hooks, t.Name)
		}
		d.p.Tasks = append(d.p.Tasks, t)
		d.entries = append(d.entries, e)
	}
	if n := len(d.p.Tasks); n > len(all) {
		if i := slices.IndexFunc(d.p.Tasks[len(all):n], func(t Task) bool { return t.Hook == "done" }); i >= 0 {
			t := &d.p.Tasks[len(all)+i]
			t.Needs = append(t.Needs, hooks...)
		}
	}
}

// taken returns the place of a task that already has the name of a hook. For an
// included task it returns the hook's place.
func (d *decoder) taken(hook entry) (spot, bool) {
	if d.included[hook.name] != "" {
		return hook.at, true
	}
	if _, taken := d.nodes[hook.name]; taken {
		return hook.at, true
	}
	at, taken := d.places[hook.name]
	return at, taken
}

// idleTasks returns the tasks that do not run in a job without failures: those
// with if: failed, and their dependents. The success hook does not wait for them.
func idleTasks(tasks []Task) map[string]bool {
	byName := make(map[string]*Task, len(tasks))
	for i := range tasks {
		byName[tasks[i].Name] = &tasks[i]
	}
	idle, known := make(map[string]bool), make(map[string]bool, len(tasks))
	var look func(t *Task) bool
	look = func(t *Task) bool {
		if known[t.Name] {
			return idle[t.Name]
		}
		known[t.Name] = true // cycles were reported
		is := t.If == task.OnFailed
		for _, need := range t.Needs {
			if other := byName[need]; other != nil && t.If == "" && look(other) {
				is = true
			}
		}
		if is {
			idle[t.Name] = true
		}
		return is
	}
	for i := range tasks {
		look(&tasks[i])
	}
	return idle
}
