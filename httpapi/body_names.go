package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/jsonfields"
)

// fields rejects unknown field names, lists that are too long, and values that fields do not
// accept. It reports the place, which encoding/json does not do in lists and for types that decode
// themselves. encoding/json also matches names in any case, so that an object could have one field
// twice.
func (b *bodyCheck) fields(raw json.RawMessage, t reflect.Type, at string) error {
	if err := b.ended(); err != nil {
		return err
	}
	if t.Kind() == reflect.Slice && hasNames(t.Elem()) {
		if raw[0] != '[' {
			return checkValue(raw, t, at)
		}
		for i, item := range items(raw) {
			if err := b.fields(item, t.Elem(), fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String {
		if raw[0] != '{' {
			return checkValue(raw, t, at)
		}
		for name, value := range members(raw) {
			if strings.ContainsRune(name, 0) {
				return bodyProblem(badRequest, at+"/"+escapePointer(name), "the name contains a NUL character")
			}
			if string(value) == "null" { // encoding/json would decode it as an empty text
				return bodyProblem(invalidBody, at+"/"+escapePointer(name), "want a string, and it is a JSON null")
			}
			if err := checkValue(value, t.Elem(), at+"/"+escapePointer(name)); err != nil {
				return err
			}
		}
		return nil
	}
	if !hasNames(t) {
		return checkValue(raw, t, at)
	}
	if string(raw) == "null" {
		return bodyProblem(invalidBody, at, "want an object, and it is a JSON null")
	}
	if raw[0] != '{' {
		return checkValue(raw, t, at)
	}
	known := bodyFieldsOf(t)
	for name, value := range members(raw) {
		i := slices.IndexFunc(known, func(f bodyField) bool { return f.Name == name })
		if i < 0 {
			return bodyProblem(invalidBody, at+"/"+escapePointer(name), noField(name, known))
		}
		f, at := &known[i], at+"/"+escapePointer(name)
		if n := elements(value); f.most > 0 && n > f.most { // before they are decoded
			return bodyProblem(invalidBody, at, fmt.Sprintf("it has %d elements: at most %d are taken", n, f.most))
		}
		if err := b.fields(value, f.Type, at); err != nil {
			return err
		}
	}
	return nil
}

// bodyField is a field of a body.
type bodyField struct {
	jsonfields.Field
	most int // limit of the elements of its list or map; 0 for other types
}

// maxElements limits the elements of a list or map of a body without a tag `max`.
const maxElements = 1000

var bodyFields sync.Map // []bodyField by reflect.Type

// bodyFieldsOf returns the fields of a struct, from a cache.
func bodyFieldsOf(t reflect.Type) []bodyField {
	if known, found := bodyFields.Load(t); found {
		list, _ := known.([]bodyField)
		return list
	}
	var list []bodyField
	for _, f := range jsonfields.Of(t) {
		list = append(list, bodyField{f, mostElements(f)})
	}
	bodyFields.Store(t, list)
	return list
}

// mostElements returns the element limit of a body's field; 0 if it is neither a list nor a map, or
// is unlimited, as inputs are.
func mostElements(f jsonfields.Field) int {
	if n, err := strconv.Atoi(f.Tag.Get("max")); err == nil {
		return n
	}
	if k := f.Type.Kind(); k == reflect.Map || k == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 {
		return maxElements
	}
	return 0
}

// elements counts the elements of a list or an object without decoding them. raw is valid JSON.
func elements(raw json.RawMessage) (n int) {
	depth := 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		if depth == 1 && (c == ',' || n == 0 && c != ']' && c != '}') {
			n++
		}
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return n
}

// checkValue rejects JSON that a type does not accept, and texts with a NUL, which stores do not
// accept. JSON that is stored unchanged may contain NUL.
func checkValue(raw json.RawMessage, t reflect.Type, at string) error {
	if t == reflect.TypeFor[json.RawMessage]() {
		return nil // it accepts any value, and would be copied
	}
	v := reflect.New(t)
	err := json.Unmarshal(raw, v.Interface())
	if bytes.Contains(raw, []byte(`\u0000`)) && (hasNUL(v.Elem()) || err != nil && isNUL(raw)) {
		return bodyProblem(badRequest, at, "the text contains a NUL character")
	}
	var wrong *json.UnmarshalTypeError
	var noTime *time.ParseError
	var p *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &noTime):
		return bodyProblem(invalidBody, at, fmt.Sprintf("%q is not a time: use the form 2026-01-02T03:04:05Z", strings.Trim(noTime.Value, `"`)))
	case errors.As(err, &wrong):
		return bodyProblem(invalidBody, at, jsonfields.Wrong(t, wrong.Value))
	case errors.As(err, &p):
		return p
	}
	return bodyProblem(invalidBody, at, strings.TrimPrefix(err.Error(), "json: "))
}

// isNUL reports whether JSON is a text with a NUL.
func isNUL(raw json.RawMessage) bool {
	var text string
	return json.Unmarshal(raw, &text) == nil && strings.ContainsRune(text, 0)
}

// hasNUL reports whether a text, element or key of a value contains a NUL.
func hasNUL(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return strings.ContainsRune(v.String(), 0)
	case reflect.Pointer:
		return !v.IsNil() && hasNUL(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return false
		}
		for i := range v.Len() {
			if hasNUL(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for name, value := range v.Seq2() {
			if hasNUL(name) || hasNUL(value) {
				return true
			}
		}
	}
	return false
}

// noField returns the message for an unknown field, with the known ones.
func noField(name string, fields []bodyField) string {
	var known []string
	for _, f := range fields {
		known = append(known, f.Name)
	}
	if near := nearest(strings.ToLower(name), known); near != "" {
		return fmt.Sprintf("there is no field %q (did you mean %s?)", name, near)
	}
	return fmt.Sprintf("there is no field %q; there are %s", name, strings.Join(known, ", "))
}

// hasNames reports whether a type's JSON is an object with the fields of a struct.
func hasNames(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Struct && !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
