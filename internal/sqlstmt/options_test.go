package sqlstmt

import (
	"reflect"
	"testing"

	"github.com/goweaver/weaver/task"
)

// A task gets its own copy of its packed options, for any node name and regardless of other
// tasks that share them.
func TestOptions(t *testing.T) {
	t.Parallel()
	maps := []map[string]string{nil, {"node": "in a map"}, {"a": `"node":"quoted"`, "b": "2"}}
	c := NewCache()
	for range 2 { // the second time from the cache
		for _, node := range []string{"", "a", `a"b`, "a<b", `a\b`, "ä/b[0]"} {
			for _, labels := range maps {
				for _, meta := range maps {
					want := task.New{Node: node, Labels: labels, Metadata: meta, Timeout: 1000, ConcurrencyLimit: len(labels), Options: task.Options{CleanupWhenCancelled: node == "a"}}
					text, err := c.PackOptions(&want)
					if err != nil {
						t.Fatal(err)
					}
					var got task.Task
					if err := c.unpackOptions([]byte(text), &got); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
					if got.Node != node || !reflect.DeepEqual(got.Labels, labels) || !reflect.DeepEqual(got.Metadata, meta) ||
						got.Timeout != 1000 || got.ConcurrencyLimit != len(labels) || got.CleanupWhenCancelled != (node == "a") {
						t.Errorf("%s: got %+v", text, got)
					}
					if got.Labels != nil {
						got.Labels["a"] = "changed by a reader"
					}
				}
			}
		}
	}
	if n := len(c.unpacked); n == 0 || n > 50 {
		t.Errorf("%d texts are remembered", n)
	}
	large := task.New{Metadata: map[string]string{"a": string(make([]byte, maxShared))}}
	text, _ := c.PackOptions(&large)
	if err := c.unpackOptions([]byte(text), new(task.Task)); err != nil || c.unpacked[text].Metadata != nil {
		t.Errorf("a long text is remembered, or refused: %v", err)
	}
	for _, text := range []string{`{"node":"a`, `{"node":"a"`} {
		if err := c.unpackOptions([]byte(text), new(task.Task)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
