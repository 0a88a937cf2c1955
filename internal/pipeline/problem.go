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
	Line, Column int // from 1; a column is a character
	Length       int // characters that are meant; 0: no place, the file as a whole
	Message      string
	Hint         string // what would be right, or ""
}

// Error is all mistakes of a file, in the order of their places.
type Error struct {
	Problems []Problem
	More     int // further ones that Problems leaves out
}

// Error lists the mistakes, one a line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
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

// spot is a part of the source, as byte offsets. An empty one means the file
// as a whole.
type spot struct {
	from, to, line int
}

// pending is a Problem whose columns and hint are not worked out yet: both are
// dear, and most problems of a file with many are not shown.
type pending struct {
	at      spot
	message string
	hint    string
	suggest func() string
}

// reporter collects problems.
type reporter struct {
	src     *source
	all     []pending
	dropped int // beyond maxKept
}

// add reports a problem.
func (r *reporter) add(at spot, message, hint string) {
	r.keep(pending{at: at, message: message, hint: hint})
}

// addSuggesting is add with a hint that is worked out when it is shown.
func (r *reporter) addSuggesting(at spot, message string, suggest func() string) {
	r.keep(pending{at: at, message: message, suggest: suggest})
}

func (r *reporter) keep(p pending) {
	if len(r.all) == maxKept {
		r.dropped++
		return
	}
	r.all = append(r.all, p)
}

// err returns the *Error with all problems, or nil.
func (r *reporter) err() error {
	if len(r.all) == 0 {
		return nil
	}
	slices.SortStableFunc(r.all, func(a, b pending) int { return cmp.Compare(a.at.from, b.at.from) })
	// An alias is read wherever it stands, and complained of only once.
	r.all = slices.CompactFunc(r.all, func(a, b pending) bool {
		return a.at == b.at && (a.message == b.message || anyTask(a.message) == anyTask(b.message))
	})
	e := &Error{More: max(0, len(r.all)-maxProblems) + r.dropped}
	for _, p := range r.all[:min(len(r.all), maxProblems)] {
		if p.suggest != nil {
			p.hint = p.suggest()
		}
		column, length := r.src.columns(p.at)
		e.Problems = append(e.Problems, Problem{Line: p.at.line, Column: column, Length: length, Message: p.message, Hint: p.hint})
	}
	return e
}

var taskName = regexp.MustCompile(`task "(\\.|[^"\\])*"`)

// anyTask is a message without the names of tasks.
func anyTask(message string) string { return taskName.ReplaceAllString(message, "task") }

// quote prints a text of the file in a message: in one line, and not too long.
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
