package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// checkNeeds checks the needs of each task and spreads them to its nodes.
func (d *decoder) checkNeeds() {
	graph := make(map[string][]string, len(d.names))
	for _, task := range d.names {
		of := "task " + quote(task)
		first := make(map[string]spot)
		for _, need := range d.needs[task] {
			name, at := need.value.text, need.spot()
			_, known := d.places[name]
			known = known || d.included[name] != ""
			before, again := first[name]
			switch {
			case name == task:
				d.r.add(at, of+" needs itself", "remove it")
			case !known:
				where := "the pipeline"
				if d.r.file != "" {
					where = "this included file"
				}
				d.r.addSuggesting(at, fmt.Sprintf("%s needs %s, which is not in %s", of, quote(name), where), func() string { return d.adviseNeed(name) })
			case again:
				d.r.add(at, fmt.Sprintf("%s needs %s twice, first in line %d", of, quote(name), before.line), "remove one of them")
			default:
				first[name] = at
				graph[task] = append(graph[task], name)
			}
		}
	}
	d.checkCycles(graph)
	if !d.failed() {
		d.spread()
	}
}

// adviseNeed also recognizes "a, b" and "a b" written for [a, b].
func (d *decoder) adviseNeed(name string) string {
	names := strings.FieldsFunc(name, func(r rune) bool { return r == ',' || r == ' ' })
	all := len(names) > 1
	for _, n := range names {
		_, known := d.places[n]
		all = all && known
	}
	if all {
		return fmt.Sprintf("write [%s]", strings.Join(names, ", "))
	}
	if task, _, node := strings.Cut(name, "["); node && d.shapes[task] != nil {
		return fmt.Sprintf("write %s: that is all of its nodes", task)
	}
	return adviseName(name, slices.Concat(d.names, slices.Sorted(maps.Keys(d.included))))
}

// checkCycles reports a few cycles, chosen so that removing one need from each
// breaks it.
func (d *decoder) checkCycles(graph map[string][]string) {
	const few = 5
	for range few {
		cycle := task.FindCycle(d.names, graph)
		if cycle == nil {
			return
		}
		from, to := cycle[0], cycle[1]
		at := d.places[from]
		for _, need := range d.needs[from] {
			if need.value.text == to {
				at = need.spot()
			}
		}
		d.r.add(at, "the needs form a cycle: "+printCycle(cycle), "each task waits for the next one for ever; remove one of these needs")
		graph[from] = slices.DeleteFunc(graph[from], func(n string) bool { return n == to })
	}
}

// printCycle omits the middle of a long cycle.
func printCycle(cycle []string) string {
	const most = 12
	names := make([]string, 0, most)
	for _, n := range cycle {
		names = append(names, cut(n))
	}
	if left := len(names) - most; left > 0 {
		names = slices.Concat(names[:most/2], []string{fmt.Sprintf("(%d more)", left)}, names[len(names)-most/2:])
	}
	return task.CycleString(names)
}
