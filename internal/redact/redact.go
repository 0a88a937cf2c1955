// Package redact masks parts of recorded values for all readers except handlers and typed results.
//
// A list of patterns selects the masked parts. It is stored with the task, because readers of the store lack its Go
// types. A pattern is a path of segments separated by slashes. The first segment names the source of the value
// ("input", "output", "step", "signal", "checkpoint", "answer", "log"). The others are keys of objects, "#" for an
// element of an array, or "**" for any number of levels. Segments are matched as by path.Match, ignoring case.
//
// The package changes no stored value. A value that is not JSON is masked as a whole.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/goweaver/weaver/task"
)

// Mask replaces masked parts.
const Mask = "[redacted]"

// everywhere is the first segment of patterns for all values.
const everywhere = "*"

const (
	element = "#"    // the segment for an element of an array
	slash   = "\x1f" // replaces a slash in a key: no * of path.Match matches a slash
)

// CheckKey turns a key of a program into a pattern. It accepts a key to mask at any depth ("password", "*token*"), or
// a path from the root of a value ("/card/number", "/items/*/secret").
func CheckKey(key string) (pattern string, err error) {
	rest := strings.TrimPrefix(key, "/")
	segments := strings.Split(rest, "/")
	if slices.Contains(segments, "") {
		return "", fmt.Errorf("%q: want a key like password or *token*, or a path like /card/number", key)
	}
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil {
			return "", fmt.Errorf("%q: %q is not a pattern: %w", key, s, err)
		}
	}
	if rest == key {
		if len(segments) > 1 {
			return "", fmt.Errorf("%q: a path begins with a slash: /%s", key, key)
		}
		return everywhere + "/**/" + rest, nil
	}
	return everywhere + "/" + rest, nil
}

// Literal returns the segment that matches only the given key.
func Literal(key string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "/", slash).Replace(key)
}

// Rules is a set of patterns. A nil *Rules has no patterns.
type Rules struct{ patterns [][]string }

// New returns the rules of several pattern lists, or nil if they are empty.
func New(lists ...[]string) *Rules {
	var r Rules
	for _, list := range lists {
		for _, p := range list {
			r.patterns = append(r.patterns, strings.Split(strings.ToLower(p), "/"))
		}
	}
	if len(r.patterns) == 0 {
		return nil
	}
	return &r
}

// With returns the rules with additional patterns.
func (r *Rules) With(list []string) *Rules {
	more := New(list)
	switch {
	case more == nil:
		return r
	case r == nil:
		return more
	}
	return &Rules{slices.Concat(r.patterns, more.patterns)}
}

// JSON returns a value with the selected parts masked. of names the source of the value.
func (r *Rules) JSON(of string, value json.RawMessage) json.RawMessage {
	masked, _ := r.apply(of, value)
	return masked
}

// Texts returns the texts and numbers of a value that the rules select, for Hide.
func (r *Rules) Texts(of string, value json.RawMessage) []string {
	_, found := r.apply(of, value)
	return found
}

func (r *Rules) apply(of string, value json.RawMessage) (json.RawMessage, []string) {
	if r == nil || len(value) == 0 {
		return value, nil
	}
	at := advance(r.patterns, of)
	if len(at) == 0 {
		return value, nil
	}
	m := masker{dec: json.NewDecoder(bytes.NewReader(value))}
	m.dec.UseNumber()
	if err := m.value(at); err != nil {
		return json.RawMessage(`"` + Mask + `"`), nil
	}
	if !m.masked {
		return value, nil
	}
	return m.out.Bytes(), m.texts
}

// Expire returns a value in which mark replaces the selected parts, and reports whether there were any. It returns an
// error for a value that is not JSON.
func (r *Rules) Expire(of string, value, mark json.RawMessage) (json.RawMessage, bool, error) {
	at := advance(r.patterns, of)
	m := masker{dec: json.NewDecoder(bytes.NewReader(value)), mark: mark}
	m.dec.UseNumber()
	if err := m.value(at); err != nil {
		return nil, false, err
	}
	return m.out.Bytes(), m.masked, nil
}

// Matches reports whether the part of a value under a key is masked.
func (r *Rules) Matches(of, key string) bool {
	return r != nil && accepts(advance(advance(r.patterns, of), key))
}

// advance returns the rests of the patterns whose first segment matches.
func advance(patterns [][]string, segment string) (rest [][]string) {
	segment = strings.ReplaceAll(strings.ToLower(segment), "/", slash)
	for _, p := range patterns {
		rest = appendRest(rest, p, segment)
	}
	return rest
}

func appendRest(rest [][]string, p []string, segment string) [][]string {
	switch {
	case len(p) == 0:
		return rest
	case p[0] == "**":
		return appendRest(append(rest, p), p[1:], segment)
	}
	if ok, err := path.Match(p[0], segment); ok && err == nil {
		return append(rest, p[1:])
	}
	return rest
}

func accepts(patterns [][]string) bool {
	return slices.ContainsFunc(patterns, func(p []string) bool { return len(p) == 0 })
}

// masker rewrites one value.
type masker struct {
	dec    *json.Decoder
	mark   json.RawMessage // replaces the selected parts; nil means Mask
	out    bytes.Buffer
	masked bool
	texts  []string
}

func (m *masker) value(at [][]string) error {
	if len(at) == 0 || accepts(at) {
		var raw json.RawMessage
		if err := m.dec.Decode(&raw); err != nil {
			return err
		}
		if len(at) == 0 || string(raw) == "null" {
			m.out.Write(raw)
			return nil
		}
		if task.IsExpired(raw) { // expired before: nothing is left of it
			m.out.Write(raw)
			return nil
		}
		m.masked = true
		if m.mark != nil {
			m.out.Write(m.mark)
			return nil
		}
		m.texts = append(m.texts, leaves(raw)...)
		return m.write(Mask)
	}
	token, err := m.dec.Token()
	if err != nil {
		return err
	}
	open, isOpen := token.(json.Delim)
	if !isOpen {
		return m.write(token)
	}
	m.out.WriteByte(byte(open))
	for n := 0; m.dec.More(); n++ {
		if n > 0 {
			m.out.WriteByte(',')
		}
		segment := element
		if open == '{' {
			key, err := m.dec.Token()
			if err != nil {
				return err
			}
			segment, _ = key.(string)
			if err := m.write(segment); err != nil {
				return err
			}
			m.out.WriteByte(':')
		}
		if err := m.value(advance(at, segment)); err != nil {
			return err
		}
	}
	m.out.WriteByte(byte(open) + 2) // ] and } follow [ and { at a distance of two
	_, err = m.dec.Token()
	return err
}

// write appends a text, a number, a boolean or null.
func (m *masker) write(v any) error {
	enc := json.NewEncoder(&m.out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	m.out.Truncate(m.out.Len() - 1) // the line break
	return err
}

// leaves returns the texts and numbers of a value.
func leaves(raw json.RawMessage) (texts []string) {
	dec := json.NewDecoder(bytes.NewReader(task.WithoutExpired(raw)))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return texts
		}
		switch v := token.(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			texts = append(texts, v.String())
		}
	}
}

// minText is the minimum length in bytes of a text that is masked inside other texts: a shorter one occurs
// everywhere.
const minText = 4

// Hide masks texts wherever they occur in s.
func Hide(s string, texts []string) string {
	for _, t := range texts {
		if len(t) >= minText {
			s = strings.ReplaceAll(s, t, Mask)
		}
	}
	return s
}
