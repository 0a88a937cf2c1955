package option

import (
	"fmt"
	"reflect"
	"time"

	"github.com/goweaver/weaver/task"
)

// Spec describes an option to those that handle all options alike.
type Spec struct {
	Name    string // of the function in package weaver, in errors, and of the field in each struct that carries it
	Key     string // in JSON, with _ns for a duration as a number, over HTTP and in pipelines
	Doc     string // one sentence
	Default string // in words; "": none
	In      Place
	Example any // a value that the option accepts

	Least, Most int // of a whole number, in pipelines

	// Short: tasks with the option may take the short way, which writes many tasks by one
	// statement (internal/sqlstore/plain.go). False: plain and alike must exclude them.
	Short bool

	// Label is the name of the option in `weaver task show`, which prints the value, or On
	// for true. "": the option is not shown, or has a line of its own making.
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
	Check func(option string, v T) error // nil: any value

	in func(*task.New) *T // the field, whose option is being set
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

// want returns a check of a value, and what its error says is wanted.
func want[T any](accepts func(T) bool, wanted string) func(string, T) error {
	return func(option string, v T) error {
		if accepts(v) {
			return nil
		}
		return fmt.Errorf("%s(%v): want %s", option, v, wanted)
	}
}

// one returns the from of an option that is the value of one field, unless that is zero.
func one[T any](name string, set func(T) Func) func(func(string) reflect.Value) []Func {
	return func(field func(string) reflect.Value) []Func {
		f := field(name)
		if !f.IsValid() || f.IsZero() {
			return nil
		}
		return []Func{set(f.Convert(reflect.TypeFor[T]()).Interface().(T))}
	}
}

// pairs is one for an option that is given once for each entry of a map.
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

// positive accepts durations that stores can tell from 0.
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

// checkLabel refuses the value of a label that some store could not index.
func checkLabel(what, value string) error {
	err := task.CheckKey(what, value)
	if err != nil && len(value) > task.MaxKey {
		err = fmt.Errorf("%w: labels are indexed: put longer texts into Metadata", err)
	}
	return err
}

// ValidTime reports whether stores and JSON can represent an instant.
func ValidTime(t time.Time) bool { return t.UTC().Year() <= 9999 }
