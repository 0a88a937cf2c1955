package option

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/goweaver/weaver/task"
)

// All returns the rows of the table.
func All() []*Spec { return slices.Clone(table) }

// Named returns the row of the option with a key in a place, or nil.
func Named(key string, in Place) *Spec {
	for _, s := range table {
		if s.Key == key && s.In&in != 0 {
			return s
		}
	}
	return nil
}

// Keys returns the keys of the options of a place, in the order of the table.
func Keys(in Place) (keys []string) {
	for _, s := range table {
		if s.In&in != 0 {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Fields returns the names of the fields that carry the option.
func (s *Spec) Fields() []string {
	if s.fields == nil {
		return []string{s.Name}
	}
	return s.fields
}

// fieldNames are the fields of all options.
var fieldNames = func() (names []string) {
	for _, s := range table {
		names = append(names, s.Fields()...)
	}
	return names
}()

// layouts maps a [reflect.Type] to the index path of each field in fieldNames.
var layouts sync.Map

func layoutOf(t reflect.Type) map[string][]int {
	if l, ok := layouts.Load(t); ok {
		return l.(map[string][]int)
	}
	layout := make(map[string][]int, len(fieldNames))
	for _, name := range fieldNames {
		if f, ok := t.FieldByName(name); ok {
			layout[name] = f.Index
		}
	}
	l, _ := layouts.LoadOrStore(t, layout)
	return l.(map[string][]int)
}

// carrier returns a lookup of a struct's option fields by name. For a missing field it returns
// the zero [reflect.Value].
func carrier(v any) func(name string) reflect.Value {
	r := reflect.ValueOf(v).Elem()
	layout := layoutOf(r.Type())
	return func(name string) reflect.Value {
		if at := layout[name]; at != nil {
			return r.FieldByIndex(at)
		}
		return reflect.Value{}
	}
}

// Given returns, as Os, the options for the non-zero fields of *from.
func Given[O any](from any) (opts []O) {
	field := carrier(from)
	for _, s := range table {
		for _, o := range s.from(field) {
			opts = append(opts, any(o).(O))
		}
	}
	return opts
}

// Copy sets the option fields of *to to those of *from, and leaves fields that from does not
// have. The structs share no memory.
func Copy(to, from any) {
	dst, src := carrier(to), carrier(from)
	for _, name := range fieldNames {
		d, s := dst(name), src(name)
		if !d.IsValid() || !s.IsValid() {
			continue
		}
		if m, ok := s.Interface().(map[string]string); ok {
			s = reflect.ValueOf(maps.Clone(m))
		}
		d.Set(s.Convert(d.Type()))
	}
}

// Set sets the field of an option with one value in *to.
func (s *Spec) Set(to, value any) {
	f := carrier(to)(s.Name)
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
}

// Value returns the value of an option with one value in *from, nil if it is zero.
func (s *Spec) Value(from any) any {
	f := carrier(from)(s.Name)
	if !f.IsValid() || f.IsZero() {
		return nil
	}
	return f.Interface()
}

// Said returns the task settings of the options that apply applies, without defaults, and the
// options set to 0. It leaves out their Errs.
func Said(apply func(*Settings)) (said task.New, zero []*Spec) {
	var one, other Settings
	of := carrier(&other.Task)
	for _, name := range fieldNames {
		if f := of(name); f.CanInt() {
			f.SetInt(-1)
		}
	}
	apply(&one)
	apply(&other)
	for _, s := range table {
		if f := of(s.Fields()[0]); f.CanInt() && f.Int() == 0 && s != &Delay.Spec { // At clears the delay
			zero = append(zero, s)
		}
	}
	return one.Task, zero
}

// Examples returns, as Os, the options of a place with their example values.
func Examples[O any](in Place) (opts []O) {
	for _, s := range table {
		if s.In&in == 0 {
			continue
		}
		for _, o := range s.from(func(name string) reflect.Value {
			if name == s.Fields()[0] {
				return reflect.ValueOf(s.Example)
			}
			return reflect.ValueOf(0)
		}) {
			opts = append(opts, any(o).(O))
		}
	}
	return opts
}
