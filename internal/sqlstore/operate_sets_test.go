package sqlstore

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/goweaver/weaver/store"
)

// A field of a task that set-based verbs do not know excludes the task.
func TestTarget_ApartFailsClosed(t *testing.T) {
	t.Parallel()
	known := []string{
		"id", "lane", "attemptNo", "epoch", "worker", "startedAt", "job", "wakeSeq", "mayFail", "deadline", "idle",
		"contribution", "cleansUp", "crashes", "node", "cost", "maxCost", "updatedAt", "createdAt",
	}
	ended := []string{"asked", "cancelled", "by", "reason"}
	for _, verb := range []SetVerb{SetCancel, SetRetry, SetUnblock, SetDelete} {
		if w := new(target); !w.apart(verb) {
			t.Fatalf("verb %d: a task with nothing is not apart", verb)
		}
		if w := (&target{dropped: true}); w.apart(verb) {
			t.Errorf("verb %d takes tasks with dropped values", verb)
		}
		eachField(reflect.TypeFor[taskRow](), nil, func(name string, index []int) {
			w := new(target)
			setField(reflect.ValueOf(&w.taskRow).Elem().FieldByIndex(index))
			want := slices.Contains(known, name) || (verb == SetRetry || verb == SetDelete) && slices.Contains(ended, name)
			if got := w.apart(verb); got != want {
				t.Errorf("verb %d: a task with %s is apart: %v, want %v; say in target.apart what verbs by sets do about it", verb, name, got, want)
			}
		})
	}
}

// eachField calls fn with each field of a struct, including the fields of embedded structs.
func eachField(typ reflect.Type, at []int, fn func(name string, index []int)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		index := append(slices.Clone(at), i)
		if f.Anonymous {
			eachField(f.Type, index, fn)
		} else {
			fn(f.Name, index)
		}
	}
}

// setField sets an unexported field to a value that is not zero.
func setField(v reflect.Value) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Array:
		setField(v.Index(0))
	case reflect.Struct:
		setField(v.Field(0))
	default:
		panic("set a " + v.Type().String())
	}
}

// A field of a command that set-based verbs do not know excludes the command. Add a new field
// here once setVerb or verbSet handles it.
func TestSetVerb_FieldsOfCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cmd   store.Command
		known []string
	}{
		{store.CancelTask{}, []string{"Audit", "Seen", "Task", "Force", "Abandon", "Spare"}},
		{store.RetryTask{}, []string{"Audit", "Seen", "Task", "KeepSteps", "AddAttempts", "AddCost", "Cleanup", "Skip"}},
		{store.UnblockTask{}, []string{"Audit", "Seen", "Task", "Input", "Ask"}},
		{store.DeleteTask{}, []string{"Audit", "Seen", "Task"}},
	} {
		typ := reflect.TypeOf(c.cmd)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !slices.Contains(c.known, name) {
				t.Errorf("%v has %s, which verbs by sets do not know", typ, name)
			}
		}
	}
	for _, alone := range []store.Command{
		store.RetryTask{Cleanup: true},
		store.RetryTask{AddAttempts: 1},
		store.RetryTask{AddCost: 1},
		store.RetryTask{Skip: []string{"a"}},
		store.UnblockTask{Input: []byte(`1`)},
		store.SendSignal{},
		store.PauseTask{},
		store.ForgetTask{},
	} {
		if verb, _ := setVerb(alone); verb != NoSet {
			t.Errorf("%+v goes in a set", alone)
		}
	}
}
