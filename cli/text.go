package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver/task"
)

// painter colours text, when it is on.
type painter struct{ on bool }

// The colours in use, as ANSI codes.
const (
	bold    = "1"
	faint   = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
	cyan    = "36"
)

func (p painter) paint(color, text string) string {
	if !p.on || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

var stateColors = map[string]string{
	string(task.Ready):     blue,
	string(task.Running):   cyan, // also of jobs
	string(task.Succeeded): green,
	string(task.Failed):    red,
	string(task.Cancelled): yellow,
	string(task.Blocked):   magenta,
}

// isTerminal reports whether w is a person's screen.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printable replaces what could act on a terminal: recorded texts come from
// handlers and from whoever enqueues. Line breaks stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '�'
		}
		return r
	}, text)
}

// oneLine makes a recorded text fit into a line of at most limit characters.
func oneLine(text string, limit int) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}

// stop ends a sentence, which may end in a quoted message with a stop of its own.
func stop(sentence string) string {
	if strings.HasSuffix(sentence, ".") || strings.HasSuffix(sentence, "?") || strings.HasSuffix(sentence, "!") {
		return sentence
	}
	return sentence + "."
}

// indent puts every line of text behind a margin.
func indent(margin, text string) string {
	return margin + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+margin)
}

// plural counts things: "1 task", "2 tasks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printf prints to the result.
func (s *session) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// writeJSON prints one object.
func (s *session) writeJSON(v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return nil
}

// maxShown is how many bytes of a JSON value text output shows.
const maxShown = 2000

// jsonText shows a recorded JSON value on one line.
func jsonText(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		b.Reset()
		b.Write(raw)
	}
	text := b.String()
	if len(text) > maxShown {
		return oneLine(text[:maxShown], maxShown) + fmt.Sprintf("… (%d bytes; -o json shows all)", len(text))
	}
	return printable(text)
}
