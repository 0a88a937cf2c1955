package devrun

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxLine is the maximum length in bytes of a printed line; a longer line is split.
const maxLine = 16 << 10

// Output writes lines of several sources to one writer, each when it is complete. It is safe for concurrent use.
type Output struct {
	mu sync.Mutex
	w  io.Writer
}

// NewOutput returns an Output that calls w.Write once per line. It ignores errors of w: a program continues when its
// terminal is gone.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Print writes the lines of a text, each prefixed with the name of its source.
func (o *Output) Print(source, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		_, _ = fmt.Fprintf(o.w, "%-5s | %s\n", source, strings.TrimSuffix(line, "\r"))
	}
}

// splitter prints each line of a program's output as soon as it is complete.
type splitter struct {
	out    *Output
	source string
	line   []byte // the incomplete line
}

func (s *splitter) write(data []byte) {
	for len(data) > 0 {
		part, rest, complete := data, []byte(nil), false
		for i, c := range data {
			if c == '\n' {
				part, rest, complete = data[:i], data[i+1:], true
				break
			}
		}
		s.line = append(s.line, part...)
		for len(s.line) > maxLine {
			cut := runeBoundary(s.line[:maxLine])
			s.out.Print(s.source, string(s.line[:cut]))
			s.line = append(s.line[:0], s.line[cut:]...)
		}
		if complete {
			s.flush()
		}
		data = rest
	}
}

// flush prints the current line.
func (s *splitter) flush() {
	s.out.Print(s.source, string(s.line))
	s.line = s.line[:0]
}

// end prints an unterminated last line.
func (s *splitter) end() {
	if len(s.line) > 0 {
		s.flush()
	}
}

// runeBoundary returns the length of the longest prefix of b that ends between two characters.
func runeBoundary(b []byte) int {
	for i := 1; i < utf8.UTFMax; i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}
