package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a field of a struct as encoding/json sees it.
type field struct {
	name   string
	typ    reflect.Type
	tag    reflect.StructTag
	tagged bool // its name comes from a tag
	quoted bool // its value is encoded inside a string
	depth  int  // how many embedded structs it lies in
	order  []int
}

// fieldsOf returns the fields that encoding/json writes and reads of a struct, in their
// order: those of embedded structs are its own, of two with one name the one that is
// embedded less deeply counts, then the one whose tag says so, else none of them.
func fieldsOf(t reflect.Type) []field {
	byName := make(map[string][]field)
	collect(t, nil, nil, func(f field) { byName[f.name] = append(byName[f.name], f) })
	var fields []field
	for _, same := range byName {
		slices.SortStableFunc(same, func(a, b field) int {
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
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.order, b.order) })
	return fields
}

// collect calls add for each candidate. on are the structs around t, which are not
// entered again: what they have lies less deep.
func collect(t reflect.Type, on []reflect.Type, at []int, add func(field)) {
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
		add(field{
			name: cmp.Or(name, f.Name), typ: f.Type, tag: f.Tag, tagged: name != "", depth: len(on), order: order,
			quoted: slices.Contains(strings.Split(opts, ","), "string") && quotable(elem),
		})
	}
}

// quotable reports whether the option "string" does something to a type.
func quotable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}

// validName reports whether encoding/json takes a name of a tag: else the name is the
// field's.
func validName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
