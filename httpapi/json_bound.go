package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"strings"
)

// jsonBound reads JSON, and ends with a *Problem as soon as it has too many values or is nested too
// deeply, before it is decoded.
type jsonBound struct {
	r         io.Reader
	maxValues int // limit of the elements of lists and values of objects
	maxDepth  int

	values, depth    int
	inText, isEscape bool
}

// Read implements io.Reader.
func (b *jsonBound) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for _, c := range p[:n] {
		switch {
		case b.isEscape:
			b.isEscape = false
		case b.inText:
			b.inText, b.isEscape = c != '"', c == '\\'
		case c == '"':
			b.inText = true
		case c == '{' || c == '[':
			b.depth++
			b.values++
		case c == '}' || c == ']':
			b.depth--
		case c == ',':
			b.values++
		}
		if b.values > b.maxValues {
			return 0, bodyProblem(invalidBody, "", fmt.Sprintf("it has more than %d values: send fewer, or several requests", b.maxValues))
		}
		if b.depth > b.maxDepth {
			return 0, bodyProblem(badRequest, "", fmt.Sprintf("it is nested deeper than %d levels", b.maxDepth))
		}
	}
	return n, err
}

// skipSpace returns the position of the next token.
func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// skipText returns the position after the string that begins at i.
func skipText(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the position after the value that begins at i.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			if i = skipText(raw, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return i + max(0, depth+1)
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// twice returns the place of a duplicate key in an object of valid JSON. It reads the text once,
// for any depth.
func (b *bodyCheck) twice(raw []byte) (at string, err error) {
	type level struct {
		object, key bool // key: the next string is a key
		name        string
		index       int
		seen        names
	}
	var stack []level
	where := func() string {
		var b strings.Builder
		for _, l := range stack {
			if l.object {
				b.WriteString("/" + escapePointer(l.name))
			} else {
				fmt.Fprintf(&b, "/%d", l.index)
			}
		}
		return b.String()
	}
	for i := 0; i < len(raw); i++ {
		top := len(stack) - 1
		switch raw[i] {
		case '{', '[':
			if len(stack) == maxDepth {
				return where(), fmt.Errorf("it is nested deeper than %d levels", maxDepth)
			}
			stack = append(stack, level{object: raw[i] == '{', key: raw[i] == '{'})
		case '}', ']':
			stack = stack[:top]
		case ',':
			if l := &stack[top]; l.object {
				l.key = true
			} else {
				l.index++
			}
			if err := b.ended(); err != nil {
				return "", err
			}
		case '"':
			end := skipText(raw, i)
			if top >= 0 && stack[top].key {
				name := textOf(raw[i:end])
				if stack[top].seen.again(name) {
					stack = stack[:top]
					return where(), fmt.Errorf("the key %q is there twice", name)
				}
				stack[top].name, stack[top].key = name, false
			}
			i = end - 1
		}
	}
	return "", nil
}

// members iterates over the members of a valid JSON object, and elements over those of a list with
// their indexes, in order. They share the memory of raw.
func members(raw []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := skipSpace(raw, 0) + 1
		for {
			if i = skipSpace(raw, i); i >= len(raw) || raw[i] != '"' {
				return
			}
			end := skipText(raw, i)
			name := textOf(raw[i:end])
			i = skipSpace(raw, skipSpace(raw, end)+1) // skips the colon
			end = skipValue(raw, i)
			if !yield(name, raw[i:end:end]) {
				return
			}
			i = skipSpace(raw, end) + 1 // skips the comma, or the end
		}
	}
}

func items(raw []byte) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		i := skipSpace(raw, 0) + 1
		for n := 0; ; n++ {
			if i = skipSpace(raw, i); i >= len(raw) || raw[i] == ']' {
				return
			}
			end := skipValue(raw, i)
			if !yield(n, raw[i:end:end]) {
				return
			}
			i = skipSpace(raw, end) + 1
		}
	}
}

// textOf decodes a valid JSON string.
func textOf(quoted []byte) (text string) {
	if !bytes.Contains(quoted, []byte{'\\'}) {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &text)
	return text
}

// names finds the duplicate keys of an object. It stores hashes, because keys may be long and
// numerous.
type names struct {
	seed maphash.Seed
	seen map[uint64]struct{}
}

func (n *names) again(name string) bool {
	if n.seen == nil {
		n.seed, n.seen = maphash.MakeSeed(), make(map[uint64]struct{})
	}
	sum := maphash.String(n.seed, name)
	_, again := n.seen[sum]
	n.seen[sum] = struct{}{}
	return again
}
