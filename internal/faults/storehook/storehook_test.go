package storehook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// spied records the last call that the hooks of a spy saw.
type spied struct {
	args  any
	calls int
}

var errSpy = errors.New("the spy's own error")

// spies returns hooks that record their arguments and return a non-zero value and errSpy.
func spies(got *spied) *storehook.Hooks {
	h := &storehook.Hooks{}
	v := reflect.ValueOf(h).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Func || f.Type().NumIn() != 3 || v.Type().Field(i).Name == "Around" {
			continue
		}
		f.Set(reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
			got.args = in[1].Interface()
			got.calls++
			return []reflect.Value{nonZero(f.Type().Out(0)), reflect.ValueOf(errSpy)}
		}))
	}
	return h
}

// nonZero returns a non-zero value of a type, if the type has one.
func nonZero(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 2, 2))
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(nonZero(t.Elem()))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(nonZero(t.Field(i).Type))
			}
		}
	}
	return v
}

// call calls a method with non-zero arguments.
func call(s store.Store, m reflect.Method) (args, answer []reflect.Value) {
	for i := range m.Type.NumIn() {
		switch in := m.Type.In(i); in {
		case reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(context.Background()))
		default:
			args = append(args, nonZero(in))
		}
	}
	f := reflect.ValueOf(s).MethodByName(m.Name)
	if m.Type.IsVariadic() {
		return args, f.CallSlice(args)
	}
	return args, f.Call(args)
}

// Every method reaches the method of the same name below with its arguments, and returns
// its result and error.
func TestEveryMethodIsForwarded(t *testing.T) {
	t.Parallel()
	iface := reflect.TypeFor[store.Store]()
	for i := range iface.NumMethod() {
		m := iface.Method(i)
		if m.Type.NumIn() == 0 || m.Type.In(0) != reflect.TypeFor[context.Context]() || m.Name == "Warnings" {
			continue // the tests below cover them
		}
		var outer, inner spied
		below := storehook.New(nil, spies(&inner))
		hooks := spies(&outer)
		reached := ""
		hooks.Around = func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			reached = c.Method
			return next(ctx)
		}
		args, _ := call(storehook.New(nil, hooks), m)
		if outer.calls != 1 || reached != m.Name {
			t.Errorf("%s: its hook was called %d times, and Around for %q", m.Name, outer.calls, reached)
		}
		_, answer := call(storehook.New(below, &storehook.Hooks{}), m)
		if inner.calls != 1 || !reflect.DeepEqual(inner.args, outer.args) {
			t.Errorf("%s: the store below was called %d times, with %+v, want %+v", m.Name, inner.calls, inner.args, outer.args)
		}
		if last := args[len(args)-1]; last.Kind() != reflect.String && len(args) == 3 && last.Kind() != reflect.Func && !reflect.DeepEqual(last.Interface(), inner.args) {
			t.Errorf("%s: the store below got %+v, want %+v", m.Name, inner.args, last)
		}
		for i, v := range answer {
			if i == len(answer)-1 {
				if err, _ := v.Interface().(error); !errors.Is(err, errSpy) {
					t.Errorf("%s: error %v, want that of the store below", m.Name, v)
				}
			} else if v.IsZero() {
				t.Errorf("%s: value %d of the answer is lost", m.Name, i)
			}
		}
	}
}

func TestTheNamespaceIsForwarded(t *testing.T) {
	t.Parallel()
	s := storehook.New(memstore.New(), &storehook.Hooks{})
	pause(t, s)
	for ns, want := range map[string]int{"ns": 1, "other": 0} {
		if n := paused(t, s, ns); n != want {
			t.Errorf("namespace %q has %d paused queues, want %d", ns, n, want)
		}
	}
}

// pause pauses a queue of namespace ns.
func pause(t *testing.T, s store.Store) {
	t.Helper()
	res, err := s.Operate(t.Context(), "ns", store.PauseQueue{Queue: "q"})
	if err != nil || res[0].Err != nil {
		t.Fatalf("Operate: %+v, %v", res, err)
	}
}

