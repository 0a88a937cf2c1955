package redact

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver/task"
)

// Tag is the key of the field tags: `weaver:"redact"`, `weaver:"expire=720h"`, or both.
const Tag = "weaver"

// tagged caches the tags of a type.
type tagged struct {
	paths  []string
	expire []task.Expiry
	err    error
}

var types sync.Map // reflect.Type → tagged

// Paths returns the paths of the tagged fields of a type, relative to the value: "card/number", "items/#/secret". It
// returns an error for an invalid tag, and for a tag in a place where it has no effect.
func Paths(t reflect.Type) ([]string, error) {
	known := ofType(t)
	return known.paths, known.err
}

// Expiries returns the fields of a type with a retention time, by their paths relative to the value; see Paths.
func Expiries(t reflect.Type) ([]task.Expiry, error) {
	known := ofType(t)
	return known.expire, known.err
}

func ofType(t reflect.Type) tagged {
	if t == nil {
		return tagged{}
	}
	if known, ok := types.Load(t); ok {
		return known.(tagged)
	}
	w := walk{}
	err := w.of(t, nil)
	slices.Sort(w.paths)
	w.paths = slices.Compact(w.paths)
	if err == nil && len(w.paths) == 0 {
		w.paths = nil
	}
	known := tagged{w.paths, w.expire, err}
	types.Store(t, known)
	return known
}

// In prefixes paths with the source of a value.
func In(of string, paths []string) []string {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = of + "/" + p
	}
	return list
}

type walk struct {
	paths  []string
	expire []task.Expiry
	on     []reflect.Type // structs on the path
	lists  []reflect.Type // other types on the path since the last struct: a slice type may contain itself
}

func (w *walk) of(t reflect.Type, at []string) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if slices.Contains(w.lists, t) {
			return nil
		}
		outer := w.lists
		w.lists = append(slices.Clip(outer), t)
		defer func() { w.lists = outer }()
	case reflect.Struct:
		outer := w.lists
		w.lists = nil
		defer func() { w.lists = outer }()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem(), at)
	case reflect.Slice, reflect.Array:
		return w.of(t.Elem(), append(slices.Clone(at), element))
	case reflect.Map:
		return w.of(t.Elem(), append(slices.Clone(at), "*"))
	case reflect.Struct:
		if slices.Contains(w.on, t) { // a type inside itself: its tags apply at any depth
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

// fields visits the fields of a struct as encoding/json does.
func (w *walk) fields(t reflect.Type, at []string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		masked, expire, err := fieldTag(t, &f)
		if err != nil {
			return err
		}
		name, inline, skip := jsonName(&f)
		switch {
		case (masked || expire > 0) && (skip || inline):
			return fmt.Errorf("the field %s of %s has the tag %s:%q and is not encoded by itself: put the tag on fields that are", f.Name, t, Tag, f.Tag.Get(Tag))
		case skip:
		case inline:
			if err := w.of(f.Type, at); err != nil {
				return err
			}
		case expire > 0:
			w.expire = append(w.expire, task.Expiry{Path: strings.Join(append(slices.Clone(at), Literal(name)), "/"), After: expire})
		}
		switch {
		case skip, inline:
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

// taggedNames returns the names of the tagged fields anywhere in a type.
func taggedNames(t reflect.Type, seen map[reflect.Type]bool) (names []string, err error) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		if seen[t] {
			return nil, nil
		}
		seen[t] = true
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil, nil
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		masked, expire, err := fieldTag(t, &f)
		if err == nil && expire > 0 {
			err = fmt.Errorf("the field %s of %s has the tag %s:%q, and the type is a part of itself: put the tag on a field that holds the whole", f.Name, t, Tag, f.Tag.Get(Tag))
		}
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

// fieldTag reports whether a field is masked, and its retention time; 0 means that of its task.
func fieldTag(t reflect.Type, f *reflect.StructField) (masked bool, expire time.Duration, err error) {
	tag, has := f.Tag.Lookup(Tag)
	if !has {
		return false, 0, nil
	}
	for part := range strings.SplitSeq(tag, ",") {
		after, expires := strings.CutPrefix(part, "expire=")
		switch {
		case part == "redact" && !masked:
			masked = true
			continue
		case expires && expire == 0:
			if expire, err = time.ParseDuration(after); err == nil && expire > 0 {
				continue
			}
		}
		return false, 0, fmt.Errorf("the field %s of %s has the tag %s:%q: want %[3]s:%[5]q, %[3]s:%[6]q or %[3]s:%[7]q", f.Name, t, Tag, tag, "redact", "expire=720h", "redact,expire=720h")
	}
	return masked, expire, nil
}

// jsonName returns the name under which a field is encoded. inline reports that the fields of an embedded struct take
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
