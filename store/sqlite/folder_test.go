package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goweaver/weaver/store/sqlite"
)

// The names of a new file and of its log must be durable, and its first journal must stay
// deleted: Open syncs the folder once these names are final.
func TestOpenSyncsTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "w.db")
	var synced []string
	opened := func(opts ...sqlite.Option) []string {
		t.Helper()
		synced = nil
		db, err := sqlite.Open(t.Context(), path, append(opts, sqlite.OnSyncFolder(func(dir string) {
			synced = append(synced, dir)
			for _, name := range []string{path, path + "-wal"} {
				if _, err := os.Stat(name); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(path + "-journal"); err == nil {
				t.Error("the first journal is still there")
			}
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		shut(t, db)
		return synced
	}
	for range 2 { // the log is removed with the last connection, and created again
		if got := opened(); !slices.Equal(got, []string{dir}) {
			t.Errorf("folders synced: %q, want %q", got, dir)
		}
	}
	if got := opened(sqlite.Synchronous(sqlite.SyncOff)); len(got) != 0 {
		t.Errorf("folders synced though nothing is: %q", got)
	}
}