// paused returns the number of paused queues.
func paused(t *testing.T, s store.Store, ns string) int {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	return len(snap.Paused)
}

func TestAroundDecidesWhatTheCallerGets(t *testing.T) {
	t.Parallel()
	other := errors.New("another error")
	answered := storehook.New(nil, &storehook.Hooks{
		Overview: func(context.Context, store.OverviewRequest, func() (store.Overview, error)) (store.Overview, error) {
			return store.Overview{Queues: make([]store.Queue, 1)}, nil
		},
		Tasks: func(context.Context, []task.ID, func() ([]task.Task, error)) ([]task.Task, error) {
			return make([]task.Task, 1), errSpy
		},
	})
	for name, c := range map[string]struct {
		around func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error
		queues bool // the result of a successful call is returned
		tasks  bool // the result of a failed call is returned
		err    error
	}{
		"the error of next": {func(ctx context.Context, _ *storehook.Call, next func(context.Context) error) error { return next(ctx) }, true, true, errSpy},
		"an error that wraps it": {func(ctx context.Context, _ *storehook.Call, next func(context.Context) error) error {
			return wrap(next(ctx))
		}, true, true, errSpy},
		"another error": {func(ctx context.Context, _ *storehook.Call, next func(context.Context) error) error {
			_ = next(ctx)
			return other
		}, false, false, other},
		"no call": {func(context.Context, *storehook.Call, func(context.Context) error) error { return other }, false, false, other},
		"no error instead of one": {func(ctx context.Context, _ *storehook.Call, next func(context.Context) error) error {
			_ = next(ctx)
			return nil
		}, true, true, nil},
	} {
		s := storehook.New(answered, &storehook.Hooks{Around: c.around})
		o, _ := s.Overview(t.Context(), "ns", store.OverviewRequest{})
		if got := len(o.Queues) == 1; got != c.queues {
			t.Errorf("%s: the answer of a call that succeeds came: %v", name, got)
		}
		ts, err := s.Tasks(t.Context(), "ns")
		if got := len(ts) == 1; got != c.tasks || !errors.Is(err, c.err) {
			t.Errorf("%s: the answer of a call that fails came: %v, with error %v", name, got, err)
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(errors.New("wrapped"), err)
}

func TestAroundMayNameAnotherStore(t *testing.T) {
	t.Parallel()
	a, b := memstore.New(), memstore.New()
	s := storehook.New(a, &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
		c.Store = b
		return next(ctx)
	}})
	pause(t, s)
	if paused(t, a, "ns") != 0 || paused(t, b, "ns") != 1 {
		t.Errorf("%d and %d queues are paused, want 0 in the first store and 1 in the other", paused(t, a, "ns"), paused(t, b, "ns"))
	}
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	for _, hide := range []store.Capabilities{0, store.CanNotify, store.CanStepTx | store.CanWait, store.AllCapabilities} {
		want := memstore.New().Capabilities() &^ hide
		s := storehook.New(memstore.New(), &storehook.Hooks{Hide: hide})
		twice := storehook.New(s, &storehook.Hooks{}) // has exactly the capabilities of the store below
		if got := [2]store.Capabilities{s.Capabilities(), twice.Capabilities()}; got != [2]store.Capabilities{want, want} {
			t.Errorf("with %b hidden it has %b, want %b", hide, got, want)
		}
	}
}

