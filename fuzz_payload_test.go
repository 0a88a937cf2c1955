package weaver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver"
)

// For any bytes: an invalid payload is refused with the place of the first problem and not stored; a
// valid one comes back byte by byte from every store.
func FuzzPayload(f *testing.F) {
	for _, raw := range []string{
		`null`, ` { "a" : [ 1.50 , -0 , 1e400 , 12345678901234567890.000100 ] } `, `"é😀\ud83d\ude00\\u0000\"\/"`, `{"":{"":[]}}`,
		``, `{"a":`, `{"a":1} x`, `[1,]`, `{"a" 1}`, `[}`, `nul`, `01`, `"\x"`, "\"\xff\"", "\xef\xbb\xbf1", "\"\xed\xa0\x80\"", "\"a\x01b\"",
		`{"user":{"name":"a\u0000b"}}`, `{"a\u0000b":1}`, `["ok","\uD800"]`, `["\udc00"]`, `["\ud800\ud800"]`, `["\ud800\u0041"]`, `["\ud800x"]`, `["\uD83D\uDE00"]`,
		`{"a":{"b":1,"c":2,"b":3}}`, `{"b":1,"\u0062":3}`, `{"\ud83d\ude00":1,"😀":2}`, `{"a":1,"A":2}`, `{"a\nb":1,"a\nb":2}`,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
		strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000), strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001),
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), `"` + strings.Repeat("x", weaver.DefaultInlineLimit) + `"`,
	} {
		f.Add([]byte(raw))
	}
	stores := newFuzzStores(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := verdict(raw)
		for name, c := range stores.clients(t) {
			got, err := c.EnqueueTasks(t.Context(), weaver.NewDraft("fuzz.payload.json.v1", raw))
			if want == "" && len(raw) > weaver.DefaultInlineLimit {
				if !errors.Is(err, weaver.ErrTooLarge) {
					t.Fatalf("%s: %d bytes: %v, want ErrTooLarge", name, len(raw), err)
				}
				continue
			}
			if want == "" {
				if err != nil {
					t.Fatalf("%s refuses what it should keep: %v", name, err)
				}
				back, err := c.Get(t.Context(), got[0].ID)
				if err != nil || !bytes.Equal(back.Input, raw) {
					t.Fatalf("%s: the input came back as %q, %v", name, back.Input, err)
				}
				continue
			}
			if !errors.Is(err, weaver.ErrInvalidInput) || !strings.Contains(err.Error(), "fuzz.payload.json.v1: "+want) {
				t.Fatalf("%s: %.300v\nwant invalid input, with %q", name, err, want)
			}
			if left := list(t, c, weaver.Filter{}); len(left) != 0 {
				t.Fatalf("%s stored %d tasks of a refused payload", name, len(left))
			}
		}
	})
}

// verdict specifies the check independently of the code: "" for a valid payload, else the start of the
// complaint.
func verdict(raw []byte) string {
	// The standard library also refuses nesting deeper than 10,000.
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return "$" // the exact place depends on the reader
	}
	r := reader{rest: raw}
	r.value("$", 0)
	return r.problem
}

// reader scans valid JSON and remembers the first problem.
type reader struct {
	rest    []byte
	problem string
}

func (r *reader) complain(path, what string) {
	if r.problem == "" {
		r.problem = path + what
	}
}

// next reads n bytes.
func (r *reader) next(n int) []byte {
	n = min(n, len(r.rest))
	got := r.rest[:n]
	r.rest = r.rest[n:]
	return got
}

// peek returns the first byte of the next token; 0 at the end.
func (r *reader) peek() byte {
	if r.rest = bytes.TrimLeft(r.rest, " \t\r\n"); len(r.rest) == 0 {
		return 0
	}
	return r.rest[0]
}

func (r *reader) value(path string, depth int) {
	first := r.peek()
	switch {
	case r.problem != "":
	case first == '"':
		r.text(path)
	case first != '[' && first != '{':
		r.next(max(1, bytes.IndexAny(append(bytes.Clone(r.rest), ','), ",]} \t\r\n")))
	case depth == 1000:
		r.complain(fmt.Sprintf("%.80s", path), "…: nested deeper")
	default:
		r.next(1)
		seen := make(map[string]bool)
		for i := 0; r.peek() != first+2 && r.problem == "" && len(r.rest) > 0; i++ {
			inner := fmt.Sprintf("%s[%d]", path, i)
			if first == '{' {
				inner = r.key(path, seen)
			}
			r.value(inner, depth+1)
			if r.peek() == ',' {
				r.next(1)
			}
		}
		r.next(1)
	}
}

// key reads a key and its colon, and returns the path of its value.
func (r *reader) key(path string, seen map[string]bool) string {
	before := r.rest
	r.text("")
	quoted := before[:len(before)-len(r.rest)]
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		r.complain(path, ": not JSON")
	}
	path += "." + name
	if r.problem != "" {
		r.problem = path + r.problem // found before the name was known
	} else if seen[name] {
		r.complain(path, ": the key stands twice")
	}
	seen[name] = true
	if r.peek() == ':' {
		r.next(1)
	}
	return path
}

// text reads a quoted text, unit by unit.
func (r *reader) text(path string) {
	r.next(1)
	high := false // a high surrogate awaits its low one
	for len(r.rest) > 0 {
		unit := rune(-1) // of UTF-16, when it is written as \uXXXX
		b := r.next(1)[0]
		if b == '\\' {
			if b = r.next(1)[0]; b == 'u' {
				if _, err := fmt.Sscanf(string(r.next(4)), "%04x", &unit); err != nil {
					r.complain(path, ": not JSON")
				}
			}
			b = 0
		}
		low := unit >= 0xDC00 && unit < 0xE000
		if high != low {
			r.complain(path, ": contains a lone surrogate")
		}
		high = unit >= 0xD800 && unit < 0xDC00
		if unit == 0 {
			r.complain(path, ": contains a NUL character")
		}
		if b == '"' {
			return
		}
	}
}
