package conn_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// A log that became long by one large transaction is truncated when it starts over.
func TestUseWALLimitsTheLog(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	path := filepath.Join(t.TempDir(), "w.db")
	c := open(t, path, false)
	if err := c.UseWAL(t.Context(), time.Second, limit); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Pragma("PRAGMA journal_mode"); got != "wal" || err != nil {
		t.Fatalf("journal mode %s, %v", got, err)
	}
	script := func(sql string) {
		t.Helper()
		if err := c.Script(sql); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	script("CREATE TABLE blobs (b BLOB); INSERT INTO blobs VALUES (randomblob(1000000))")
	if size() < 1_000_000 {
		t.Fatalf("the log is %d bytes long, want a long one to begin with", size())
	}
	if _, _, err := c.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE); err != nil {
		t.Fatal(err)
	}
	script("DELETE FROM blobs") // starts the log over
	if got := size(); got > limit {
		t.Errorf("the log is %d bytes long after it started over, want at most %d", got, limit)
	}
}
