package sqlstore

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// full returns a task whose fields are all set.
func full(t *testing.T) task.New {
	t.Helper()
	var n task.New
	v := reflect.ValueOf(&n).Elem()
	for i := range v.NumField() {
		fillField(v.Field(i), i+1)
	}
	n.At = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	n.Input = json.RawMessage(`{ "a":"<&>"}`)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("the field %s is zero", v.Type().Field(i).Name)
		}
	}
	return n
}

func fillField(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint8:
		v.SetUint(uint64(n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillField(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fillField(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf("value"))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillField(v.Field(i), n)
			}
		}
	}
}

func TestDrafts_KeepAllFields(t *testing.T) {
	t.Parallel()
	child := full(t)
	b, err := packChildren([]task.New{child})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unpackChildren(b); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], child) {
		t.Errorf("a child came back as %+v, %v\nwant %+v", got, err, child)
	}
	n := full(t)
	n.Needs = []task.Edge{{Needs: task.ID{1}, Kind: task.OnDone}, {Needs: task.ID{2}, Kind: task.OnSuccess}, {Needs: task.ID{3}, Kind: task.OnDone}}
	twin := n
	twin.ID, twin.Node, twin.Input, twin.Needs = task.ID{9}, "twin", json.RawMessage("1"), nil
	tasks := []task.New{n, twin}
	parts, err := packParts(tasks, [][]rules.Part{{{Task: 0, To: 2}, {Task: 0, From: 2, To: 3}, {Task: 1, Needed: true}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpackDrafts(parts[0].packed)
	if err != nil || !reflect.DeepEqual(got, parts[0].drafts) {
		t.Fatalf("a part came back as\n%+v, %v, want\n%+v", got, err, parts[0].drafts)
	}
	for at, want := range map[int]task.New{0: n, 2: twin} {
		of := got[at].task()
		of.Needs = unpackEdges(got[at].Edges)
		if !reflect.DeepEqual(of, want) {
			t.Errorf("a task came back as %+v\nwant %+v", of, want)
		}
	}
	if got[0].Stored != 2 || !got[1].More || len(unpackEdges(got[1].Edges)) != 1 || !got[2].Needed {
		t.Errorf("the elements are %+v", got)
	}
}

// A field that the comparison leaves out would be lost.
func TestLike_ComparesAllFields(t *testing.T) {
	t.Parallel()
	own := map[string]bool{"ID": true, "Node": true, "Input": true, "Needs": true}
	of := full(t)
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		var a, b draftFields
		reflect.ValueOf(&a).Elem().Field(i).Set(v.Field(i))
		if name := v.Type().Field(i).Name; like(&a, &b) != own[name] {
			t.Errorf("tasks that differ in %s are alike: %v", name, !own[name])
		}
	}
}

func TestDrafts_OlderFormOfCleanup(t *testing.T) {
	t.Parallel()
	got, err := unpackDrafts([]byte(`[{"Type":"a","CleanupWhenCancelled":true},{"Like":true}]`))
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	for i := range got {
		if n := got[i].task(); !n.CleanupWhenCancelled {
			t.Errorf("the draft %d has no CleanupWhenCancelled", i)
		}
	}
}
