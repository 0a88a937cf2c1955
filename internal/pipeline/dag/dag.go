// Package dag lays out and draws a directed acyclic graph of named tasks: by
// level as text, and as Graphviz or Mermaid source. It knows no pipelines.
package dag

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// Waves groups names by level. Names in the first wave need no other name;
// names in a later wave need at least one of the wave before. Each wave keeps the
// order of names. Waves ignores needs outside names and omits names in a cycle.
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

// CollapseFrom is the minimum size of a group that [Collapse] shows as one name.
const CollapseFrom = 13

// Collapse replaces the names of each large group by one name with the group's
// size, as in "convert (300)". group maps a name to its group.
func Collapse(names []string, group map[string]string) []string {
	if len(names) < CollapseFrom || len(group) == 0 {
		return names
	}
	count := make(map[string]int)
	for _, name := range names {
		count[group[name]]++
	}
	shown := make([]string, 0, len(names))
	seen := make(map[string]bool)
	for _, name := range names {
		g := group[name]
		switch {
		case g == "" || count[g] < CollapseFrom:
			shown = append(shown, name)
		case !seen[g]:
			seen[g] = true
			shown = append(shown, fmt.Sprintf("%s (%d)", g, count[g]))
		}
	}
	return shown
}

// Graph is a graph to draw.
type Graph struct {
	Name  string
	Tasks int                 // number of tasks; nodes may stand for several
	Nodes []string            // in the order to draw
	Needs map[string][]string // by node
	OnAll map[string]bool     // nodes that need all others: List names no single need
}

const (
	lineWidth = 80 // columns
	maxPadded = 28 // a longer name does not push the needs of the others to the right
)

// List draws the graph by level, each node with an arrow from its needs. It
// writes ASCII except for the names.
func (g *Graph) List() string {
	waves := Waves(g.Nodes, g.Needs)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", g.Name, text.Plural(g.Tasks, "task"))
	if len(waves) > 1 {
		fmt.Fprintf(&b, " in %d levels", len(waves))
	}
	b.WriteString("\n\n")
	widest := 0
	for _, name := range g.Nodes {
		if w := text.Width(name); w <= maxPadded && len(g.Needs[name]) > 0 && !g.OnAll[name] {
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
			switch {
			case len(g.Needs[name]) == 0:
				b.WriteString(line + "\n")
			case g.OnAll[name]:
				b.WriteString(line + "  <- all tasks\n")
			default:
				pad := max(0, widest-text.Width(name))
				b.WriteString(arrow(line+strings.Repeat(" ", pad)+"  <- ", g.Needs[name], margin+2+widest+len("  <- ")))
			}
		}
	}
	return b.String()
}

// arrow appends names to the beginning of a line. Names that do not fit continue
// at a column of the next line.
func arrow(begun string, names []string, column int) string {
	var b strings.Builder
	line, empty := begun, true
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if !empty && text.Width(line)+1+text.Width(name) > lineWidth {
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

// DOT writes the graph in the Graphviz language, with edges from a need to the
// node that needs it.
func (g *Graph) DOT() string {
	quote := func(name string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return g.draw("digraph "+quote(g.Name)+" {\n  rankdir=LR\n  node [shape=box]\n", "->", "}\n", func(_ int, name string) (id, declared string) {
		return quote(name), quote(name)
	})
}

// mermaidText escapes the characters that Mermaid reads as markup.
var mermaidText = strings.NewReplacer(`#`, "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", `\`, "#92;")

// Mermaid writes the graph as a Mermaid flowchart, with edges from a need to the
// node that needs it.
func (g *Graph) Mermaid() string {
	return g.draw("flowchart LR\n", "-->", "", func(i int, name string) (id, declared string) {
		id = fmt.Sprintf("t%d", i+1)
		return id, fmt.Sprintf(`%s["%s"]`, id, mermaidText.Replace(name))
	})
}

// draw writes a line per node and then a line per need. node returns the name of
// the i-th node in edges and its declaration.
func (g *Graph) draw(head, edge, foot string, node func(i int, name string) (id, declared string)) string {
	var b strings.Builder
	b.WriteString(head)
	ids := make(map[string]string, len(g.Nodes))
	for i, name := range g.Nodes {
		id, declared := node(i, name)
		ids[name] = id
		b.WriteString("  " + declared + "\n")
	}
	for _, name := range g.Nodes {
		for _, need := range g.Needs[name] {
			fmt.Fprintf(&b, "  %s %s %s\n", ids[need], edge, ids[name])
		}
	}
	return b.String() + foot
}
