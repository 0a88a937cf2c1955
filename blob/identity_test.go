package blob_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goweaver/weaver/blob"
)

func TestDirIdentity(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "blobs")
	b := blob.Dir(folder)
	if id, place, err := b.Identity(t.Context(), false); id != "" || place != folder || err != nil {
		t.Errorf("of a folder that is not there: %q, %q, %v", id, place, err)
	}
	var mu sync.Mutex
	ids := map[string]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			id, _, err := blob.Dir(folder).Identity(t.Context(), true)
			mu.Lock()
			defer mu.Unlock()
			if ids[id] = true; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(ids) != 1 || ids[""] {
		t.Errorf("many at once have %v, want one ID", ids)
	}
	if err := b.List(t.Context(), "", func(i blob.Info) bool { t.Errorf("the list has %s", i.Key); return true }); err != nil {
		t.Error(err)
	}
	if n, err := b.Sweep(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("%d files stay, %v", n, err)
	}
	moved := folder + "2"
	if err := os.Rename(folder, moved); err != nil {
		t.Fatal(err)
	}
	if id, place, err := blob.Dir(moved).Identity(t.Context(), true); !ids[id] || place != moved || err != nil {
		t.Errorf("after a move: %q, %q, %v", id, place, err)
	}
	if id, _, err := blob.Dir(folder).Identity(t.Context(), true); ids[id] || err != nil {
		t.Errorf("another folder in its place: %q, %v", id, err)
	}
	file := filepath.Join(moved, "id.d", ".bucket-id")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := blob.Dir(moved).Identity(t.Context(), true); err == nil || !strings.Contains(err.Error(), file+" should hold the ID") {
		t.Errorf("a damaged ID: %v", err)
	}
}
