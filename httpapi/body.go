package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"unicode/utf8"
)

// decodeBody decodes JSON strictly: no duplicate keys, no unknown fields, nothing after the value.
// The problem contains the place of the mistake.
func decodeBody(ctx context.Context, raw []byte, v any) error {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 {
		return badRequest.of("The body is empty: want a JSON object.")
	}
	if !utf8.Valid(raw) { // encoding/json would replace invalid bytes
		return badRequest.of("The body is not UTF-8.")
	}
	check := &bodyCheck{ctx: ctx}
	at, err := check.keys(raw)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return bodyProblem(badRequest, at, err.Error())
	}
	if err := check.fields(raw, reflect.TypeOf(v).Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return bodyProblem(invalidBody, "", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// bodyProblem returns a problem with one place of the body.
func bodyProblem(k problemKind, pointer, detail string) *Problem {
	p := k.of("The body is wrong.")
	p.Errors = []ProblemError{{Pointer: "#" + pointer, Detail: detail}}
	return p
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(s string) string { return pointerEscaper.Replace(s) }

// maxDepth limits the nesting of a body's JSON.
const maxDepth = 1000

// bodyCheck checks a body before it is decoded, until its context ends.
type bodyCheck struct {
	ctx   context.Context
	looks int
}

// ended returns the context's error, which it checks periodically.
func (b *bodyCheck) ended() error {
	if b.looks++; b.looks%1024 != 0 {
		return nil
	}
	return b.ctx.Err()
}

// keys checks the syntax of JSON, duplicate keys, and text after the value.
func (b *bodyCheck) keys(raw []byte) (at string, err error) {
	if json.Valid(raw) {
		return b.twice(raw)
	}
	return b.mistake(raw)
}

// mistake returns the place of the first syntax error.
func (b *bodyCheck) mistake(raw []byte) (at string, err error) {
	type level struct {
		object, key bool // key: the next token is a key
		name        string
		index       int
	}
	var stack []level
	where := func() string {
		var b strings.Builder
		for _, l := range stack {
			if l.object && !l.key {
				b.WriteString("/" + escapePointer(l.name))
			} else if !l.object {
				fmt.Fprintf(&b, "/%d", l.index)
			}
		}
		return b.String()
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		if err := b.ended(); err != nil {
			return "", err
		}
		tok, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return where(), errors.New("the JSON ends too soon")
		case err != nil:
			return where(), fmt.Errorf("it is not JSON: %s (byte %d)", strings.TrimPrefix(err.Error(), "json: "), dec.InputOffset())
		}
		top := len(stack) - 1
		if d, isDelim := tok.(json.Delim); isDelim {
			switch d {
			case '{', '[':
				stack = append(stack, level{object: d == '{', key: d == '{'})
				continue
			default:
				stack = stack[:top]
				top--
			}
		} else if top >= 0 && stack[top].object && stack[top].key {
			l := &stack[top]
			l.name, _ = tok.(string)
			l.key = false
			continue
		}
		// End of a value.
		switch {
		case top < 0:
			return "", errors.New("something follows the JSON value")
		case stack[top].object:
			stack[top].key = true
		default:
			stack[top].index++
		}
	}
}

// urlQuery parses the query strictly.
func urlQuery(r *http.Request) (url.Values, error) { return url.ParseQuery(r.URL.RawQuery) }
