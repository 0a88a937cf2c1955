package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/builtin"
)

// A task with foreach_from is one task of the job, with the type builtin.Foreach.
// When it runs, it creates its nodes from the output of the named task.

// from is a foreach_from entry of the file.
type from struct {
	field
	task string // the task that has the entry
}

func (d *decoder) foreachFrom(f field, task string, to *each) {
	to.from = d.filledText(f, "list")
	if to.from != "" {
		d.froms = append(d.froms, from{f, task})
	}
}

// checkForeachFrom refuses keys that contradict foreach_from.
func (d *decoder) checkForeachFrom(e entry, of string) {
	found, ok := e.value.get("foreach_from")
	if !ok {
		return
	}
	for _, w := range worksOf(e.value) {
		if w.name == "approve" || w.name == "type" {
			d.r.add(found.at, fmt.Sprintf(`%s has "foreach_from" and %s`, of, quote(w.name)), "only a command or a request (run, http) can run for each value of an earlier task")
		}
	}
	if cond, ok := e.value.get("if"); ok {
		d.r.add(cond.at, fmt.Sprintf(`%s has "if" and "foreach_from"`, of), "remove if: there are values only when what it needs has succeeded")
	}
	if len(e.name) > maxEachName {
		d.r.add(e.at, fmt.Sprintf("the name of %s is %d bytes long, and with foreach_from at most %d are allowed", of, len(e.name), maxEachName), "shorten it: its nodes have their values in their names")
	}
}

// checkFroms requires each foreach_from to name a need with an output.
func (d *decoder) checkFroms() {
	for i := range d.froms {
		f := &d.froms[i]
		name := f.value.text
		needed := slices.ContainsFunc(d.needs[f.task], func(need field) bool { return need.value.text == name })
		s := d.shapes[name]
		switch {
		case !needed:
			d.fromNoNeed(f, name)
		case s == nil: // its mistake was reported
		case s.each != "":
			d.r.add(f.spot(), fmt.Sprintf("%s names %s, which has %s: its nodes have no output together", f.label(), quote(name), quote(s.each)), "put a task between them that writes the values")
		case s.asks:
			d.r.add(f.spot(), fmt.Sprintf("%s names %s, which waits for a person and puts out no values", f.label(), quote(name)), "name a task that writes a value per line, or a JSON array")
		}
		for _, other := range d.names {
			if strings.HasPrefix(other, f.task+"[") && strings.HasSuffix(other, "]") {
				d.r.add(d.places[other], fmt.Sprintf("task %s is named as a node of %s would be", quote(other), quote(f.task)), "rename it")
			}
		}
	}
}

func (d *decoder) fromNoNeed(f *from, name string) {
	_, known := d.places[name]
	known = known || d.included[name] != ""
	d.r.addSuggesting(f.spot(), fmt.Sprintf("%s names %s, which is none of its needs", f.label(), quote(name)), func() string {
		var needs []string
		for _, need := range d.needs[f.task] {
			needs = append(needs, need.value.text)
		}
		if best := nearest(name, needs); best != "" && !known {
			return fmt.Sprintf("did you mean %q?", best)
		}
		if !known || name == f.task || len(needs) > 8 {
			return "name a task that it needs"
		}
		needs = append(needs, name)
		for i := range needs {
			needs[i] = cut(needs[i])
		}
		return fmt.Sprintf("write needs: [%s]", strings.Join(needs, ", "))
	})
}

// checkForeach validates the input of a task with foreach_from, unless a param is
// missing.
func (d *decoder) checkForeach(e entry, of string, def definition) {
	if d.lacksParam() {
		return
	}
	if request, ok := e.value.get("http"); ok {
		e, of = request, "http of "+of
	}
	d.validate(e, of, def.foreach())
}

// Drawn returns the task's name for drawings. A task with foreach_from also names
// the source of its values.
func (t *Task) Drawn() string {
	if t.From == "" {
		return t.Name
	}
	return fmt.Sprintf("%s (one for each value of %s)", t.Name, t.From)
}

// foreach returns the input of a task with foreach_from.
func (d definition) foreach() builtin.ForeachInput {
	in := builtin.ForeachInput{
		Task: d.ForeachFrom, Values: d.Values, Run: d.Run, Request: d.Request,
		MaxParallel: d.MaxParallel, ConcurrencyKey: d.ConcurrencyKey,
	}
	if d.Values != nil {
		in.Task = ""
	}
	if d.ConcurrencyKey != "" {
		in.ConcurrencyLimit = max(1, d.ConcurrencyLimit)
	}
	return in
}
