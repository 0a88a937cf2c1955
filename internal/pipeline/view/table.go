package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// column is a column of the table. It is hidden while it leaves less room to the
// names than its limit; 0 means never.
type column struct {
	head   string
	leaves int
	cells  []string
}

func (c *column) width() int {
	w := text.Width(c.head)
	for _, cell := range c.cells {
		w = max(w, text.Width(cell))
	}
	return w
}

// minNames is the minimum width of the names next to the attempts, in columns.
const minNames = 20

// table returns the tasks: failures first, then the longest.
func (s *summary) table(b *strings.Builder) {
	rows := s.rows()
	more := max(0, len(rows)-maxRows)
	rows = rows[:len(rows)-more]
	names := column{head: "TASK"}
	state, took := column{head: "STATE"}, column{head: "TOOK"}
	tries, share := column{head: "ATTEMPTS", leaves: minNames}, column{leaves: maxName}
	longest := time.Duration(0)
	for _, t := range rows {
		longest = max(longest, s.duration(t))
	}
	for _, t := range rows {
		names.cells = append(names.cells, taskName(t, maxName))
		state.cells = append(state.cells, stateName(t))
		tries.cells = append(tries.cells, s.pastOf(t).String())
		took.cells = append(took.cells, s.took(t))
		share.cells = append(share.cells, bar(s.duration(t), longest))
	}
	columns := []*column{&state, &tries, &took, &share}
	for i := len(columns) - 1; i >= 0; i-- {
		if s.room(columns) < min(columns[i].leaves, names.width()) {
			columns = slices.Delete(columns, i, i+1)
		}
	}
	room := max(4, min(s.room(columns), names.width()))

	line := func(name string, cell func(*column) string, paint func(column *column, text string) string) {
		row, blank := paint(&names, text.Cut(name, room)), room-text.Width(text.Cut(name, room))
		for _, c := range columns {
			content := cell(c)
			if content != "" {
				row += strings.Repeat(" ", blank+gap) + paint(c, content)
				blank = 0
			} else {
				blank += gap
			}
			blank += c.width() - text.Width(content)
		}
		b.WriteString(row + "\n")
	}
	line(names.head, func(c *column) string { return c.head }, func(_ *column, head string) string { return s.paint.Paint(text.Bold, head) })
	for i, t := range rows {
		line(names.cells[i], func(c *column) string { return c.cells[i] }, func(c *column, content string) string {
			switch c {
			case &state:
				return s.paint.Paint(text.StateColor(t.State), content)
			case &share:
				return s.paint.Paint(text.Faint, content)
			}
			return content
		})
	}
	if more > 0 {
		fmt.Fprintf(b, "and %d more\n", more)
	}
}

// stateName returns the state as shown in the table.
func stateName(t *weaver.TaskInfo) string {
	if t.End().Allowed() {
		return string(t.State) + " (allowed)"
	}
	return string(t.State)
}

// room returns the width that columns leave to the names.
func (s *summary) room(columns []*column) int {
	room := s.columns
	for _, c := range columns {
		room -= gap + c.width()
	}
	return room
}

// rows returns the tasks in the order of the table.
func (s *summary) rows() []*weaver.TaskInfo {
	rows := make([]*weaver.TaskInfo, len(s.st.Tasks))
	for i := range s.st.Tasks {
		rows[i] = &s.st.Tasks[i]
	}
	rank := func(t *weaver.TaskInfo) int {
		switch t.State {
		case task.Failed:
			return 0
		case task.Blocked:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b *weaver.TaskInfo) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(s.duration(b), s.duration(a)),
		)
	})
	return rows
}

// took returns the duration of a task, or "" if it did not start.
func (s *summary) took(t *weaver.TaskInfo) string {
	if t.StartedAt.IsZero() || t.State != task.Running && t.FinishedAt.IsZero() {
		return ""
	}
	return text.Took(s.duration(t))
}

// bar draws a duration as a share of the longest.
func bar(d, longest time.Duration) string {
	if longest <= 0 {
		return ""
	}
	const full = 20
	n := int(full * d / longest)
	if n == 0 && d > 0 {
		n = 1
	}
	return strings.Repeat("#", n)
}
