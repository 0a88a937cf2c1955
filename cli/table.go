package cli

import (
	"io"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// cell is one field of a table. Its colour does not count as width, which is
// why text/tabwriter will not do.
type cell struct{ text, color string }

func plain(text string) cell { return cell{text: text} }

// table is rows of aligned columns; the last column is not padded.
type table struct {
	head []string
	rows [][]cell
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// print writes the table behind a margin, without columns that are empty in
// every row.
func (t *table) print(w io.Writer, p text.Painter, margin string) {
	widths := make([]int, len(t.head))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], text.Width(c.text))
		}
	}
	header := make([]cell, len(t.head))
	for i, h := range t.head {
		header[i] = cell{h, text.Bold}
	}
	for _, row := range append([][]cell{header}, t.rows...) {
		var line, gap strings.Builder
		for i, c := range row {
			if widths[i] == 0 {
				continue
			}
			if c.text != "" {
				line.WriteString(gap.String())
				line.WriteString(p.Paint(c.color, c.text))
				gap.Reset()
			}
			pad := max(widths[i], text.Width(t.head[i])) - text.Width(c.text)
			gap.WriteString(strings.Repeat(" ", pad+2))
		}
		_, _ = io.WriteString(w, margin+line.String()+"\n") // into memory
	}
}
