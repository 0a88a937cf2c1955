package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/jsonfields"
	"github.com/goweaver/weaver/store"
)

// Draft is the JSON Schema version of generated schemas.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Annotations of fields, from their tags `weaver:"redact"` and `weaver:"expire=720h"`.
const (
	Redacted = "x-weaver-redact" // true: hidden from readers
	Expires  = "x-weaver-expire" // retention time of the field
)

// Of describes a task type: its definition, with the JSON Schemas of its input and output. It omits a schema larger
// than a store keeps, so that anything is allowed.
func Of(t weaver.AnyType) store.AnnouncedType {
	info := t.Info()
	in, out := t.Payloads()
	info.Input, info.Output = describe(in), describe(out)
	return info
}

func describe(t reflect.Type) json.RawMessage {
	d := &describer{refs: make(map[reflect.Type]string), defs: make(node)}
	if named(t) {
		d.refs[t] = "#"
	}
	root := d.inline(t)
	root["$schema"] = Draft
	if len(d.defs) > 0 {
		root["$defs"] = d.defs
	}
	raw, err := json.Marshal(root)
	if err != nil || len(raw) > store.MaxTypeSchema {
		return nil
	}
	return raw
}

// node is a schema, or a map of schemas by name.
type node map[string]any

// describer generates the schema of one value. Named composite types become definitions, so that a type may contain
// itself and is described once.
type describer struct {
	refs map[reflect.Type]string
	defs node
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	numberType   = reflect.TypeFor[json.Number]()

	marshals     = reflect.TypeFor[json.Marshaler]()
	unmarshals   = reflect.TypeFor[json.Unmarshaler]()
	textMarshals = reflect.TypeFor[encoding.TextMarshaler]()
	textDecodes  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// named reports whether a type is described once, as a definition.
func named(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return t.Name() != "" && !custom(t)
	}
	return false
}

// custom reports whether a type has its own methods for encoding or decoding.
func custom(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{marshals, unmarshals, textMarshals, textDecodes}, func(m reflect.Type) bool { return has(t, m) })
}

func has(t, method reflect.Type) bool {
	return t.Implements(method) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(method)
}

func (d *describer) of(t reflect.Type) node {
	if !named(t) {
		return d.inline(t)
	}
	ref, known := d.refs[t]
	if !known {
		name := d.name(t)
		ref = "#/$defs/" + name
		d.refs[t] = ref
		d.defs[name] = node{} // reserve the name
		d.defs[name] = d.inline(t)
	}
	return node{"$ref": ref}
}

// name returns a unique definition name for a type.
func (d *describer) name(t reflect.Type) string {
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, t.Name())
	plain = plain[:min(len(plain), 60)]
	name := plain
	for i := 2; ; i++ {
		if _, taken := d.defs[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s_%d", plain, i)
	}
}

// or returns the schema of the given JSON types or null: encoding/json decodes null as the zero value.
func or(types ...string) node { return node{"type": append(types, "null")} }

// inline describes a type in place.
func (d *describer) inline(t reflect.Type) node {
	for range 10 { // a type may be a pointer to itself
		if t.Kind() != reflect.Pointer {
			break
		}
		if t = t.Elem(); named(t) {
			return d.of(t)
		}
	}
	switch {
	case t == timeType:
		n := or("string")
		n["format"] = "date-time"
		return n
	case t == durationType:
		n := d.integer(t)
		n["description"] = "nanoseconds"
		return n
	case t == numberType:
		return or("number", "string")
	case custom(t):
		if has(t, textMarshals) && has(t, textDecodes) && !has(t, marshals) && !has(t, unmarshals) {
			return or("string")
		}
		return node{}
	}
	switch t.Kind() {
	case reflect.String:
		return or("string")
	case reflect.Bool:
		return or("boolean")
	case reflect.Float32, reflect.Float64:
		return or("number")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return d.integer(t)
	case reflect.Slice, reflect.Array:
		return d.list(t)
	case reflect.Map:
		return d.dictionary(t)
	case reflect.Struct:
		return d.object(t)
	}
	return node{} // an interface or a type that cannot be encoded
}

// integer returns a schema with the limits of the type, as exact numbers.
func (d *describer) integer(t reflect.Type) node {
	n := or("integer")
	bits := t.Bits()
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr {
		n["minimum"], n["maximum"] = 0, ^uint64(0)>>(64-bits)
		return n
	}
	n["minimum"], n["maximum"] = int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
	return n
}

// list describes slices and arrays. An array accepts any number of values: encoding/json drops extra ones and zeroes
// missing ones.
func (d *describer) list(t reflect.Type) node {
	n := or("array")
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		n = or("string", "array")
		n["contentEncoding"] = "base64"
	}
	if of := d.of(t.Elem()); len(of) > 0 {
		n["items"] = of
	}
	return n
}

func (d *describer) dictionary(t reflect.Type) node {
	n := or("object")
	if of := d.of(t.Elem()); len(of) > 0 {
		n["additionalProperties"] = of
	}
	return n
}

func (d *describer) object(t reflect.Type) node {
	properties := make(node)
	for _, f := range jsonfields.Of(t) {
		of := d.of(f.Type)
		if elem := f.Type; f.Quoted {
			if elem.Kind() == reflect.Pointer {
				elem = elem.Elem()
			}
			if !custom(elem) {
				of = or("string")
			}
		}
		for part := range strings.SplitSeq(f.Tag.Get("weaver"), ",") {
			after, expires := strings.CutPrefix(part, "expire=")
			switch {
			case part == "redact":
				of[Redacted] = true
			case expires:
				of[Expires] = after
			}
		}
		properties[f.Name] = of
	}
	n := or("object")
	n["additionalProperties"] = false
	if len(properties) > 0 {
		n["properties"] = properties
	}
	return n
}
