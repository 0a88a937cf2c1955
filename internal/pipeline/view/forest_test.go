package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/task"
)

// drawn returns the shape of the named tasks of a job, or of all tasks.
func drawn(m *model, limit int, shown ...string) string {
	nodes := m.forest().order
	if len(shown) > 0 {
		nodes = nil
		for _, n := range m.forest().order {
			for _, name := range shown {
				if n.key == name {
					nodes = append(nodes, n)
				}
			}
		}
	}
	var b strings.Builder
	for i, branch := range m.forest().branches(nodes, limit) {
		b.WriteString(branch + nodes[i].key + "\n")
	}
	return b.String()
}

func (j *Job) model() *model { return newModel(j.Snapshot(), j.Needs, nil) }

func TestForest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		tasks []string
		limit int
		shown []string
		want  string
	}{
		{"no needs", []string{"a", "b"}, 9, nil, `
a
b
`},
		{"diamond: the first of equals", []string{"a", "b < a", "c < a", "d < b c"}, 9, nil, `
a
├─ b
│  └─ d
└─ c
`},
		{"under the deepest need", []string{"a", "x", "b < a", "c < x b", "d < a c"}, 9, nil, `
a
└─ b
   └─ c
      └─ d
x
`},
		{"needs that are defined later", []string{"last < mid", "mid < first", "first"}, 9, nil, `
first
└─ mid
   └─ last
`},
		{"levels", []string{"a", "b < a", "c < b", "d < c", "e < d", "f < b", "g < a"}, 2, nil, `
a
├─ b
│  ├─ c
…  └─ d
…  └─ e
│  └─ f
└─ g
`},
		{"one level", []string{"a", "b < a", "c < b", "d < a"}, 1, nil, `
a
├─ b
…  c
└─ d
`},
		{"without some", []string{"a", "b < a", "c < b", "d < b", "e < a", "f"}, 9, []string{"a", "c", "d", "f"}, `
a
├─ c
└─ d
f
`},
		{"without their root", []string{"a", "b < a", "c < b", "d < a", "e < d"}, 9, []string{"b", "c", "e"}, `
b
└─ c
e
`},
		{"a need that is not there", []string{"a < ghost", "b < a a"}, 9, nil, `
a
└─ b
`},
		{"a circle, and one that needs it", []string{"a < b", "b < a", "c < b", "d < d"}, 9, nil, `
a
b
c
d
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := drawn(JobOf(tc.tasks...).model(), tc.limit, tc.shown...); got != tc.want[1:] {
				t.Errorf("drawn:\n%swant:\n%s", got, tc.want[1:])
			}
		})
	}
}

func TestForestOfCallers(t *testing.T) {
	t.Parallel()
	j := JobOf("a", "b < a", "c", "d", "e")
	j.Task("c").ParentID = j.Task("b").ID
	j.Task("d").ParentID = j.Task("e").ID // no stored job has a cycle of callers; it must not hang
	j.Task("e").ParentID = j.Task("d").ID
	want := "a\n└─ b\n   └─ c\n"
	if got := drawn(j.model(), 9); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 5 {
		t.Errorf("drawn:\n%swant:\n%sand d, e", got, want)
	}
}

func TestForestOfAChain(t *testing.T) {
	t.Parallel()
	tasks := []string{"0"}
	for i := range 50_000 {
		tasks = append(tasks, fmt.Sprintf("%d < %d", i+1, i))
	}
	m := JobOf(tasks...).model()
	lines := m.forest().branches(m.forest().order, 3)
	if last := lines[len(lines)-1]; last != "…     └─ " {
		t.Errorf("the last of the chain hangs on %q", last)
	}
	if m.nodes[7].state != task.Pending {
		t.Errorf("a task of the chain is %s", m.nodes[7].state)
	}
}
