package weaver

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// schemaOf returns the JSON Schema of the values that encoding/json decodes into a type, as far as the
// type determines it: a type with its own UnmarshalJSON, or a recursive one, allows any value. It is
// nil for a type that cannot be encoded.
func schemaOf(t reflect.Type) json.RawMessage {
	raw, err := json.Marshal((&schemas{}).of(t))
	if err != nil {
		return nil
	}
	return raw
}

type schemas struct {
	inside []reflect.Type // types being described
}

type schema map[string]any

var (
	jsonType = reflect.TypeFor[json.Unmarshaler]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (s *schemas) of(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.Number]():
		return schema{"type": "number"}
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case reflect.PointerTo(t).Implements(jsonType), t.Kind() == reflect.Interface:
		return schema{}
	case reflect.PointerTo(t).Implements(textType):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return schema{"type": "integer", "minimum": 0}
	}
	for _, outer := range s.inside {
		if outer == t {
			return schema{}
		}
	}
	s.inside = append(s.inside, t)
	defer func() { s.inside = s.inside[:len(s.inside)-1] }()
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "contentEncoding": "base64"}
		}
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Array:
		return schema{"type": "array", "items": s.of(t.Elem()), "maxItems": t.Len()}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.ofStruct(t)
	}
	return schema{}
}

func (s *schemas) ofStruct(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" && opts == "" || f.Anonymous && name == "" || hidden(t, f) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		of := s.of(f.Type)
		if strings.Contains(","+opts+",", ",string,") {
			of = schema{"type": "string"}
		}
		properties[name] = of
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	return schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// hidden reports whether a field belongs to an embedded struct with its own name in JSON.
func hidden(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:i]).Tag.Get("json"), ",")
		if name != "" {
			return true
		}
	}
	return false
}
