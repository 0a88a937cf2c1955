package jsonfields

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxShape is the maximum size of a shape in bytes; a larger type gets an empty shape.
const maxShape = 4 << 10

// Shape describes the JSON that encoding/json decodes into a type, for programs that lack the type: the name of a
// basic type, [ELEMENT], {"FIELD": …} or, for a map, {"": ELEMENT}. A type that decodes itself or contains itself is
// "any". The shape "" allows any JSON.
func Shape(t reflect.Type) string {
	shape := shapeOf(t, nil)
	if shape == any("any") {
		return ""
	}
	raw, err := json.Marshal(shape)
	if err != nil || len(raw) > maxShape {
		return ""
	}
	return string(raw)
}

var basics = map[string]reflect.Type{
	"any": reflect.TypeFor[any](), "time": reflect.TypeFor[time.Time](), "bool": reflect.TypeFor[bool](), "string": reflect.TypeFor[string](),
	"int": reflect.TypeFor[int](), "int8": reflect.TypeFor[int8](), "int16": reflect.TypeFor[int16](), "int32": reflect.TypeFor[int32](), "int64": reflect.TypeFor[int64](),
	"uint": reflect.TypeFor[uint](), "uint8": reflect.TypeFor[uint8](), "uint16": reflect.TypeFor[uint16](), "uint32": reflect.TypeFor[uint32](), "uint64": reflect.TypeFor[uint64](),
	"uintptr": reflect.TypeFor[uintptr](), "float32": reflect.TypeFor[float32](), "float64": reflect.TypeFor[float64](),
}

// shapeOf describes t; on holds the enclosing types.
func shapeOf(t reflect.Type, on []reflect.Type) any {
	for t.Kind() == reflect.Pointer && len(on) < 100 {
		on, t = append(on, t), t.Elem()
	}
	if t == basics["time"] {
		return "time"
	}
	if len(on) > 100 || decodesItself(t) || t == reflect.TypeFor[json.Number]() {
		return "any"
	}
	for _, outer := range on {
		if outer == t {
			return "any"
		}
	}
	on = append(on[:len(on):len(on)], t)
	switch t.Kind() {
	case reflect.Slice, reflect.Array: // an array takes any number of values
		return []any{shapeOf(t.Elem(), on)}
	case reflect.Map:
		if t.Key().Kind() != reflect.String || decodesItself(t.Key()) {
			return "any"
		}
		return map[string]any{"": shapeOf(t.Elem(), on)}
	case reflect.Struct:
		fields := make(map[string]any)
		for _, f := range Of(t) {
			if fields[f.Name] = any("any"); !f.Quoted {
				fields[f.Name] = shapeOf(f.Type, on)
			}
		}
		return fields
	}
	if name := t.Kind().String(); basics[name] != nil {
		return name
	}
	return "any"
}

func decodesItself(t reflect.Type) bool {
	for _, method := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
		if t.Implements(method) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(method) {
			return true
		}
	}
	return false
}

// CheckShape returns an error, worded by [Mistake], if JSON does not decode into the type that a [Shape] describes. A
// shape that this program cannot read allows any JSON.
func CheckShape(shape string, raw json.RawMessage) error {
	var described any
	if shape == "" || len(shape) > maxShape || json.Unmarshal([]byte(shape), &described) != nil {
		return nil
	}
	t, err := typeOf(described)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	return Mistake(dec.Decode(reflect.New(t).Interface()), t)
}

var errShape = errors.New("not a shape")

// typeOf returns a type that decodes the same JSON as the described one.
func typeOf(shape any) (reflect.Type, error) {
	switch s := shape.(type) {
	case string:
		if t := basics[s]; t != nil {
			return t, nil
		}
	case []any:
		if len(s) != 1 {
			return nil, errShape
		}
		elem, err := typeOf(s[0])
		if err != nil {
			return nil, err
		}
		return reflect.SliceOf(elem), nil
	case map[string]any:
		if of, ok := s[""]; ok && len(s) == 1 {
			elem, err := typeOf(of)
			if err != nil {
				return nil, err
			}
			return reflect.MapOf(basics["string"], elem), nil
		}
		var fields []reflect.StructField
		for name, of := range s {
			elem, err := typeOf(of)
			if err != nil || name == "" {
				return nil, errShape
			}
			tag := "json:" + strconv.Quote(name+",") // the comma allows the name "-"
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", len(fields)), Type: elem, Tag: reflect.StructTag(tag)})
		}
		return reflect.StructOf(fields), nil
	}
	return nil, errShape
}
