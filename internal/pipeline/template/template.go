// Package template parses texts with values to fill in, such as
// "{{.params.day}}.csv". Pipelines have it in place of a template language.
//
// A path names a value, as in {{.tasks.fetch.json.items[0].id}}: names of letters,
// digits, "_" and "-" after dots, and ["any name"] and [0] in brackets. {{"{{"}}
// stands for two braces. There are no functions and no conditions.
package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	left  = "{{"
	right = "}}"
)

// Template is a parsed text.
type Template []Part

// Part is a piece of a text: a path, or else a literal.
type Part struct {
	Literal string
	Path    Path
	At      int // byte offset in the text
}

// Path names a value: "tasks", "fetch", "stdout". An index is a step of digits.
type Path []string

// SyntaxError is a mistake in a text, with a correction.
type SyntaxError struct {
	At      int // byte offset in the text
	Problem string
	Hint    string
}

// Error implements error.
func (e *SyntaxError) Error() string { return e.Problem + ": " + e.Hint }

// Has reports whether a text may contain paths.
func Has(text string) bool { return strings.Contains(text, left) }

// Escape returns a text that Parse reads as the given literal.
func Escape(text string) string {
	// It escapes each brace: a literal may end with a brace and stand before another.
	return strings.ReplaceAll(text, "{", `{{"{"}}`)
}

// Parse parses a text. Its error is a *[SyntaxError].
func Parse(text string) (Template, error) {
	var t Template
	for at := 0; at < len(text); {
		open := strings.Index(text[at:], left)
		if open < 0 {
			return t.literal(text[at:], at), nil
		}
		if open > 0 {
			t = t.literal(text[at:at+open], at)
			at += open
		}
		s := scanner{text: text, at: at + len(left)}
		part, err := s.part()
		if err != nil {
			return nil, err
		}
		if part.Path == nil {
			t = t.literal(part.Literal, at)
		} else {
			part.At = at
			t = append(t, part)
		}
		at = s.at
	}
	return t, nil
}

// literal appends a literal, joined to a literal before it.
func (t Template) literal(text string, at int) Template {
	if n := len(t); n > 0 && t[n-1].Path == nil {
		t[n-1].Literal += text
		return t
	}
	return append(t, Part{Literal: text, At: at})
}

// Paths returns the paths in the text.
func (t Template) Paths() []Path {
	var paths []Path
	for _, part := range t {
		if part.Path != nil {
			paths = append(paths, part.Path)
		}
	}
	return paths
}

// Fill replaces each path by the result of value. It returns the first error.
func (t Template) Fill(value func(Path) (string, error)) (string, error) {
	var b strings.Builder
	for _, part := range t {
		if part.Path == nil {
			b.WriteString(part.Literal)
			continue
		}
		v, err := value(part.Path)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// FillSome replaces the paths that known accepts, and returns a template of the
// others.
func (t Template) FillSome(known func(Path) (string, bool)) string {
	var b strings.Builder
	for _, part := range t {
		v, ok := part.Literal, part.Path == nil
		if !ok {
			v, ok = known(part.Path)
		}
		if ok {
			b.WriteString(Escape(v))
		} else {
			b.WriteString(part.Path.String())
		}
	}
	return b.String()
}

// String returns the path as written in a text.
func (p Path) String() string {
	var b strings.Builder
	b.WriteString(left)
	for i, step := range p {
		switch {
		case i > 0 && isIndex(step):
			b.WriteString("[" + step + "]")
		case isName(step):
			b.WriteString("." + step)
		default:
			b.WriteString("[" + strconv.Quote(step) + "]")
		}
	}
	b.WriteString(right)
	return b.String()
}

func isIndex(step string) bool {
	return step != "" && strings.Trim(step, "0123456789") == ""
}

func isName(step string) bool {
	return step != "" && !strings.ContainsFunc(step, func(r rune) bool { return !inName(r) })
}

func inName(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// scanner reads the text between braces.
type scanner struct {
	text string
	at   int // byte offset in the text
}

const form = `write for example {{.params.day}}, or {{"{{"}} for two braces`

func (s *scanner) part() (Part, error) {
	begin := s.at - len(left)
	wrong := func(problem, hint string) (Part, error) {
		return Part{}, &SyntaxError{begin, problem, hint}
	}
	end := strings.Index(s.text[s.at:], right)
	if end < 0 {
		return wrong(`"{{" has no "}}" after it`, form)
	}
	shown := strconv.Quote(s.text[begin:min(s.at+end+len(right), begin+60)])
	s.spaces()
	var part Part
	switch {
	case s.next(`"`), s.next("`"):
		text, ok := s.quoted()
		if !ok {
			return wrong(shown+" has a text that does not end", form)
		}
		part.Literal = text
	case s.next("."), s.next("["):
		for s.next(".") || s.next("[") {
			step, ok := s.step()
			if !ok {
				return wrong(shown+" names no value", form)
			}
			part.Path = append(part.Path, step)
		}
	default:
		return wrong(shown+" names no value", form)
	}
	s.spaces()
	if !s.next(right) {
		return wrong(shown+" has more than the name of a value", form+"; there are no functions: let a command do it")
	}
	s.at += len(right)
	return part, nil
}

// step reads .name, ["any name"] or [0].
func (s *scanner) step() (string, bool) {
	bracket := s.next("[")
	s.at++
	if !bracket {
		from := s.at
		for s.at < len(s.text) {
			r, n := utf8.DecodeRuneInString(s.text[s.at:])
			if !inName(r) {
				break
			}
			s.at += n
		}
		return s.text[from:s.at], s.at > from
	}
	var step string
	if s.next(`"`) {
		var ok bool
		if step, ok = s.quoted(); !ok || step == "" {
			return "", false
		}
	} else {
		from := s.at
		for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
			s.at++
		}
		if step = s.text[from:s.at]; step == "" {
			return "", false
		}
	}
	ok := s.next("]")
	s.at++
	return step, ok
}

// quoted reads a quoted text in Go syntax.
func (s *scanner) quoted() (string, bool) {
	prefix, err := strconv.QuotedPrefix(s.text[s.at:])
	if err != nil {
		return "", false
	}
	s.at += len(prefix)
	text, err := strconv.Unquote(prefix)
	return text, err == nil
}

func (s *scanner) next(token string) bool {
	return strings.HasPrefix(s.text[min(s.at, len(s.text)):], token)
}

func (s *scanner) spaces() {
	for s.next(" ") {
		s.at++
	}
}

// Describe returns the path for messages, without braces: .params.day.
func (p Path) Describe() string {
	return strings.TrimSuffix(strings.TrimPrefix(p.String(), left), right)
}
