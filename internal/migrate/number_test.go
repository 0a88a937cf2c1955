package migrate_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goweaver/weaver/internal/migrate"
)

// Equal texts with different numbers are different migrations.
func TestPendingComparesNumbers(t *testing.T) {
	t.Parallel()
	same := &fstest.MapFile{Data: []byte("A;")}
	known, err := migrate.Load(fstest.MapFS{"sql/0001_a.sql": same, "sql/0002_b.sql": same}, "sql")
	if err != nil {
		t.Fatal(err)
	}
	second := migrate.Applied{Version: 2, Name: "b", Checksum: known[1].Checksum}
	if _, err := migrate.Pending(known, []migrate.Applied{second}); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "has 0002_b") {
		t.Errorf("Pending of a database that lacks the first of two equal migrations: %v", err)
	}
}
