// Package text has what the views for people share: colours, counts, spans of
// time, how wide a text is on a terminal, and how a recorded text becomes
// printable. It prints nothing itself, and knows no sentence about tasks:
// those are in internal/explain.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/goweaver/weaver/task"
)

// Painter colours text, when it is on.
type Painter struct{ On bool }

// The colours in use, as ANSI codes.
const (
	Bold    = "1"
	Faint   = "2"
	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Blue    = "34"
	Magenta = "35"
	Cyan    = "36"
)

// Paint returns the text in a colour; "" is none.
func (p Painter) Paint(color, text string) string {
	if !p.On || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// StateColor is the colour of a task's or job's state; "" for pending.
func StateColor[S ~string](state S) string {
	switch task.State(state) {
	case task.Ready:
		return Blue
	case task.Running:
		return Cyan
	case task.Succeeded:
		return Green
	case task.Failed:
		return Red
	case task.Cancelled:
		return Yellow
	case task.Blocked:
		return Magenta
	}
	return ""
}

// Width is how many columns of a terminal a printable text takes.
func Width(text string) int {
	if isASCII(text) {
		return len(text)
	}
	return uniseg.StringWidth(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Cut makes a text fit into limit columns. What is cut off leaves a "…".
func Cut(text string, limit int) string {
	switch {
	case limit <= 0:
		return ""
	case Width(text) <= limit:
		return text
	}
	var b strings.Builder
	rest, state, used := text, -1, 0
	for rest != "" {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > limit-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String() + "…"
}

// Printable replaces what could act on a terminal: recorded texts come from
// handlers and producers. Line breaks stay. [Lines] also drops escape
// sequences.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// Plural counts things: "1 task", "2 tasks".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Stop ends a sentence, which may end in a quoted message with a stop of its
// own.
func Stop(sentence string) string {
	if strings.HasSuffix(sentence, ".") || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "!") {
		return sentence
	}
	return sentence + "."
}
