package pipeline

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// source is the text of a file, with its lines.
type source struct {
	text   string // without byte order mark; every line ends with \n
	starts []int  // byte offsets at which lines begin; the last one is the end of the text
}

// newSource normalizes a text for the lexer, which counts some \r\n as two
// lines, and drops a tag at the end of a file that does not end with \n. A \r
// inside a text means \n in YAML.
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

// line returns a line without its end, "" for one that the file does not have.
func (s *source) line(n int) string {
	if n < 1 || n >= len(s.starts) {
		return ""
	}
	return s.text[s.starts[n-1] : s.starts[n]-1]
}

// spot is a part of the source, as byte offsets, and the line in which it
// begins. An empty spot means the file as a whole.
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

// whole is the spot of a problem without a place.
func (s *source) whole() spot { return spot{line: 1} }

// token returns the spot of a token that has been placed (see [layout]), and of
// one that is invalid.
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

// offset converts the position that the lexer gives to an invalid token, which
// is never placed.
func (s *source) offset(line, column int) int {
	line = min(max(line, 1), len(s.starts))
	for i := range s.line(line) {
		if column--; column < 1 {
			return s.starts[line-1] + i
		}
	}
	return s.starts[line-1] + len(s.line(line))
}

// columns returns where a spot begins in its line, from 1, and how much of the
// line it covers, both in characters. One that begins with a quote covers all
// of the quoted text.
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

// quotedLength counts the bytes of a quoted text up to its closing quote, or
// to the end of the text.
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
