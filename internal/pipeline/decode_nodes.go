package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/value"
	"github.com/goweaver/weaver/task"
)

// shape is a task of the file after its expansion into nodes.
type shape struct {
	name  string
	cond  task.EdgeKind
	each  string   // the key that expands it, or ""
	glob  bool     // its nodes depend on the files present
	asks  bool     // it is an approval
	nodes []string // without an expansion, the task itself
	fate  fate
}

// fate tells dependents how to treat a task that does not run.
type fate int

const (
	unknown fate = iota
	runs
	succeeds // has no nodes: counts as a success
	unneeded // left out
)

// maxEdges is the maximum number of needs of all nodes together.
const maxEdges = 200_000

// readTask reads a task of the file and adds its nodes.
func (d *decoder) readTask(e entry) {
	of := "task " + quote(e.name)
	if e.value.kind != mapping {
		d.notTask(e, of)
		return
	}
	before := len(d.r.all)
	d.scope = scope{}
	each, ok := d.each(e, of)
	d.scope = scope{task: e.name}
	if each != nil {
		d.scope.each, d.scope.names = each.name, each.names
	}
	t := d.task(e, e.name, taskLevel) // as the file has it
	s := &shape{name: e.name, cond: t.If, asks: t.Approve != nil}
	if each != nil {
		s.each = each.name
	}
	d.shapes[e.name] = s
	switch {
	case len(d.r.all) > before || !ok:
	case each == nil:
		d.add(e, s, t)
	case each.name == "foreach_from":
		t.From, t.MaxParallel = each.from, each.parallel
		d.add(e, s, t)
	default:
		d.addNodes(e, s, each, t)
	}
}

func (d *decoder) add(e entry, s *shape, t Task) {
	if _, twice := d.nodes[t.Name]; twice && d.included[e.name] == "" { // otherwise addIncluded reports it
		d.r.add(e.at, "two tasks are named "+quote(t.Name), "rename one of them")
		return
	}
	d.nodes[t.Name] = struct{}{}
	s.nodes = append(s.nodes, t.Name)
	d.p.Tasks = append(d.p.Tasks, t)
	d.entries = append(d.entries, e)
}

// addNodes adds the nodes of an expanded task. It reads the task again for each
// value, so that filled-in texts are checked like written ones.
func (d *decoder) addNodes(e entry, s *shape, each *each, whole Task) {
	of := field{each.entry, "task " + quote(e.name)}
	size := e.value.size - each.value.size // size of each node
	switch n := len(each.nodes); {
	case len(e.name) > maxEachName:
		d.r.add(e.at, fmt.Sprintf("the name of %s is %d bytes long, and with %s at most %d are allowed", of.of, len(e.name), each.name, maxEachName), "shorten it: its nodes have their values in their names")
		return
	case n > MaxTasks:
		d.tooMany(of, n)
		return
	case len(d.p.Tasks)+n > MaxTasks:
		d.r.add(of.at, fmt.Sprintf("%s gives %d nodes, which makes %d tasks, and at most %d are allowed", of.label(), n, len(d.p.Tasks)+n, MaxTasks), "split it into several pipelines")
		return
	case n*size > maxShared:
		d.r.add(of.at, fmt.Sprintf("%s is %d bytes long, and each of its %d nodes would have a copy", of.of, size, n), "keep long texts in files of their own")
		return
	}
	if each.name == "foreach_glob" {
		s.glob = true
		whole.patterns, whole.MaxParallel = each.patterns, each.parallel
		d.p.globs = append(d.p.globs, whole)
	}
	warnings := d.warnings
	d.warnings = &reporter{src: d.r.src} // the task's warnings were recorded
	defer func() { d.warnings = warnings }()
	before := len(d.r.all)
	for _, n := range each.nodes {
		d.scope.item, d.scope.matrix, d.scope.node = n.item, n.matrix, true
		t := d.task(e, value.NodeName(e.name, n.label), taskLevel)
		t.Group, t.MaxParallel = e.name, each.parallel
		if len(d.r.all) == before {
			d.add(e, s, t)
		}
		if len(d.r.all) > before {
			return // report one node only
		}
	}
}

