package sqlstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A field of a new task, or of the end of an attempt, excludes it from the chunk statements,
// unless they write the field or the store ignores it. A new field must be handled: let the
// function exclude it, or write it in the statements of both ways and name it here or in
// internal/option (Short).
func TestShortWay(t *testing.T) {
	t.Parallel()
	row := []string{
		"ID", "Type", "Input", "AllowFailure", // columns
		"ConcurrencyLimit", "Redact", "UndoOf", // in options_json
	}
	for _, o := range option.All() {
		if o.Short {
			row = append(row, o.Fields()...)
		}
	}
	var in insertion
	checkFields(t, "plain", slices.Concat(row, []string{"Delay", "At", "ExpireAfter", "IdempotencyKey", "Coalesce"}),
		func(n *task.New) bool { return in.plain(n, time.Time{}) })
	checkFields(t, "immediate and alike", slices.Concat(row, []string{"ConcurrencyKey", "Node"}),
		func(n *task.New) bool { return immediate(n) && alike(n, inlineMax) })
	checkFields(t, "a good end in a chunk", []string{
		"Output", "CodeVersion", "StepsRun", "StepsUnreached", "RouteReason", "Notes", // in the task's or the attempt's row
		"Elapsed", "Idle", // not stored for a success
		"Events", // written before
	}, func(f *store.Finish) bool {
		if f.Outcome == "" {
			f.Outcome = task.OutcomeSuccess
		}
		if f.Lease == (task.Lease{}) {
			f.Lease.Epoch = 1
		}
		return shortEnd(f, inlineMax)
	})
}

// checkFields sets each field of a T alone. Exactly the fields in short must be accepted.
func checkFields[T any](t *testing.T, what string, short []string, accepts func(*T) bool) {
	t.Helper()
	if !accepts(new(T)) {
		t.Fatalf("%s: excludes a %T that has nothing set", what, *new(T))
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.Anonymous {
			continue
		}
		v := new(T)
		setAny(reflect.ValueOf(v).Elem().FieldByIndex(f.Index))
		name := f.Name
		if got, want := accepts(v), slices.Contains(short, name); got != want {
			t.Errorf("%s: with %s set, accepts is %v, want %v", what, name, got, want)
		}
	}
}

// setAny sets a value to one that is not zero.
func setAny(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), reflect.ValueOf("v").Convert(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		setAny(v.Field(0))
	case reflect.Array:
		setAny(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(2)
	default:
		v.SetInt(2)
	}
}
