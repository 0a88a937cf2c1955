package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/task"
)

// recently is the time for which a finished task ranks as news.
const recently = 10 * time.Second

// interest ranks a task for display; lower comes first.
func (n *node) interest(now time.Time) int {
	switch {
	case n.state == task.Running:
		return 0
	case n.state == task.Failed || n.state == task.Blocked || n.retrying():
		return 1
	case n.state.Terminal() && now.Sub(n.ended) < recently:
		return 2
	case n.state == task.Ready:
		return 3
	case n.state == task.Pending && !n.waiting.OnTasks():
		return 4
	case n.state == task.Pending:
		return 5
	}
	return 6
}

// choose returns the tasks to draw on the given number of rows, in the order of
// the tree, and the rest.
func (m *model) choose(rows int, now time.Time) (shown, rest []*node) {
	all := m.forest().order
	if len(all) <= rows {
		return all, nil
	}
	rows = max(0, rows-1) // one row is for the total of the rest
	type ranked struct {
		node     *node
		interest int
		detail   int64
	}
	ranks := make([]ranked, len(all))
	for i, n := range all {
		r := ranked{node: n, interest: n.interest(now)}
		switch r.interest {
		case 2, 6:
			r.detail = int64(now.Sub(n.ended))
		case 5:
			r.detail = int64(m.forest().level[n])
		}
		ranks[i] = r
	}
	slices.SortStableFunc(ranks, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.interest, b.interest), cmp.Compare(a.detail, b.detail))
	})
	for i, r := range ranks {
		if i < rows {
			shown = append(shown, r.node)
		} else {
			rest = append(rest, r.node)
		}
	}
	at := m.forest().at
	slices.SortFunc(shown, func(a, b *node) int { return cmp.Compare(at[a], at[b]) })
	return shown, rest
}

func (m *model) forest() *forest {
	if m.shape == nil {
		m.shape = newForest(m.nodes, m.byID)
	}
	return m.shape
}

// count counts tasks by state.
func count(nodes []*node) explain.Tally {
	var t explain.Tally
	for _, n := range nodes {
		t.Add(n.end(), n.waiting)
	}
	return t
}
