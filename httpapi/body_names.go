package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/jsonfields"
)

// checkFields refuses names that are no fields of a type, and values that fields do not
// take. It says where, which encoding/json does not in lists and of types that decode
// themselves; and that takes names in any case, so that an object could have one field twice.
func checkFields(raw json.RawMessage, t reflect.Type, at string) error {
	if t.Kind() == reflect.Slice && hasNames(t.Elem()) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return checkValue(raw, t, at)
		}
		for i, item := range list {
			if err := checkFields(item, t.Elem(), fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if !hasNames(t) {
		return checkValue(raw, t, at)
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return bodyProblem(invalidBody, at, "want an object, and it is a JSON null")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return checkValue(raw, t, at)
	}
	fields := jsonfields.Of(t)
	for name, value := range object {
		i := slices.IndexFunc(fields, func(f jsonfields.Field) bool { return f.Name == name })
		if i < 0 {
			return bodyProblem(invalidBody, at+"/"+escapePointer(name), noField(name, fields))
		}
		if err := checkFields(value, fields[i].Type, at+"/"+escapePointer(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkValue refuses JSON that a type does not take.
func checkValue(raw json.RawMessage, t reflect.Type, at string) error {
	err := json.Unmarshal(raw, reflect.New(t).Interface())
	var wrong *json.UnmarshalTypeError
	var p *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return bodyProblem(invalidBody, at, fmt.Sprintf("want %s, and it is a JSON %s", wanted(t), wrong.Value))
	case errors.As(err, &p):
		return p
	}
	return bodyProblem(invalidBody, at, strings.TrimPrefix(err.Error(), "json: "))
}

// wanted says what a field takes.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "an array of the right values"
	case reflect.Map:
		return "an object of the right values"
	case reflect.Struct:
		return "an object"
	}
	return t.String()
}

// noField says that there is no field of a name, and which there are.
func noField(name string, fields []jsonfields.Field) string {
	var known []string
	for _, f := range fields {
		known = append(known, f.Name)
	}
	if near := nearest(strings.ToLower(name), known); near != "" {
		return fmt.Sprintf("there is no field %q (did you mean %s?)", name, near)
	}
	return fmt.Sprintf("there is no field %q; there are %s", name, strings.Join(known, ", "))
}

// hasNames reports whether a type's JSON is an object of the fields of a struct.
func hasNames(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Struct && !p.Implements(reflect.TypeFor[json.Unmarshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
