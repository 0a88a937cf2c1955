package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// source is the text of a file, with its lines.
type source struct {
	text   string // without byte order mark; all lines end with \n
	starts []int  // where lines begin
}

// newSource ends all lines with \n: the lexer counts some \r\n twice, and a
// \r inside a text means \n in YAML anyway.
func newSource(raw []byte) *source {
	text := strings.TrimPrefix(string(raw), "\ufeff")
	if strings.Contains(text, "\r") {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // the lexer loses a tag at the end of a file
	}
	s := &source{text: text, starts: []int{0}}
	for i := 0; i < len(text); {
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		s.starts = append(s.starts, i)
	}
	return s
}

// line returns a line without its end, "" where the file has none.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.starts) {
		return ""
	}
	end := len(s.text)
	if n < len(s.starts) {
		end = s.starts[n] - 1
	}
	return s.text[s.starts[n-1]:end]
}

// at returns the spot of a part.
func (s *source) at(from, to int) spot {
	line, found := slices.BinarySearch(s.starts, from)
	if found {
		line++
	}
	return spot{from: from, to: to, line: max(1, line)}
}

// whole is for problems without a place.
func (s *source) whole() spot { return spot{line: 1} }

// token returns the spot of a token that align has placed.
func (s *source) token(tok *token.Token) spot {
	from := min(tok.Position.Offset, len(s.text))
	switch tok.Type {
	case token.InvalidType:
		from = s.offset(tok.Position.Line, tok.Position.Column)
		return s.at(from, from+1)
	case token.ImplicitNullType:
		return s.at(from, from+1)
	}
	return s.at(from, from+max(1, len(firstLine(strings.TrimSpace(tok.Origin)))))
}

// offset is for the places that only the lexer knows.
func (s *source) offset(line, column int) int {
	line = min(max(line, 1), len(s.starts))
	offset := s.starts[line-1]
	for range s.line(line) {
		if column--; column < 1 {
			break
		}
		_, size := utf8.DecodeRuneInString(s.text[offset:])
		offset += size
	}
	return offset
}

// columns works out where a spot is in its line, in characters.
func (s *source) columns(at spot) (column, length int) {
	start := s.starts[at.line-1]
	column = 1 + utf8.RuneCountInString(s.text[start:at.from])
	if at.from == at.to {
		return column, 0
	}
	rest := s.line(at.line)[at.from-start:]
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		return column, utf8.RuneCountInString(rest[:quotedLength(rest)])
	}
	return column, max(1, utf8.RuneCountInString(rest[:min(len(rest), at.to-at.from)]))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// quotedLength counts the bytes of a quoted text up to its closing quote, or
// the end of the text.
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

// check reports bytes that are no text, and what would keep the lexer busy
// for minutes: its work grows with the square of each of these.
func (s *source) check(r *reporter) {
	const (
		maxBlank = 100         // empty lines in a row: at the end of a block of text
		maxArrow = 1000        // < in a row
		maxTabs  = 200_000_000 // sum of what follows each tab in its line: in double quotes
	)
	blank, arrows, tabs, line := 0, 0, 0, 0
	for i := 0; i < len(s.text); {
		c, size := utf8.DecodeRuneInString(s.text[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			r.add(s.at(i, i+1), fmt.Sprintf("the byte 0x%02x is not UTF-8", s.text[i]), "save the file as UTF-8")
			return
		case c == 0:
			r.add(s.at(i, i+1), "a NUL byte: this is not a text file", "save the file as UTF-8 text")
			return
		case c != '\n' && c != '\t' && unicode.IsControl(c) && c != 0x85:
			r.add(s.at(i, i+1), fmt.Sprintf("a control character (U+%04X), which YAML does not allow", c), fmt.Sprintf(`remove it, or write it as "\x%02x" in double quotes`, c))
			return
		}
		if c == '<' {
			arrows++
		} else {
			arrows = 0
		}
		switch c {
		case '\n':
			blank++
			line++
		case ' ':
		case '\t':
			end := len(s.text)
			if line+1 < len(s.starts) {
				end = s.starts[line+1]
			}
			tabs += end - i
		default:
			blank = 0
		}
		switch {
		case blank > maxBlank+1:
			r.add(s.at(i, i+1), fmt.Sprintf("more than %d empty lines in a row", maxBlank), "remove some")
			return
		case arrows > maxArrow:
			r.add(s.at(i, i+1), fmt.Sprintf("more than %d times < in a row", maxArrow), "keep such data in a file of its own")
			return
		case tabs > maxTabs:
			r.add(s.at(i, i+1), "too many tabs in long lines", `write \t in double quotes, or keep such data in a file of its own`)
			return
		}
		i += size
	}
}
