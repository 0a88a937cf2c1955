package pipeline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxProblems = 20     // listed by an Error
	maxKept     = 10_000 // sorted to find them
)

// Problem is one mistake in a file.
type Problem struct {
	File         string // path of the included file, as written; "": the main file
	Line, Column int    // from 1; a column is a character
	Length       int    // characters; 0: the whole file
	Message      string
	Hint         string // the correction, or ""
}

// Error holds the mistakes of a file, ordered by place.
type Error struct {
	Problems []Problem // included files come last
	More     int       // number of problems left out

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

// Warnings are problems that do not prevent a run, ordered by place.
type Warnings struct {
	Problems []Problem
	More     int // number of problems left out

	sources map[string][]byte // of included files
}

// pending is a Problem without columns and hint: both are expensive, and most
// problems of a bad file are not shown.
type pending struct {
	at      spot
	message string
	hint    func() string
}

// reporter collects problems.
type reporter struct {
	src     *source
	file    string // see Problem.File
	all     []pending
	single  bool // keep one problem per place
	dropped int  // number of problems beyond maxKept
}

// add reports a problem. It returns false, as the result of a check.
func (r *reporter) add(at spot, message, hint string) bool {
	return r.addSuggesting(at, message, func() string { return hint })
}

// addSuggesting is add with a hint that is computed when it is shown.
func (r *reporter) addSuggesting(at spot, message string, hint func() string) bool {
	if len(r.all) < maxKept {
		r.all = append(r.all, pending{at: at, message: message, hint: hint})
	} else {
		r.dropped++
	}
	return false
}

func (r *reporter) failed() bool { return len(r.all) > 0 }

// sorted returns the problems ordered by place, and the number of problems left
// out.
func (r *reporter) sorted() (problems []Problem, more int) {
	slices.SortStableFunc(r.all, func(a, b pending) int { return cmp.Compare(a.at.from, b.at.from) })
	// An alias is decoded at every use; report a mistake in it once.
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

// anyTask removes the names of tasks from a message.
func anyTask(message string) string { return taskName.ReplaceAllString(message, "task") }

// quote returns a text of the file for a message: on one line, and shortened.
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