// spread gives each node its needs: all nodes of the tasks that its task needs. It
// leaves out tasks that can never run.
func (d *decoder) spread() {
	edges := 0
	needs := make(map[string][]string, len(d.shapes))
	stable := make(map[string][]string)
	for _, name := range d.names {
		s := d.shapes[name]
		if d.fateOf(s) == unneeded {
			at := d.places[name]
			d.warnings.add(at, fmt.Sprintf("task %s is left out", quote(name)), "what it needs has no nodes, so nothing of it can fail")
		}
		for _, need := range d.needs[name] {
			on := d.shapes[need.value.text]
			if on.fate == runs {
				needs[name] = append(needs[name], on.nodes...)
			}
			if on.glob {
				stable[name] = append(stable[name], on.name)
			} else {
				stable[name] = append(stable[name], on.nodes...)
			}
		}
		if edges += len(needs[name]) * len(s.nodes); edges > maxEdges {
			d.r.add(d.places[name], fmt.Sprintf("task %s has %d nodes that need %d each: the pipeline has more than %d needs", quote(name), len(s.nodes), len(needs[name]), maxEdges),
				"put a task between them that needs all of these, and need that one")
			return
		}
	}
	all, entries := d.p.Tasks, d.entries
	d.p.Tasks, d.entries = nil, nil
	for i, t := range all {
		name := entries[i].name
		t.Needs = needs[name]
		if len(d.p.globs) > 0 {
			t.stable = stable[name]
		}
		if d.shapes[name].fate == unneeded {
			d.p.idle = append(d.p.idle, t)
			continue
		}
		d.p.Tasks, d.entries = append(d.p.Tasks, t), append(d.entries, entries[i])
	}
	for i := range d.p.globs {
		if d.p.globs[i].from == nil { // an included file has set its own
			d.p.globs[i].stable = stable[d.p.globs[i].Name]
		}
	}
}

// fateOf computes the fate of a task. The needs have no cycles.
func (d *decoder) fateOf(s *shape) fate {
	if s.fate != unknown {
		return s.fate
	}
	running, skipped := 0, 0
	for _, need := range d.needs[s.name] {
		switch d.fateOf(d.shapes[need.value.text]) {
		case runs:
			running++
		case unneeded:
			skipped++
		}
	}
	s.fate = runs
	switch {
	case s.cond == task.OnFailed && running == 0, s.cond == "" && skipped > 0:
		s.fate = unneeded
	case len(s.nodes) == 0:
		s.fate = succeeds
	}
	return s.fate
}

// Globs reports whether the nodes of a task depend on the files present.
func (p *Pipeline) Globs() bool { return len(p.globs) > 0 }

// lasting returns the tasks independent of the files present: an unexpanded task
// in place of the nodes of a foreach_glob.
func (p *Pipeline) lasting() []*Task {
	globbed := make(map[string]bool, len(p.globs))
	var all []*Task
	for i := range p.globs {
		globbed[p.globs[i].Name] = true
		all = append(all, &p.globs[i])
	}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; !globbed[t.Group] && (t.Undoes == "" || !globbed[strings.TrimPrefix(t.Group, undoName(""))]) {
			all = append(all, &p.Tasks[i])
		}
	}
	for i := range p.idle {
		if len(p.globs) > 0 && !globbed[p.idle[i].Group] {
			all = append(all, &p.idle[i])
		}
	}
	return all
}

func (t *Task) lastingNeeds() []string {
	if t.stable != nil {
		return t.stable
	}
	return t.Needs
}

// envFor returns the environment that a task has from its file.
func (p *Pipeline) envFor(t *Task) map[string]string {
	env := p.defaults(t).Env
	if !t.Templates {
		return env
	}
	return literals(env)
}

// parallelKey returns the concurrency key of the nodes of a task.
func (p *Pipeline) parallelKey(identity, group string) string {
	sum := sha256.Sum256([]byte(identity))
	return p.Name + "/" + group + "@" + hex.EncodeToString(sum[:4])
}
