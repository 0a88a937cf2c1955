// Package text formats text for the views that people read: colours, counts, time spans, the width of a text on a
// terminal, and printable forms of recorded texts. It prints nothing itself. Sentences about tasks are in
// internal/explain.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/goweaver/weaver/task"
)

// Painter colours text if On is set.
type Painter struct{ On bool }

// Colours, as ANSI codes.
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

// Paint returns the text in a colour; "" means uncoloured.
func (p Painter) Paint(color, text string) string {
	if !p.On || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// StateColor returns the colour for the state of a task or job; "" for pending.
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

// Width returns the number of terminal columns of a printable text.
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

// Cut shortens a text to limit columns. A shortened text ends in "…".
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

// Printable replaces characters that could control a terminal: recorded texts come from handlers and producers. It
// keeps line breaks. [Lines] also drops escape sequences.
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

// Plural formats a count with its noun: "1 task", "2 tasks".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Stop ends a sentence with a full stop. A sentence that ends in a quoted message may already have one.
func Stop(sentence string) string {
	if strings.HasSuffix(sentence, ".") || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "!") {
		return sentence
	}
	return sentence + "."
}
