package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/goweaver/weaver/internal/text"
)

// width is the maximum width of output lines, in columns.
const width = 100

// Format returns the mistakes for a person: place, source line and hint of each.
// src is the text given to Parse.
func (e *Error) Format(file string, src []byte) string {
	return formatProblems(file, src, e.sources, "", e.Problems) + more(e.More, "more")
}

// Format returns the warnings for a person, like [Error.Format].
func (w Warnings) Format(file string, src []byte) string {
	return formatProblems(file, src, w.sources, "warning: ", w.Problems) + more(w.More, "more warnings")
}

func more(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("and %d %s\n", n, what)
}

func formatProblems(main string, src []byte, included map[string][]byte, kind string, problems []Problem) string {
	file, of, s := main, "", newSource(src)
	var b strings.Builder
	for _, p := range problems {
		if p.File != of { // an included file
			of, s = p.File, newSource(included[p.File])
			file = resolve(filepath.Dir(main), p.File)
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s%s\n", file, p.Line, p.Column, kind, p.Message)
		if p.Length > 0 && p.Line <= len(s.starts) {
			line, marks := excerpt(s.line(p.Line), p.Column, p.Length)
			fmt.Fprintf(&b, "%5d | %s\n      | %s\n", p.Line, line, marks)
		}
		if p.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(p.Hint, "\n", "\n  "))
		}
	}
	return b.String()
}

// excerpt returns the part of a line around a place, and marks to print below it.
func excerpt(line string, column, length int) (shown, marks string) {
	const room = width - len("12345 | ") - 2*len("…")
	runes := []rune(line)
	column = min(max(column, 1), len(runes)+1)

	// Show enough before the place to recognize it, and then the rest.
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

	var part, below strings.Builder
	if start > 0 {
		part.WriteString("…")
		below.WriteString(" ")
	}
	for i := start; i < end; i++ {
		part.WriteString(printable(runes[i]))
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
		part.WriteString("…")
	}
	return strings.TrimRight(part.String(), " "), below.String()
}

// printable returns a character as it is, or as an escape.
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

// cells returns the width of printable(r), in columns of a terminal.
func cells(r rune) int { return text.Width(printable(r)) }
