package pipeline

import (
	"fmt"
	"strings"
	"unicode"
)

// width is how many columns a line of the output may fill.
const width = 100

// Format prints the mistakes for a person: each with its place, its line of
// the source, and what would be right. src is what Parse was given.
func (e *Error) Format(file string, src []byte) string {
	s := newSource(src)
	var b strings.Builder
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", file, p.Line, p.Column, p.Message)
		if p.Length > 0 && p.Line <= len(s.starts) {
			line, marks := excerpt(s.line(p.Line), p.Column, p.Length)
			fmt.Fprintf(&b, "%5d | %s\n      | %s\n", p.Line, line, marks)
		}
		if p.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(p.Hint, "\n", "\n  "))
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", e.More)
	}
	return b.String()
}

// excerpt prints the part of a line that has a place, and marks below it.
func excerpt(line string, column, length int) (text, marks string) {
	const room = width - len("12345 | ") - 2*len("…")
	runes := []rune(line)
	column = min(max(column, 1), len(runes)+1)

	// Enough of what is before the place to see where one is, and the rest.
	start, used := column-1, 0
	for start > 0 && used+cells(runes[start-1]) <= room*2/3 {
		start--
		used += cells(runes[start])
	}
	end := column - 1
	for end < len(runes) && used+cells(runes[end]) <= room {
		used += cells(runes[end])
		end++
	}
	for start > 0 && end == len(runes) && used+cells(runes[start-1]) <= room {
		start--
		used += cells(runes[start])
	}

	var shown, below strings.Builder
	if start > 0 {
		shown.WriteString("…")
		below.WriteString(" ")
	}
	for i := start; i < end; i++ {
		shown.WriteString(printable(runes[i]))
		switch n := cells(runes[i]); {
		case i < column-1:
			below.WriteString(strings.Repeat(" ", n))
		case i < column-1+length:
			below.WriteString(strings.Repeat("^", n))
		}
	}
	if column-1 >= end {
		below.WriteString("^")
	}
	if end < len(runes) {
		shown.WriteString("…")
	}
	return strings.TrimRight(shown.String(), " "), below.String()
}

// printable shows a character as it is, or as an escape.
func printable(r rune) string {
	switch {
	case r == '\t':
		return `\t`
	case unicode.IsPrint(r):
		return string(r)
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u{%x}`, r)
}

// cells is how many columns printable fills.
func cells(r rune) int {
	switch {
	case !unicode.IsPrint(r):
		return len(printable(r))
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && wide(r):
		return 2
	}
	return 1
}

// wide reports the characters that terminals give two columns: the blocks of
// East Asian scripts and of emoji.
func wide(r rune) bool {
	for _, block := range [][2]rune{
		{0x1100, 0x115f},
		{0x2e80, 0x303e},
		{0x3041, 0x4dbf},
		{0x4e00, 0xa4cf},
		{0xa960, 0xa97f},
		{0xac00, 0xd7a3},
		{0xf900, 0xfaff},
		{0xfe30, 0xfe6f},
		{0xff00, 0xff60},
		{0xffe0, 0xffe6},
		{0x1f300, 0x1f64f},
		{0x1f680, 0x1f6ff},
		{0x1f900, 0x1faff},
		{0x20000, 0x3fffd},
	} {
		if r >= block[0] && r <= block[1] {
			return true
		}
	}
	return false
}
