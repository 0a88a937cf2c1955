package pipeline

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// Waves groups tasks by level: those of the first wave need no other of the
// names, those of a later one need at least one of the wave before. Within a
// wave the order is that of names. Needs that are not among the names do not
// count. Tasks in a cycle, which no pipeline has, are left out.
func Waves(names []string, needs map[string][]string) [][]string {
	open := make(map[string]int, len(names))
	after := make(map[string][]string, len(names))
	for _, name := range names {
		open[name] = 0
	}
	for _, name := range names {
		for _, need := range needs[name] {
			if _, known := open[need]; known {
				open[name]++
				after[need] = append(after[need], name)
			}
		}
	}
	level := make(map[string]int, len(names)) // from 1
	var due []string
	for _, name := range names {
		if open[name] == 0 {
			level[name] = 1
			due = append(due, name)
		}
	}
	waves := 0
	for len(due) > 0 {
		name := due[0]
		due = due[1:]
		waves = max(waves, level[name])
		for _, next := range after[name] {
			if open[next]--; open[next] == 0 {
				level[next] = level[name] + 1 // due is sorted by level: the last need has the highest
				due = append(due, next)
			}
		}
	}
	all := make([][]string, waves)
	for _, name := range names {
		if l := level[name]; l > 0 {
			all[l-1] = append(all[l-1], name)
		}
	}
	return all
}

// drawn are the tasks as a graph shows them, with what they need: the nodes of a
// task as one when there are many.
func (p *Pipeline) drawn() (names []string, needs map[string][]string) {
	names, needs = p.collapsed()
	called := make(map[string]string)
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.From != "" {
			called[t.Name] = t.Drawn()
		}
	}
	if len(called) == 0 {
		return names, needs
	}
	call := func(name string) string { return cmp.Or(called[name], name) }
	renamed := make(map[string][]string, len(needs))
	for i, name := range names {
		for _, need := range needs[name] {
			renamed[call(name)] = append(renamed[call(name)], call(need))
		}
		names[i] = call(name)
	}
	return names, renamed
}

func (p *Pipeline) collapsed() (names []string, needs map[string][]string) {
	all := make([]string, 0, len(p.Tasks))
	for i := range p.Tasks {
		all = append(all, p.Tasks[i].Name)
	}
	groups := p.Groups()
	names, needs = Collapse(all, groups), make(map[string][]string, len(all))
	own, first := make(map[string]*Task, len(all)), make(map[string]*Task)
	for i := range p.Tasks {
		t := &p.Tasks[i]
		own[t.Name] = t
		if first[t.Group] == nil {
			first[t.Group] = t
		}
	}
	for _, name := range names {
		t := own[name]
		if t == nil {
			t = first[strings.TrimSpace(name[:strings.LastIndexByte(name, '(')])]
		}
		needs[name] = Collapse(p.drawnNeeds(t), groups)
	}
	return names, needs
}

// Waves are those of the pipeline's tasks.
func (p *Pipeline) Waves() [][]string {
	names := make([]string, 0, len(p.Tasks))
	for i := range p.Tasks {
		names = append(names, p.Tasks[i].Name)
	}
	return Waves(names, p.Needs())
}

const (
	graphWidth = 80 // columns of a line
	maxPadded  = 28 // a longer name does not push the needs of the others to the right
)

// List draws the graph as a list by level, each task with an arrow from its
// needs, in ASCII but for the names.
func (p *Pipeline) List() string {
	names, needs := p.drawn()
	waves, hooks := Waves(names, needs), p.hooks()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.Name, text.Plural(len(p.Tasks), "task"))
	if len(waves) > 1 {
		fmt.Fprintf(&b, " in %d levels", len(waves))
	}
	b.WriteString("\n\n")
	widest := 0
	for _, name := range names {
		if w := text.Width(name); w <= maxPadded && len(needs[name]) > 0 && !hooks[name] {
			widest = max(widest, w)
		}
	}
	margin := len(fmt.Sprint(len(waves)))
	for i, wave := range waves {
		for k, name := range wave {
			number := ""
			if k == 0 {
				number = fmt.Sprint(i + 1)
			}
			line := fmt.Sprintf("%-*s  %s", margin, number, name)
			if len(needs[name]) == 0 {
				b.WriteString(line + "\n")
				continue
			}
			if hooks[name] {
				b.WriteString(line + "  <- all tasks\n")
				continue
			}
			pad := max(0, widest-text.Width(name))
			b.WriteString(arrow(line+strings.Repeat(" ", pad)+"  <- ", needs[name], margin+2+widest+len("  <- ")))
		}
	}
	return b.String()
}

// arrow writes names behind what a line begins with; where they do not fit,
// they go on at a column of the next line.
func arrow(begun string, names []string, column int) string {
	var b strings.Builder
	line, empty := begun, true
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if !empty && text.Width(line)+1+text.Width(name) > graphWidth {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", column), true
		}
		if !empty {
			line += " "
		}
		line += name
		empty = false
	}
	return b.String() + line + "\n"
}

// DOT writes the graph in the language of Graphviz. Arrows lead from a need to
// what needs it.
func (p *Pipeline) DOT() string {
	q := func(name string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n  node [shape=box]\n", q(p.Name))
	names, needs := p.drawn()
	for _, name := range names {
		fmt.Fprintf(&b, "  %s\n", q(name))
	}
	for _, name := range names {
		for _, need := range needs[name] {
			fmt.Fprintf(&b, "  %s -> %s\n", q(need), q(name))
		}
	}
	return b.String() + "}\n"
}

// mermaidText has the entities of what Mermaid would read as markup.
var mermaidText = strings.NewReplacer(`#`, "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", `\`, "#92;")

// Mermaid writes the graph as a flowchart of Mermaid. Arrows lead from a need
// to what needs it.
func (p *Pipeline) Mermaid() string {
	names, needs := p.drawn()
	ids := make(map[string]string, len(names))
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, name := range names {
		ids[name] = fmt.Sprintf("t%d", i+1)
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", ids[name], mermaidText.Replace(name))
	}
	for _, name := range names {
		for _, need := range needs[name] {
			fmt.Fprintf(&b, "  %s --> %s\n", ids[need], ids[name])
		}
	}
	return b.String()
}
