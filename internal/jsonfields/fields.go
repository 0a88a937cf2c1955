// Package jsonfields returns the fields of a struct as encoding/json sees them. The schemas of task types and of the
// HTTP API are built from them.
package jsonfields

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Field is a field of a struct as encoding/json sees it.
type Field struct {
	Name     string
	Type     reflect.Type
	Tag      reflect.StructTag
	Quoted   bool // the value is encoded inside a string
	Optional bool // omitempty or omitzero leaves an empty value out

	Struct reflect.Type // the struct that declares the field, possibly embedded
	GoName string

	tagged bool // the name comes from a tag
	depth  int  // depth of embedding
	order  []int
}

// Of returns the fields that encoding/json reads and writes for a struct, in order. Fields of embedded structs are
// included. Of two fields with the same name the less deeply embedded one counts, then the one with a tag; if both
// are equal, neither counts.
func Of(t reflect.Type) []Field {
	byName := make(map[string][]Field)
	collect(t, nil, nil, func(f Field) { byName[f.Name] = append(byName[f.Name], f) })
	var fields []Field
	for _, same := range byName {
		slices.SortStableFunc(same, func(a, b Field) int {
			if c := cmp.Compare(a.depth, b.depth); c != 0 {
				return c
			}
			switch {
			case a.tagged == b.tagged:
				return 0
			case a.tagged:
				return -1
			}
			return 1
		})
		if len(same) > 1 && same[0].depth == same[1].depth && same[0].tagged == same[1].tagged {
			continue
		}
		fields = append(fields, same[0])
	}
	slices.SortFunc(fields, func(a, b Field) int { return slices.Compare(a.order, b.order) })
	return fields
}

// collect calls add for each candidate field. on holds the structs that enclose t; collect does not enter them again,
// because their fields are already present at a lesser depth.
func collect(t reflect.Type, on []reflect.Type, at []int, add func(Field)) {
	if slices.Contains(on, t) {
		return
	}
	on = append(slices.Clip(on), t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if !validName(name) {
			name = ""
		}
		elem := f.Type
		if elem.Name() == "" && elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		order := append(slices.Clone(at), i)
		inner := f.Anonymous && elem.Kind() == reflect.Struct
		if inner && name == "" {
			collect(elem, on, order, add)
			continue
		}
		if !inner && !f.IsExported() {
			continue
		}
		words := strings.Split(opts, ",")
		add(Field{
			Name: cmp.Or(name, f.Name), Type: f.Type, Tag: f.Tag, Struct: t, GoName: f.Name, tagged: name != "", depth: len(on), order: order,
			Quoted:   slices.Contains(words, "string") && quotable(elem),
			Optional: slices.Contains(words, "omitempty") || slices.Contains(words, "omitzero"),
		})
	}
}

// quotable reports whether the option "string" has an effect on a type.
func quotable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}

// validName reports whether encoding/json accepts the name of a tag; otherwise it uses the name of the field.
func validName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
