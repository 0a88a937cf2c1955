package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/pipeline/dag"
)

// Needs returns the tasks that each task waits for, by name.
func (p *Pipeline) Needs() map[string][]string {
	return p.needs(func(t *Task) []string {
		if t.Undoes != "" {
			return p.undoNeeds(t)
		}
		return slices.Concat(t.Needs, t.After)
	})
}

// DrawnNeeds is Needs without the needs that other edges imply: a hook needs only
// the tasks that no other task needs.
func (p *Pipeline) DrawnNeeds() map[string][]string {
	return p.needs(func(t *Task) []string {
		if t.Hook != "" || t.Undoes != "" {
			return p.drawnNeeds(t)
		}
		return slices.Concat(t.Needs, t.After)
	})
}

// ListedNeeds is Needs with the needs of undos as in DrawnNeeds.
func (p *Pipeline) ListedNeeds() map[string][]string {
	return p.needs(func(t *Task) []string {
		if t.Undoes != "" {
			return p.drawnUndo(t)
		}
		return slices.Concat(t.Needs, t.After)
	})
}

func (p *Pipeline) needs(of func(*Task) []string) map[string][]string {
	needs := make(map[string][]string, len(p.Tasks))
	for i := range p.Tasks {
		needs[p.Tasks[i].Name] = of(&p.Tasks[i])
	}
	return needs
}

// names returns the names of all tasks, in the order of the file.
func (p *Pipeline) names() []string {
	names := make([]string, 0, len(p.Tasks))
	for i := range p.Tasks {
		names = append(names, p.Tasks[i].Name)
	}
	return names
}

// Waves groups the tasks by level: see [dag.Waves].
func (p *Pipeline) Waves() [][]string { return dag.Waves(p.names(), p.Needs()) }

// Groups returns the foreach or matrix task of each of its nodes, by node.
func (p *Pipeline) Groups() map[string]string {
	groups := make(map[string]string)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Group != "" {
			groups[t.Name] = t.Group
		}
	}
	return groups
}

// Graph returns the graph to draw. A large group of nodes is one node.
func (p *Pipeline) Graph() *dag.Graph {
	g := &dag.Graph{Name: p.Name, Tasks: len(p.Tasks), Needs: make(map[string][]string, len(p.Tasks)), OnAll: make(map[string]bool)}
	groups, label := p.Groups(), make(map[string]string)
	own, first := make(map[string]*Task, len(p.Tasks)), make(map[string]*Task) // by name; the first node, by group
	for i := range p.Tasks {
		t := &p.Tasks[i]
		own[t.Name] = t
		if first[t.Group] == nil {
			first[t.Group] = t
		}
		if t.From != "" {
			label[t.Name] = t.Drawn()
		}
	}
	called := func(names []string) []string {
		names = slices.Clone(dag.Collapse(names, groups))
		for i, name := range names {
			names[i] = cmp.Or(label[name], name)
		}
		return names
	}
	shown := dag.Collapse(p.names(), groups)
	g.Nodes = called(p.names())
	for i, name := range shown {
		t := own[name]
		if t == nil { // a group: "convert (300)"
			t = first[strings.TrimSpace(name[:strings.LastIndexByte(name, '(')])]
		}
		g.Needs[g.Nodes[i]] = called(p.drawnNeeds(t))
		g.OnAll[name] = t.Hook != ""
	}
	return g
}

// drawnNeeds returns the needs of a task for drawings: for a hook, only the tasks
// that no other task needs, which lead to the rest.
func (p *Pipeline) drawnNeeds(t *Task) []string {
	if t.Undoes != "" {
		return p.drawnUndo(t)
	}
	if t.Hook == "" {
		return t.Needs
	}
	needed := make(map[string]bool, len(p.Tasks))
	for i := range p.Tasks {
		if other := &p.Tasks[i]; other.Undoes != "" {
			continue
		} else if other.Hook == "" || t.Hook == "done" && other != t {
			for _, need := range other.Needs {
				needed[need] = true
			}
		}
	}
	for _, undos := range p.undosBefore() {
		for _, undo := range undos {
			needed[undo] = true
		}
	}
	return slices.DeleteFunc(slices.Concat(t.Needs, t.After), func(need string) bool { return needed[need] })
}

// undoNeeds returns the needs of an undo: all tasks except undos and hooks, and
// the undos directly before it.
func (p *Pipeline) undoNeeds(t *Task) []string {
	var needs []string
	for i := range p.Tasks {
		if other := &p.Tasks[i]; other.Undoes == "" && other.Hook == "" {
			needs = append(needs, other.Name)
		}
	}
	return append(needs, p.undosBefore()[t.Name]...)
}

// undosBefore returns, by undo, the undos directly before it: those of the nearest
// dependents with an undo.
func (p *Pipeline) undosBefore() map[string][]string {
	dependents, undoOf := make(map[string][]string), make(map[string]string)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Undoes != "" {
			undoOf[t.Undoes] = t.Name
		}
		if t.Hook == "" {
			for _, need := range t.Needs {
				dependents[need] = append(dependents[need], t.Name)
			}
		}
	}
	before := make(map[string][]string, len(undoOf))
	for undone, undo := range undoOf {
		seen := make(map[string]bool)
		for open := slices.Clone(dependents[undone]); len(open) > 0; open = open[1:] {
			if name := open[0]; seen[name] {
				continue
			} else if seen[name] = true; undoOf[name] != "" {
				before[undo] = append(before[undo], undoOf[name])
			} else {
				open = append(open, dependents[name]...)
			}
		}
	}
	return before
}

// drawnUndo returns the needs of an undo for drawings: the task that it undoes and
// the undos directly before it.
func (p *Pipeline) drawnUndo(t *Task) []string {
	return append([]string{t.Undoes}, p.undosBefore()[t.Name]...)
}
