package option

import (
	"fmt"
	"reflect"
	"time"

	"github.com/goweaver/weaver/task"
)

// Spec describes an option to code that handles all options alike.
type Spec struct {
	Name    string // name of the function in package weaver, in errors, and of the fields that carry it
	Key     string // in JSON, with _ns for a duration as a number, over HTTP and in pipelines
	Doc     string // one sentence
	Default string // in words, or ""
	In      Place
	Example any // a value that the option accepts

	Least, Most int // bounds of a whole number, in pipelines

	// Short means that statements over many tasks may write tasks with the option
	// (internal/sqlstore/plain.go). If it is false, plain and alike must exclude them.
	Short bool

	// Label is the name of the option in `weaver task show`, which prints the value, or On for
	// true. "" means that the option is not shown, or is shown by its own code.
	Label, On string

	fields []string // of the structs that carry the option; nil: Name
	from   func(field func(name string) reflect.Value) []Func
}

// Place is a set of places that accept an option. Enqueues in Go accept all options.
type Place int

// The places.
const (
	Type     Place = 1 << iota // weaver.Define, and the defaults that workers announce
	Child                      // a plain draft, task.Draft
	HTTP                       // a request that enqueues or reruns a task
	Pipeline                   // a task of a pipeline, under Key alone
)

// Of is an option with one value.
type Of[T comparable] struct {
	Spec
	Check func(option string, v T) error // nil: every value is valid

	in func(*task.New) *T // returns the field of the option
}

// Set returns the option with a value.
func (o *Of[T]) Set(v T) Func {
	return func(s *Settings) {
		if o.Check != nil {
			if err := o.Check(o.Name, v); err != nil {
				s.Errs = append(s.Errs, err)
				return
			}
		}
		*o.in(&s.Task) = v
	}
}

// row returns the option's row of the table.
func (o *Of[T]) row() *Spec {
	o.from = one(o.Name, o.Set)
	return &o.Spec
}

// want returns a check of a value. wanted is the text of its error.
func want[T any](accepts func(T) bool, wanted string) func(string, T) error {
	return func(option string, v T) error {
		if accepts(v) {
			return nil
		}
		return fmt.Errorf("%s(%v): want %s", option, v, wanted)
	}
}

// one returns the from function of an option with one field. It ignores a zero field.
func one[T any](name string, set func(T) Func) func(func(string) reflect.Value) []Func {
	return func(field func(string) reflect.Value) []Func {
		f := field(name)
		if !f.IsValid() || f.IsZero() {
			return nil
		}
		return []Func{set(f.Convert(reflect.TypeFor[T]()).Interface().(T))}
	}
}

// pairs returns the from function of an option that is repeated for each entry of a map.
func pairs(field string, set func(key, value string) Func) func(func(string) reflect.Value) []Func {
	return func(of func(string) reflect.Value) (opts []Func) {
		f := of(field)
		if !f.IsValid() {
			return nil
		}
		for k, v := range f.Interface().(map[string]string) {
			opts = append(opts, set(k, v))
		}
		return opts
	}
}

func atLeast(least int) func(int) bool { return func(n int) bool { return n >= least } }

// positive accepts durations that stores can distinguish from 0.
func positive(d time.Duration) bool { return d >= time.Microsecond }

// CheckKey returns an error unless a text is a name or key that every store can index.
func CheckKey(option, key string) error {
	if key == "" {
		return fmt.Errorf("%s: the name is empty", option)
	}
	return task.CheckKey(option, key)
}

// attach adds a value that check accepts to a map of labels or metadata.
func (s *Settings) attach(m *map[string]string, option, key, value string, check func(what, text string) error) {
	err := CheckKey(option, key)
	if err == nil {
		err = check(option+" "+key, value)
	}
	if err != nil {
		s.Errs = append(s.Errs, err)
		return
	}
	if *m == nil {
		*m = make(map[string]string)
	}
	(*m)[key] = value
}

// checkLabel refuses a label value that a store cannot index.
func checkLabel(what, value string) error {
	err := task.CheckKey(what, value)
	if err != nil && len(value) > task.MaxKey {
		err = fmt.Errorf("%w: labels are indexed: put longer texts into Metadata", err)
	}
	return err
}

// ValidTime reports whether stores and JSON can represent an instant.
func ValidTime(t time.Time) bool { return t.UTC().Year() <= 9999 }
