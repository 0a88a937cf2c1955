package redact

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Tag is the key of the field tags: `weaver:"redact"`.
const Tag = "weaver"

// tagged is what is known of a type.
type tagged struct {
	paths []string
	err   error
}

var types sync.Map // reflect.Type → tagged

// Paths returns the paths of the fields of a type that are tagged, below the value:
// "card/number", "items/#/secret". Error: a tag that says something else, or that
// stands where it does nothing.
func Paths(t reflect.Type) ([]string, error) {
	if t == nil {
		return nil, nil
	}
	if known, ok := types.Load(t); ok {
		return known.(tagged).paths, known.(tagged).err
	}
	w := walk{}
	err := w.of(t, nil)
	slices.Sort(w.paths)
	w.paths = slices.Compact(w.paths)
	if err == nil && len(w.paths) == 0 {
		w.paths = nil
	}
	types.Store(t, tagged{w.paths, err})
	return w.paths, err
}

// In puts what holds a value before paths.
func In(of string, paths []string) []string {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = of + "/" + p
	}
	return list
}

type walk struct {
	paths []string
	on    []reflect.Type // structs that the path leads through
}

func (w *walk) of(t reflect.Type, at []string) error {
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem(), at)
	case reflect.Slice, reflect.Array:
		return w.of(t.Elem(), append(slices.Clone(at), element))
	case reflect.Map:
		return w.of(t.Elem(), append(slices.Clone(at), "*"))
	case reflect.Struct:
		if slices.Contains(w.on, t) { // a type inside itself: what is tagged there is so at any depth
			names, err := taggedNames(t, map[reflect.Type]bool{})
			for _, n := range names {
				w.paths = append(w.paths, strings.Join(append(slices.Clone(at), "**", n), "/"))
			}
			return err
		}
		w.on = append(w.on, t)
		defer func() { w.on = w.on[:len(w.on)-1] }()
		return w.fields(t, at)
	}
	return nil
}

// fields looks at the fields of a struct as encoding/json does.
func (w *walk) fields(t reflect.Type, at []string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		masked, err := fieldTag(t, &f)
		if err != nil {
			return err
		}
		name, inline, skip := jsonName(&f)
		switch {
		case masked && (skip || inline):
			return fmt.Errorf("the field %s of %s has the tag %s:%q and is not encoded by itself: put the tag on fields that are", f.Name, t, Tag, "redact")
		case skip:
		case inline:
			if err := w.of(f.Type, at); err != nil {
				return err
			}
		case masked:
			w.paths = append(w.paths, strings.Join(append(slices.Clone(at), Literal(name)), "/"))
		default:
			if err := w.of(f.Type, append(slices.Clone(at), Literal(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// taggedNames returns the names of what is tagged anywhere in a type.
func taggedNames(t reflect.Type, seen map[reflect.Type]bool) (names []string, err error) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil, nil
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		masked, err := fieldTag(t, &f)
		if err != nil {
			return nil, err
		}
		if name, _, skip := jsonName(&f); skip {
			continue
		} else if masked {
			names = append(names, Literal(name))
			continue
		}
		more, err := taggedNames(f.Type, seen)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

// fieldTag reports whether a field is to be masked.
func fieldTag(t reflect.Type, f *reflect.StructField) (bool, error) {
	tag, has := f.Tag.Lookup(Tag)
	if !has {
		return false, nil
	}
	if tag != "redact" {
		return false, fmt.Errorf("the field %s of %s has the tag %s:%q: want %[3]s:%[5]q", f.Name, t, Tag, tag, "redact")
	}
	return true, nil
}

// jsonName is the name under which a field is encoded. inline: its own fields are, in
// its place.
func jsonName(f *reflect.StructField) (name string, inline, skip bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case f.Tag.Get("json") == "-":
		return "", false, true
	case f.Anonymous && name == "" && t.Kind() == reflect.Struct:
		return "", true, false
	case !f.IsExported():
		return "", false, true
	case name == "":
		name = f.Name
	}
	return name, false, false
}
