package view

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/text"
)

// Terminal is a small terminal model. It understands the output of screen, and
// folds lines when it becomes narrower, as most terminals do. It keeps everything
// that scrolled out.
type Terminal struct {
	columns, rows int
	lines         [][]string // cells; "" follows a wide character
	folded        []bool     // the line continues in the next one
	y, x          int
	wrap          bool
	unknown       []string
}

// NewTerminal returns an empty terminal.
func NewTerminal(columns, rows int) *Terminal {
	return &Terminal{columns: columns, rows: rows, lines: [][]string{nil}, folded: []bool{false}, wrap: true}
}

// Size is a Config.Size.
func (s *Terminal) Size() (columns, rows int) { return s.columns, s.rows }

// Write implements io.Writer.
func (s *Terminal) Write(p []byte) (int, error) {
	s.write(string(p))
	return len(p), nil
}

func (s *Terminal) write(text string) {
	for text != "" {
		if seq, rest, ok := strings.Cut(text, "\x1b["); ok && seq == "" {
			i := strings.IndexFunc(rest, func(r rune) bool { return r >= 0x40 })
			s.control(rest[:i], rest[i])
			text = rest[i+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		s.put(r)
	}
}

func (s *Terminal) control(param string, final byte) {
	switch n, _ := strconv.Atoi(param); {
	case final == 'A':
		s.y = max(s.y-n, s.top())
	case final == 'K' && param == "2":
		s.lines[s.y] = nil
	case final == 'J' && param == "":
		s.lines, s.folded = s.lines[:s.y+1], s.folded[:s.y+1]
		s.lines[s.y], s.folded[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))], false
	case param == "?7":
		s.wrap = final == 'h'
	case final == 'm':
	default:
		s.unknown = append(s.unknown, param+string(final))
	}
}

// top returns the first visible line; the cursor cannot go above it.
func (s *Terminal) top() int { return max(0, len(s.lines)-s.rows) }

func (s *Terminal) down() {
	s.y++
	if s.y == len(s.lines) {
		s.lines, s.folded = append(s.lines, nil), append(s.folded, false)
	}
}

func (s *Terminal) put(r rune) {
	switch r {
	case '\n':
		s.down()
		s.x = 0 // the driver adds the carriage return
		return
	case '\r':
		s.x = 0
		return
	}
	w := text.Width(string(r))
	if w == 0 {
		if s.x > 0 {
			s.lines[s.y][s.x-1] += string(r)
		}
		return
	}
	if s.x+w > s.columns {
		if !s.wrap {
			return
		}
		s.folded[s.y] = true
		s.down()
		s.x = 0
	}
	line := s.lines[s.y]
	for len(line) < s.x+w {
		line = append(line, " ")
	}
	line[s.x] = string(r)
	if w == 2 {
		line[s.x+1] = ""
	}
	s.lines[s.y] = line
	s.x += w
}

// resize makes the terminal narrower.
func (s *Terminal) resize(columns int) {
	old := *s
	s.columns, s.lines, s.folded = columns, nil, nil
	for y, line := range old.lines {
		if y == old.y {
			s.y = len(s.lines)
		}
		for len(line) > columns {
			s.lines, s.folded = append(s.lines, line[:columns:columns]), append(s.folded, true)
			line = line[columns:]
		}
		s.lines, s.folded = append(s.lines, line), append(s.folded, old.folded[y])
	}
}

func (s *Terminal) text() string {
	var b strings.Builder
	for y, line := range s.lines {
		b.WriteString(strings.Join(line, ""))
		if !s.folded[y] && y < len(s.lines)-1 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// Want compares all output with lines.
func (s *Terminal) Want(t *testing.T, what string, lines ...string) {
	t.Helper()
	if got, want := s.text(), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
	if s.x != 0 || s.y != len(s.lines)-1 || !s.wrap || len(s.unknown) > 0 {
		t.Errorf("%s: the cursor is at %d, %d of %d lines, wrap %v, unknown %q", what, s.y, s.x, len(s.lines), s.wrap, s.unknown)
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	out := NewTerminal(20, 8)
	out.write("$ weaver run\n")
	s := screen{out: out}
	draw := func(above string, lines ...string) {
		t.Helper()
		var list []string
		if above != "" {
			list = strings.Split(above, "\n")
		}
		if err := s.draw(list, lines, out.columns, out.rows); err != nil {
			t.Fatal(err)
		}
	}
	draw("", "a", "b")
	out.Want(t, "first", "$ weaver run", "a", "b")
	draw("", "a2", "b2", "c2")
	out.Want(t, "taller", "$ weaver run", "a2", "b2", "c2")
	draw("", "x")
	out.Want(t, "shorter", "$ weaver run", "x")
	draw("", "日本語", "e\u0301")
	out.Want(t, "wide", "$ weaver run", "日本語", "e\u0301")
	draw("note", "a", "b")
	out.Want(t, "a line above", "$ weaver run", "note", "a", "b")
	draw("a note that is longer than a line\nand another", "c")
	out.Want(t, "long lines above", "$ weaver run", "note", "a note that is longer than a line", "and another", "c")
	draw("", strings.Repeat("f", 20), strings.Repeat("g", 25))
	out.Want(t, "full width, and wider", "$ weaver run", "note", "a note that is longer than a line", "and another", strings.Repeat("f", 20), strings.Repeat("g", 20))
	draw("", "\x1b[31mred\x1b[0m", "plain")
	for i := range 20 {
		draw(fmt.Sprint("line ", i), "1", "2", "3", "4", "5", "6", "7")
	}
	if got := out.text(); strings.Count(got, "7") != 3 || !strings.HasSuffix(got, "line 18\nline 19\n1\n2\n3\n4\n5\n6\n7\n") {
		t.Errorf("a frame as high as the terminal:\n%s", got)
	}
}

func TestScreenOfATerminalThatBecomesNarrower(t *testing.T) {
	t.Parallel()
	out := NewTerminal(40, 20)
	s := screen{out: out}
	line := func(c string, n int) string { return strings.Repeat(c, n) }
	frames := [][]string{{line("a", 40), line("b", 15), "\x1b[2m" + line("c", 31) + "\x1b[0m", ""}, {line("d", 15), "e"}, {line("f", 10)}}
	for i, columns := range []int{40, 15, 10} {
		out.resize(columns)
		if err := s.draw([]string{fmt.Sprint("note ", i)}, frames[i], columns, 20); err != nil {
			t.Fatal(err)
		}
	}
	out.Want(t, "after two changes", "note 0", "note 1", "note 2", line("f", 10))
}

func TestScreenIsQuiet(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := screen{out: &b}
	for range 3 {
		if err := s.draw(nil, []string{"a", "b"}, 80, 24); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(b.String(), "a"); n != 1 {
		t.Errorf("the same frame was written %d times: %q", n, b.String())
	}
}