// Methods whose hooks have their own signature reach the store below.
func TestNotifyAndStepTxAreForwarded(t *testing.T) {
	t.Parallel()
	var called []string
	s := storehook.New(memstore.New(), &storehook.Hooks{
		Claim: func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			called = append(called, "Claim")
			return next()
		},
		StepTx: func(_ context.Context, c *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
			called = append(called, "StepTx")
			c.Func = func(context.Context, store.Tx) (json.RawMessage, error) { return nil, errSpy }
			return next()
		},
		Notify: func(fn func(store.Notice), next func(func(store.Notice)) (func(), bool)) (func(), bool) {
			called = append(called, "Notify")
			return next(fn)
		},
	})
	stop, complete := s.Notify("ns", nil, func(store.Notice) {})
	stop()
	if !complete {
		t.Error("the notices of a memstore are complete, and the answer of Notify is lost")
	}
	draft := task.New{
		ID: task.NewIDs(nil).New(), Type: "acme.test.hook.v1", Queue: task.DefaultQueue, Input: json.RawMessage(`1`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: 3, Backoff: time.Second, BackoffMax: time.Minute,
	}
	if _, err := s.Enqueue(t.Context(), "ns", nil, store.Submission{Tasks: []task.New{draft}}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Claim(t.Context(), "ns", store.ClaimRequest{
		Worker: "w", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: 1, Slots: 1, Types: map[string]int{draft.Type: 1}, Wait: time.Minute,
	})
	if err != nil || len(res.Tasks) != 1 {
		t.Fatalf("Claim: %+v, %v", res, err)
	}
	_, err = s.StepTx(t.Context(), "ns", store.Record{
		Lease: res.Tasks[0].Lease, Step: &task.Step{Name: "s", Kind: task.KindStep, State: task.StepCompleted},
	}, time.Minute, func(context.Context, store.Tx) (json.RawMessage, error) { return json.RawMessage(`1`), nil })
	if !errors.Is(err, errSpy) {
		t.Errorf("StepTx: %v, want the error of the function that the hook put in", err)
	}
	if want := []string{"Notify", "Claim", "StepTx"}; !reflect.DeepEqual(called, want) {
		t.Errorf("the hooks called are %v, want %v", called, want)
	}
}

// awaiting is a store with Await and Wake.
type awaiting struct {
	*memstore.Store
	called []string
}

// Notify implements store.Observe.
func (s *awaiting) Notify(ns string, awaited func() []task.ID, _ func(store.Notice)) (stop func(), complete bool) {
	s.called = append(s.called, fmt.Sprint("Notify ", ns, " ", awaited != nil))
	return func() {}, awaited != nil
}

// Wake implements store.Observe.
func (s *awaiting) Wake(ns string) { s.called = append(s.called, "Wake "+ns) }

// Await and Wake reach the store below. A test that hides notices or sends its own sees
// only those.
func TestAwaitedAndWakeAreForwarded(t *testing.T) {
	t.Parallel()
	own := func(fn func(store.Notice), next func(func(store.Notice)) (func(), bool)) (func(), bool) {
		return next(fn)
	}
	for _, c := range []struct {
		hooks storehook.Hooks
		want  []string
	}{
		{storehook.Hooks{}, []string{"Notify ns true", "Wake ns"}},
		{storehook.Hooks{Hide: store.CanNotify}, []string{"Wake ns"}},
		{storehook.Hooks{Notify: own}, []string{"Notify ns false", "Wake ns"}},
	} {
		below := &awaiting{Store: memstore.New()}
		s := storehook.New(below, &c.hooks)
		_, complete := s.Notify("ns", func() []task.ID { return nil }, nil)
		if want := c.want[0] == "Notify ns true"; complete != want {
			t.Errorf("Notify answers %v, want %v", complete, want)
		}
		s.Wake("ns")
		if !reflect.DeepEqual(below.called, c.want) {
			t.Errorf("called %v, want %v", below.called, c.want)
		}
	}
}

// warning is a store that warns.
type warning struct{ *memstore.Store }

// Warnings implements store.Ops.
func (warning) Warnings(context.Context) []store.Warning { return []store.Warning{{Key: "k"}} }

func TestWarningsAreForwarded(t *testing.T) {
	t.Parallel()
	for below, want := range map[store.Store]int{memstore.New(): 0, warning{memstore.New()}: 1} {
		s := storehook.New(storehook.New(below, &storehook.Hooks{}), &storehook.Hooks{})
		if got := s.Warnings(t.Context()); len(got) != want {
			t.Errorf("%T: warnings %v, want %d", below, got, want)
		}
	}
}
