package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// screen redraws frames in place at the bottom of a terminal, below lines that
// stay. Each drawing is one write.
//
// A progress bar library (mpb) was tried and rejected. It draws nothing on a
// terminal without a size (0×0). It counts the lines to go back by the width at
// drawing time, although a narrowed terminal has folded them since. It hides write
// errors, blocks writers of lines above while the terminal is slow, and its
// goroutines end after its Wait.
type screen struct {
	out     io.Writer
	drawn   []string // the lines above the cursor
	columns int      // width of the terminal at that time
}

// Control sequences. Wrapping is off while a frame is drawn: if a terminal
// measures a character wider than package text does, it cuts the line and the
// frame keeps its height.
const (
	wrapOff   = "\x1b[?7l"
	wrapOn    = "\x1b[?7h"
	clearLine = "\r\x1b[2K"
	clearDown = "\r\x1b[J"
)

// draw prints the lines above, which stay, and a frame, which the next one
// replaces. columns and rows are the terminal's size.
func (s *screen) draw(above, frame []string, columns, rows int) error {
	if len(above) == 0 && columns == s.columns && slices.Equal(frame, s.drawn) {
		return nil
	}
	var b strings.Builder
	if up := min(s.height(columns), rows-1); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	if len(above) > 0 || columns != s.columns {
		b.WriteString(clearDown)
	}
	for _, line := range above { // these may wrap
		b.WriteString(line + "\n")
	}
	b.WriteString(wrapOff)
	for _, line := range frame {
		b.WriteString(clearLine + line + "\n")
	}
	if len(frame) < len(s.drawn) {
		b.WriteString(clearDown)
	}
	b.WriteString(wrapOn)
	s.drawn, s.columns = frame, columns
	_, err := io.WriteString(s.out, b.String())
	return err
}

// height returns the current height of the last frame, in rows: a terminal that
// became narrower has folded its lines.
func (s *screen) height(columns int) int {
	if columns >= s.columns {
		return len(s.drawn)
	}
	rows := 0
	for _, line := range s.drawn {
		w := text.Width(strings.Join(text.Lines(line), "")) // without colours
		rows += max(1, (w+columns-1)/columns)
	}
	return rows
}
