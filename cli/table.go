package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// cell is one field of a table. Colour codes do not count as width, so text/tabwriter does not fit.
type cell struct {
	text, color string
	short       string // replaces the text if space is short; may be ""
}

func plain(text string) cell { return cell{text: text} }

func painted(text, color string) cell { return cell{text: text, color: color} }

// table holds rows with aligned columns; the last column is not padded.
type table struct {
	head  []string
	rows  [][]cell
	gives []give
}

// give allows fit to shrink a column: its cells to keep terminal columns, or with 0 to drop the column.
type give struct {
	column string
	keep   int
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// fit makes the table fit a terminal: first with the short forms of its cells, then with its gives in order, no more
// than needed. Other columns keep their width. A width of 0 or less is no limit.
func (t *table) fit(width int) {
	if width <= 0 || t.width() <= width {
		return
	}
	for _, row := range t.rows {
		for i := range row {
			row[i].text = cmp.Or(row[i].short, row[i].text)
		}
	}
	for _, g := range t.gives {
		excess := t.width() - width
		if excess <= 0 {
			return
		}
		i := slices.Index(t.head, g.column)
		keep := max(g.keep, t.columns()[i]-excess)
		if g.keep == 0 {
			keep = 0
		}
		for _, row := range t.rows {
			row[i].text = text.Cut(row[i].text, keep)
		}
	}
}

// columns returns the widths of the columns; a column that is empty in every row has width 0.
func (t *table) columns() []int {
	widths := make([]int, len(t.head))
	for _, row := range t.rows {
		for i, c := range row {
			if c.text != "" {
				widths[i] = max(widths[i], text.Width(c.text), text.Width(t.head[i]))
			}
		}
	}
	return widths
}

// width returns the width of the whole table.
func (t *table) width() int {
	sum := 0
	for _, w := range t.columns() {
		if w > 0 {
			sum += w + gap
		}
	}
	return sum - gap
}

// gap is the number of spaces between two columns.
const gap = 2

// print writes the table with a left margin, without columns that are empty in every row.
func (t *table) print(w io.Writer, p text.Painter, margin string) {
	widths := t.columns()
	header := make([]cell, len(t.head))
	for i, h := range t.head {
		header[i] = cell{text: h, color: text.Bold}
	}
	for _, row := range append([][]cell{header}, t.rows...) {
		var line, space strings.Builder
		for i, c := range row {
			if widths[i] == 0 {
				continue
			}
			if c.text != "" {
				line.WriteString(space.String())
				line.WriteString(p.Paint(c.color, c.text))
				space.Reset()
			}
			space.WriteString(strings.Repeat(" ", widths[i]-text.Width(c.text)+gap))
		}
		_, _ = io.WriteString(w, margin+line.String()+"\n") // in memory
	}
}
