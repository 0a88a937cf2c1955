package weaver_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// Fuzz targets run their seeds, and the files of testdata/fuzz, in every test
// run. To look for more:
//
//	go test -run '^$' -fuzz '^FuzzPayload$' -parallel 1 .

// fuzzStores are opened once: a fuzz run calls its function a million times. Each call uses a new
// namespace.
type fuzzStores struct {
	names  []string
	stores []store.Store
	calls  atomic.Int64
}

func newFuzzStores(f *testing.F) *fuzzStores {
	f.Helper()
	return &fuzzStores{names: []string{"memstore", "sqlite"}, stores: []store.Store{memstore.New(), openMemory(f)}}
}

// clients returns a client of each store, by name, in the same fresh namespace.
func (s *fuzzStores) clients(t *testing.T) map[string]*weaver.Client {
	t.Helper()
	ns := fmt.Sprintf("fuzz-%d", s.calls.Add(1))
	all := make(map[string]*weaver.Client, len(s.stores))
	for i, st := range s.stores {
		c, err := weaver.NewClient(st, weaver.ClientConfig{Namespace: ns})
		if err != nil {
			t.Fatalf("NewClient: %v", err)
		}
		all[s.names[i]] = c
	}
	return all
}

// storableText reports whether every store can keep a text, independently of the code under test.
func storableText(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// nameable reports whether a text is valid as a name or key.
func nameable(text string) bool { return text != "" && len(text) <= 255 && storableText(text) }

// list returns all tasks that a filter selects.
func list(t *testing.T, c *weaver.Client, f weaver.Filter) []weaver.TaskInfo {
	t.Helper()
	all, next, err := c.List(t.Context(), f)
	if err != nil || next != "" {
		t.Fatalf("List(%+v): next %q, %v", f, next, err)
	}
	return all
}

// enqueueOne stores one draft.
func enqueueOne(t *testing.T, c *weaver.Client, d weaver.Draft) weaver.Enqueued {
	t.Helper()
	got, err := c.EnqueueTasks(t.Context(), d)
	if err != nil {
		t.Fatalf("EnqueueTasks: %v", err)
	}
	return got[0]
}
