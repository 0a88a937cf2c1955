package task_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/task"
)

// fill sets a field to a non-zero value.
func fill(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(name)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		fill(t, name, v.Index(0))
	case reflect.Uint8:
		v.SetUint(uint64(len(name)))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, name, v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"key": name}))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			fill(t, name, v.Field(i))
		}
	default:
		t.Fatalf("%s is of the kind %s: teach the test how to fill it", name, v.Kind())
	}
}

// Every field shared by a draft and a task, future fields included, survives storing the draft and repeating the
// task. Neither conversion shares memory.
func TestConversionsKeepEachField(t *testing.T) {
	var n task.New
	from := reflect.ValueOf(&n).Elem()
	for i := range from.NumField() {
		fill(t, from.Type().Field(i).Name, from.Field(i))
	}
	stored := n.Task()
	again := stored.Again()
	once := []string{"ID", "Node", "AllowFailure", "IdempotencyKey", "UndoOf"} // fields of one enqueue
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		got := reflect.ValueOf(&stored).Elem().FieldByName(name)
		if !got.IsValid() { // the field is not in Task
			if v := reflect.ValueOf(&again).Elem().FieldByName(name); !v.IsZero() {
				t.Errorf("Task.Again has %s %v, which belongs to one enqueue", name, v)
			}
			continue
		}
		if !reflect.DeepEqual(got.Interface(), from.Field(i).Interface()) {
			t.Errorf("New.Task has %s %v, want %v", name, got, from.Field(i))
		}
		switch repeated := reflect.ValueOf(&again).Elem().FieldByName(name); {
		case slices.Contains(once, name):
			if !repeated.IsZero() {
				t.Errorf("Task.Again has %s %v, which belongs to one enqueue", name, repeated)
			}
		case !reflect.DeepEqual(repeated.Interface(), got.Interface()):
			t.Errorf("Task.Again has %s %v, want %v", name, repeated, got)
		case got.Kind() == reflect.Slice || got.Kind() == reflect.Map:
			if got.Pointer() == from.Field(i).Pointer() || repeated.Pointer() == got.Pointer() {
				t.Errorf("%s is shared", name)
			}
		}
	}
}
