package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
)

// frame is one drawing of the tree. It holds copies, so that the model is unlocked
// while the lines are built.
type frame struct {
	rows  []row
	rest  string // of the tasks without a row, or ""
	tally explain.Tally
	since time.Duration
}

type row struct {
	branch, glyph, name, long, short, try, note, color string
}

// A frame leaves the last line of the terminal to the cursor, and one line to the
// total.
const linesBeside = 2

func (m *model) frame(columns, lines int, begun, now time.Time) *frame {
	shown, rest := m.choose(lines-linesBeside, now)
	f := &frame{tally: count(m.nodes), since: now.Sub(begun)}
	branches := m.forest().branches(shown, max(1, columns/13))
	for i, n := range shown {
		r := row{branch: branches[i], glyph: n.glyph(), name: n.name, note: n.note(), color: n.color()}
		r.long, r.short = n.status(now)
		if try := n.try(); try > 1 {
			r.try = fmt.Sprintf("try %d", try)
			if n.max > 0 {
				r.try += fmt.Sprintf("/%d", n.max)
			}
		}
		f.rows = append(f.rows, r)
	}
	if unshown := count(rest); len(rest) > 0 && lines > linesBeside {
		if len(shown) == 0 {
			f.rest = fmt.Sprintf("%s: %s", text.Plural(len(rest), "task"), unshown.Words())
		} else {
			f.rest = fmt.Sprintf("… %d more: %s", len(rest), unshown.Words())
		}
	}
	return f
}

// Widths of the tree, in columns. A screen narrower than narrow shows short
// states. A note with less than minNote columns is not shown.
const (
	narrow   = 60
	minNote  = 10
	gap      = 2
	minState = len("succeeded 12.3s") // keeps the notes in place when states change
)

// text returns the frame's lines, at most as wide as the screen.
func (f *frame) text(p text.Painter, columns int) []string {
	var names, state int
	for _, r := range f.rows {
		state = max(state, text.Width(r.state(columns)))
		names = max(names, text.Width(r.branch)+2+text.Width(r.name))
	}
	if columns >= narrow {
		state = max(state, minState)
	}
	state = min(state, columns/2)
	names = min(names, columns-gap-state)
	if room := columns * 9 / 20; names > room && columns >= narrow {
		names = room
	}
	note := columns - names - gap - state - gap
	lines := make([]string, 0, len(f.rows)+2)
	for _, r := range f.rows {
		lines = append(lines, r.text(p, r.state(columns), names, state, note))
	}
	if f.rest != "" {
		lines = append(lines, p.Paint(text.Faint, text.Cut(f.rest, columns)))
	}
	return append(lines, f.total(p, columns))
}

func (r *row) state(columns int) string {
	if columns < narrow {
		return r.short
	}
	return r.long
}

func (r *row) text(p text.Painter, status string, names, state, note int) string {
	branch := text.Cut(r.branch, max(0, names-4))
	name := text.Cut(r.name, names-text.Width(branch)-2)
	line := p.Paint(text.Faint, branch) + p.Paint(r.color, r.glyph) + " " + name
	used := text.Width(branch) + 2 + text.Width(name)
	add := func(column int, color, part string) {
		if part != "" {
			line += strings.Repeat(" ", column-used) + p.Paint(color, part)
			used = column + text.Width(part)
		}
	}
	add(names+gap, r.color, text.Cut(status, state))
	if note >= minNote {
		at := names + gap + state + gap
		add(at, text.Yellow, text.Cut(r.try, note))
		if r.try != "" {
			note -= text.Width(r.try) + gap
			at += text.Width(r.try) + gap
		}
		if note >= minNote {
			add(at, text.Faint, text.Cut(r.note, note))
		}
	}
	return line
}

// total returns the last line: "[#####.....] 12/40 done · 3 running · 0:42".
func (f *frame) total(p text.Painter, columns int) string {
	t := &f.tally
	head := fmt.Sprintf("%d/%d done", t.Done(), t.Total)
	tail := watch(f.since)
	for _, part := range t.News() {
		longer := head + " · " + part.String()
		if text.Width(longer)+3+text.Width(tail) <= columns {
			head = longer
		}
	}
	line := head + " · " + tail
	bar := min(30, columns/4, columns-text.Width(line)-3)
	if bar < 5 || t.Total == 0 {
		return text.Cut(line, columns)
	}
	full := bar * t.Done() / t.Total
	color := text.Green
	if t.Failed+t.Cancelled > 0 {
		color = text.Red
	}
	return "[" + p.Paint(color, strings.Repeat("#", full)) + p.Paint(text.Faint, strings.Repeat(".", bar-full)) + "] " + line
}
