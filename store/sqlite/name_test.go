package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store/sqlite"
)

// Open accepts the file name forms of WEAVER_STORE, and refuses the name of another kind of
// store.
func TestOpenName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "app.db")
	db, err := sqlite.Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"sqlite:":                           "no file name given",
		"postgres://me:secret@db.example/a": "open it with package store/postgres",
		"postgresql://db.example/a":         "open it with package store/postgres",
	} {
		if _, err := sqlite.Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}
