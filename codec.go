package weaver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// validator is implemented by inputs and outputs with their own validation.
type validator interface{ Validate() error }

// validate calls Validate on the value or its address: Validate may have either receiver, and T may be
// a pointer. A Validate that panics on a nil pointer refuses it.
func validate(v any) (err error) {
	r := reflect.ValueOf(v).Elem()
	if r.Kind() == reflect.Pointer && r.IsNil() {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it is a nil %s, which its Validate cannot take: pass a value, or let Validate accept nil", r.Type())
			}
		}()
	}
	if r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface {
		v = r.Interface() // pointers to these have no methods
	}
	if c, ok := v.(validator); ok {
		return c.Validate()
	}
	return nil
}

// encode encodes a value as JSON that every store accepts.
func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(reflect.ValueOf(v).Elem().Interface())
	if err != nil {
		return nil, err
	}
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// encodeOutput validates and encodes the result of a handler or step.
func encodeOutput(what string, v any) (json.RawMessage, error) {
	if err := validate(v); err != nil {
		return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s is not valid: %w", what, err)}
	}
	raw, err := encode(v)
	if err != nil {
		return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s cannot be stored: %w", what, err)}
	}
	return raw, nil
}

// maxDepth is the maximum nesting depth of JSON.
const maxDepth = 1000

// checkJSON refuses JSON that some store cannot keep unchanged: NUL characters, lone surrogates, bytes
// that are not UTF-8, duplicate keys, and nesting deeper than 1,000. The error names the path.
func checkJSON(raw json.RawMessage) error {
	if !utf8.Valid(raw) {
		return errors.New("$: contains bytes that are not UTF-8")
	}
	text, syntax := string(raw), error(nil)
	if !json.Valid(raw) {
		// Walk the valid part before the error anyway: it gives the path, and may hold an earlier
		// problem.
		var at *json.SyntaxError
		syntax = json.Unmarshal(raw, new(json.RawMessage))
		if errors.As(syntax, &at) && at.Offset > 0 {
			text = text[:at.Offset-1]
		}
	}
	w := walk{text: text}
	if err := w.all(); err != nil {
		return err
	}
	switch {
	case syntax == nil:
		return nil
	case json.NewDecoder(bytes.NewReader(raw)).Decode(new(json.RawMessage)) == nil:
		return errors.New("$: something follows the JSON value")
	}
	return fmt.Errorf("%s: not JSON: %w", w.path(), syntax)
}

// walk scans JSON once, up to the first syntax error. It remembers its position and builds a path only
// for a problem: payloads have many values and few mistakes.
type walk struct {
	text  string
	pos   int
	stack []level // above its length: finished levels, whose maps are reused
}

// level is an object or array that encloses the position of a walk.
type level struct {
	object bool
	index  int    // in an array
	key    string // in an object: key of the current value, when named
	named  bool
	seen   map[string]struct{} // the keys of an object
}

func (w *walk) all() error {
	for w.pos < len(w.text) {
		c := w.text[w.pos]
		switch c {
		case '"':
			if err := w.quoted(); err != nil {
				return err
			}
			continue
		case '{', '[':
			if len(w.stack) == maxDepth {
				return fmt.Errorf("%.80s…: nested deeper than %d levels", w.path(), maxDepth)
			}
			w.enter(c == '{')
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
		case ',':
			top := &w.stack[len(w.stack)-1]
			top.index++
			top.named = false
		}
		w.pos++
	}
	return nil
}

// manyKeys is the maximum size of a map that is reused: clearing a map takes time in proportion to its
// largest size.
const manyKeys = 32

func (w *walk) enter(object bool) {
	n := len(w.stack)
	if n == cap(w.stack) {
		w.stack = append(w.stack, level{object: object})
		return
	}
	w.stack = w.stack[:n+1]
	top := &w.stack[n]
	seen := top.seen
	if len(seen) > manyKeys {
		seen = nil
	}
	clear(seen)
	*top = level{object: object, seen: seen}
}

// quoted reads a string: a key where a key is due, else a value. An unterminated string is reported as
// a syntax error.
func (w *walk) quoted() error {
	end, escaped := w.pos+1, false
	for end < len(w.text) && w.text[end] != '"' {
		if w.text[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	if end >= len(w.text) {
		w.pos = len(w.text)
		return nil
	}
	quoted := w.text[w.pos : end+1]
	w.pos = end + 1
	var top *level
	if n := len(w.stack); n > 0 && w.stack[n-1].object && !w.stack[n-1].named {
		top = &w.stack[n-1]
		top.key, top.named = quoted[1:len(quoted)-1], true
		if escaped {
			if err := json.Unmarshal([]byte(quoted), &top.key); err != nil {
				return fmt.Errorf("%s: not JSON: %w", w.path(), err)
			}
		}
	}
	if escaped {
		if problem := badEscape(quoted); problem != "" {
			return fmt.Errorf("%s: %s", w.path(), problem)
		}
	}
	if top == nil {
		return nil
	}
	if _, twice := top.seen[top.key]; twice {
		return fmt.Errorf("%s: the key stands twice", w.path())
	}
	if top.seen == nil {
		top.seen = make(map[string]struct{})
	}
	top.seen[top.key] = struct{}{}
	return nil
}

// path returns the position of the walk: $.orders[3].id
func (w *walk) path() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, l := range w.stack {
		switch {
		case !l.object:
			fmt.Fprintf(&b, "[%d]", l.index)
		case l.named:
			b.WriteString("." + l.key)
		}
	}
	return b.String()
}

// badEscape describes an invalid escape in a quoted string.
func badEscape(s string) string {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		r := hex4(s[i+1:])
		switch {
		case r == 0:
			return "contains a NUL character"
		case r >= 0xDC00 && r <= 0xDFFF:
			return "contains a lone surrogate"
		case r >= 0xD800 && r <= 0xDBFF:
			if len(s) < i+11 || s[i+5] != '\\' || s[i+6] != 'u' {
				return "contains a lone surrogate"
			}
			if low := hex4(s[i+7:]); low < 0xDC00 || low > 0xDFFF {
				return "contains a lone surrogate"
			}
			i += 6
		}
		i += 4
	}
	return ""
}

func hex4(s string) int {
	n, err := strconv.ParseUint(s[:min(4, len(s))], 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}
