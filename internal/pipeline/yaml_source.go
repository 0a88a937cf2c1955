package pipeline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// source is the text of a file, divided into lines.
type source struct {
	text   string // without byte order mark; every line ends with \n
	starts []int  // byte offsets of the lines' beginnings, and the end of the text
}

// newSource normalizes a text for the lexer. The lexer counts some \r\n as two
// lines, and drops a tag at the end of a file without a final \n. YAML reads a \r
// inside a text as \n.
func newSource(raw []byte) *source {
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if strings.Contains(text, "\r") {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	s := &source{text: text, starts: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// line returns a line without its end, or "" for a line outside the file.
func (s *source) line(n int) string {
	if n < 1 || n >= len(s.starts) {
		return ""
	}
	return s.text[s.starts[n-1] : s.starts[n]-1]
}

// spot is a range of bytes of the source, and its first line. An empty spot means
// the whole file.
type spot struct {
	from, to, line int
}

func (s *source) spot(from, to int) spot {
	line, found := slices.BinarySearch(s.starts, from)
	if found {
		line++
	}
	return spot{from: from, to: to, line: line}
}

// whole returns the spot of a problem without a place.
func (s *source) whole() spot { return spot{line: 1} }

// token returns the spot of a token that [layout] placed, or of an invalid token.
func (s *source) token(tok *token.Token) spot {
	from, length := min(tok.Position.Offset, len(s.text)), 1
	switch tok.Type {
	case token.InvalidType:
		from = s.offset(tok.Position.Line, tok.Position.Column)
	case token.ImplicitNullType:
	default:
		first, _, _ := strings.Cut(strings.TrimSpace(tok.Origin), "\n")
		length = max(1, len(first))
	}
	return s.spot(from, from+length)
}

// offset converts the lexer's position of an invalid token, which is never placed.
func (s *source) offset(line, column int) int {
	line = min(max(line, 1), len(s.starts))
	for i := range s.line(line) {
		if column--; column < 1 {
			return s.starts[line-1] + i
		}
	}
	return s.starts[line-1] + len(s.line(line))
}

// columns returns the first column of a spot in its line, from 1, and its length
// in that line, both in characters. A spot that begins with a quote covers the
// whole quoted text.
func (s *source) columns(at spot) (column, length int) {
	before := s.text[s.starts[at.line-1]:at.from]
	column = 1 + utf8.RuneCountInString(before)
	if at.from == at.to {
		return column, 0
	}
	rest := s.line(at.line)[len(before):]
	covered := rest[:min(len(rest), at.to-at.from)]
	if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'") {
		covered = rest[:quotedLength(rest)]
	}
	return column, max(1, utf8.RuneCountInString(covered))
}

// quotedLength returns the bytes of a quoted text including its closing quote, or
// up to the end of the text.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\':
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return len(text)
}
