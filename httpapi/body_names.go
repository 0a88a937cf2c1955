package httpapi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/jsonfields"
)

// checkNames refuses names that are no fields of a type, and what is no object where one
// is wanted. encoding/json takes names in any case, so that an object could have one field
// twice.
func checkNames(raw json.RawMessage, t reflect.Type, at string) error {
	if t.Kind() == reflect.Slice && hasNames(t.Elem()) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil // decodeBody says what it is
		}
		for i, item := range list {
			if err := checkNames(item, t.Elem(), fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if !hasNames(t) {
		return nil
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return bodyProblem(invalidBody, at, "want an object, and it is a JSON null")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	fields := jsonfields.Of(t)
	for name, value := range object {
		i := slices.IndexFunc(fields, func(f jsonfields.Field) bool { return f.Name == name })
		if i < 0 {
			return bodyProblem(invalidBody, at+"/"+escapePointer(name), noField(name, fields))
		}
		if err := checkNames(value, fields[i].Type, at+"/"+escapePointer(name)); err != nil {
			return err
		}
	}
	return nil
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
