package model_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// modelNames are the names of the stores in messages.
var modelNames = [2]string{"memstore", "sql"}

// ask makes the same call on both stores, compares the answers, and returns the model's.
func ask[A any](p *pair, what string, question func(i int, s store.Store) (A, error)) A {
	p.Helper()
	return askAs(p, what, question, func(a A) A { return a })[0]
}

// askAs is ask with a function that removes from an answer the parts that stores are free to choose. It returns both
// answers.
func askAs[A any](p *pair, what string, question func(i int, s store.Store) (A, error), normal func(A) A) [2]A {
	p.Helper()
	return askAt(p, p.stores(), what, question, normal)
}

// askAt is askAs on the given stores.
func askAt[A any](p *pair, stores [2]store.Store, what string, question func(i int, s store.Store) (A, error), normal func(A) A) [2]A {
	p.Helper()
	p.Log(what)
	var answers [2]A
	var errs [2]error
	for i, s := range stores {
		answers[i], errs[i] = question(i, s)
		if errs[i] != nil && sentinel(errs[i]) == "" {
			p.Fatalf("%s of %s: %v", what, modelNames[i], errs[i])
		}
	}
	if d := errorsDiffer("the error", errs[0], errs[1]); d != "" {
		p.Fatalf("%s differs at %s", what, d)
	}
	p.same(what, normal(answers[0]), normal(answers[1]))
	return answers
}

// same compares the model's answer with that of the other store.
func (p *pair) same(what string, model, other any) {
	p.Helper()
	if reflect.DeepEqual(model, other) {
		return
	}
	if d := difference("", reflect.ValueOf(&model).Elem(), reflect.ValueOf(&other).Elem()); d != "" {
		p.Fatalf("%s differs at %s", what, d)
	}
}

// sentinels are all errors that callers branch on.
var sentinels = []error{
	store.ErrLeaseLost, store.ErrConflict, store.ErrStepConflict, store.ErrCancelRequested, store.ErrNotFound,
	store.ErrState, store.ErrLimit, store.ErrBadCursor, store.ErrRestartTx, errStep,
}

// sentinel returns the text of the sentinel that err wraps, or "".
func sentinel(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return ""
}

var (
	errorType = reflect.TypeFor[error]()
	timeType  = reflect.TypeFor[time.Time]()
)

// difference returns the path of the first difference between two values, with both values, or "". Errors are
// compared by their sentinel and times as instants. A nil list or map equals an empty one.
func difference(path string, a, b reflect.Value) string {
	switch {
	case !a.IsValid() || !b.IsValid():
		if a.IsValid() != b.IsValid() {
			return fmt.Sprintf("%s: %v, %v", path, a, b)
		}
		return ""
	case a.Type() != b.Type():
		return fmt.Sprintf("%s: a %v, a %v", path, a.Type(), b.Type())
	case a.Type() == errorType:
		x, _ := a.Interface().(error)
		y, _ := b.Interface().(error)
		return errorsDiffer(path, x, y)
	case a.Type() == timeType:
		if x, y := a.Interface().(time.Time), b.Interface().(time.Time); !x.Equal(y) || x.Location() != y.Location() {
			return fmt.Sprintf("%s:\n  memstore %v\n  sql      %v", path, x, y)
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			return fmt.Sprintf("%s:\n  memstore %+v\n  sql      %+v", path, a, b)
		}
		return difference(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if d := difference(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Slice:
		return listsDiffer(path, a, b)
	}
	empty := a.Kind() == reflect.Map && a.Len()+b.Len() == 0
	if x, y := a.Interface(), b.Interface(); !empty && !reflect.DeepEqual(x, y) {
		return fmt.Sprintf("%s:\n  memstore %+v\n  sql      %+v", path, x, y)
	}
	return ""
}

func errorsDiffer(path string, x, y error) string {
	if (x == nil) != (y == nil) || x != nil && (sentinel(x) != sentinel(y) || sentinel(x) == "") {
		return fmt.Sprintf("%s:\n  memstore %v\n  sql      %v", path, x, y)
	}
	return ""
}

func listsDiffer(path string, a, b reflect.Value) string {
	if a.Type().Elem().Kind() == reflect.Uint8 { // JSON
		if x, y := string(a.Bytes()), string(b.Bytes()); x != y {
			return fmt.Sprintf("%s:\n  memstore %s\n  sql      %s", path, x, y)
		}
		return ""
	}
	for i := range min(a.Len(), b.Len()) {
		if d := difference(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
			return d
		}
	}
	if a.Len() != b.Len() {
		return fmt.Sprintf("%s: %d and %d elements:\n  memstore %+v\n  sql      %+v", path, a.Len(), b.Len(), a, b)
	}
	return ""
}

// describe formats an operation for the log of a failure.
func describe(verb string, what any) string {
	b, err := json.Marshal(what)
	if err != nil {
		return fmt.Sprintf("%s %+v", verb, what)
	}
	return verb + " " + string(b)
}

// ordered sorts steps. The port leaves a failed and a completed step of the same try unordered (no engine writes
// both); the state decides.
func ordered(steps []task.Step) []task.Step {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b task.Step) int {
		return cmp.Or(a.TaskID.Compare(b.TaskID), cmp.Compare(a.Index, b.Index), cmp.Compare(a.AttemptNo, b.AttemptNo),
			cmp.Compare(a.Try, b.Try), cmp.Compare(a.Name, b.Name), cmp.Compare(a.State, b.State),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Round, b.Round))
	})
	return steps
}

// rowsComparable removes from a snapshot the parts that stores are free to choose.
func rowsComparable(s *store.Snapshot) *store.Snapshot {
	c := *s
	c.Generation = "" // each store draws its own
	c.Steps = ordered(s.Steps)
	// Keys without a holder may be absent (store.Snapshot).
	c.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(k store.KeyRow) bool { return k.Held == 0 })
	return &c
}

// historyComparable sorts the unordered lists of a history.
func historyComparable(h store.History) store.History {
	byID := func(a, b store.Need) int { return a.ID.Compare(b.ID) }
	h.Steps = ordered(h.Steps)
	h.Needs, h.Dependents, h.Holders = slices.Clone(h.Needs), slices.Clone(h.Dependents), slices.Clone(h.Holders)
	slices.SortFunc(h.Needs, byID)
	slices.SortFunc(h.Dependents, byID)
	slices.SortFunc(h.Holders, task.ID.Compare)
	return h
}
