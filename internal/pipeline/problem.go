package pipeline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxProblems = 20     // that an Error lists
	maxKept     = 10_000 // that are sorted to find them
)

// Problem is one mistake in a file.
type Problem struct {
	File         string // the included file, as its path is written; "": the file itself
	Line, Column int    // from 1; a column is a character
	Length       int    // characters that are meant; 0: no place, the file as a whole
	Message      string
	Hint         string // what would be right, or ""
}

// Error is all mistakes of a file, in the order of their places.
type Error struct {
	Problems []Problem // those of included files come last
	More     int       // further ones that Problems leaves out

	sources map[string][]byte // of included files
}

// add adds the problems of a reporter.
func (e *Error) add(r *reporter) {
	problems, more := r.sorted()
	room := maxProblems - len(e.Problems)
	shown := problems[:min(len(problems), max(room, 0))]
	e.Problems, e.More = append(e.Problems, shown...), e.More+more+len(problems)-len(shown)
}

// Error lists the mistakes, one a line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		if p.File != "" {
			b.WriteString(p.File + ", ")
		}
		fmt.Fprintf(&b, "line %d, column %d: %s", p.Line, p.Column, p.Message)
		if p.Hint != "" {
			b.WriteString("; " + strings.Join(strings.Fields(p.Hint), " "))
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	return b.String()
}

// Warnings are problems that keep nothing from running, in the order of their
// places.
type Warnings struct {
	Problems []Problem
	More     int // further ones that Problems leaves out

	sources map[string][]byte // of included files
}

// pending is a Problem whose columns and hint are not worked out yet: both are
// expensive, and most problems of a file with many are not shown.
type pending struct {
	at      spot
	message string
	hint    func() string
}

// reporter collects problems.
type reporter struct {
	src     *source
	file    string // see Problem
	all     []pending
	single  bool // one problem a place is enough
	dropped int  // beyond maxKept
}

// add reports a problem. It returns false, for functions that return whether
// all is well.
func (r *reporter) add(at spot, message, hint string) bool {
	return r.addSuggesting(at, message, func() string { return hint })
}

// addSuggesting is add with a hint that is worked out when it is shown.
func (r *reporter) addSuggesting(at spot, message string, hint func() string) bool {
	if len(r.all) < maxKept {
		r.all = append(r.all, pending{at: at, message: message, hint: hint})
	} else {
		r.dropped++
	}
	return false
}

func (r *reporter) failed() bool { return len(r.all) > 0 }

// sorted returns the problems in the order of their places, and how many it
// leaves out.
func (r *reporter) sorted() (problems []Problem, more int) {
	slices.SortStableFunc(r.all, func(a, b pending) int { return cmp.Compare(a.at.from, b.at.from) })
	// An alias is decoded wherever it is used, and a mistake in it reported once.
	r.all = slices.CompactFunc(r.all, func(a, b pending) bool {
		return a.at == b.at && (r.single || a.message == b.message || anyTask(a.message) == anyTask(b.message))
	})
	for _, p := range r.all[:min(len(r.all), maxProblems)] {
		column, length := r.src.columns(p.at)
		problems = append(problems, Problem{File: r.file, Line: p.at.line, Column: column, Length: length, Message: p.message, Hint: p.hint()})
	}
	return problems, max(0, len(r.all)-maxProblems) + r.dropped
}

var taskName = regexp.MustCompile(`task "(\\.|[^"\\])*"`)

// anyTask is a message without the names of tasks.
func anyTask(message string) string { return taskName.ReplaceAllString(message, "task") }

// quote prints a text of the file for a message: in one line, and not too long.
func quote(text string) string {
	const limit = 60
	n := 0
	for i := range text {
		if n++; n > limit {
			return fmt.Sprintf("%q…", text[:i])
		}
	}
	return fmt.Sprintf("%q", text)
}

// cut is quote without the quotes and the ellipsis.
func cut(name string) string {
	return strings.Trim(strings.TrimSuffix(quote(name), "…"), `"`)
}
