package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Many lanes are not read again with every external commit. Tasks that this process enqueues
// are nevertheless found at once, also in a lane without rows, and also from a caller's
// transaction on another connection.
func TestNewLanesAmongMany(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, newNoteStore(t).db)
	queued := func(name string) func(*task.New) { return func(n *task.New) { n.Queue = name } }
	for i := range 300 {
		later := func(n *task.New) { n.Delay = time.Hour }
		f.enqueue(1, queued(fmt.Sprint("lane-", i)), later)
	}
	if got := f.claim("w", 1); len(got) != 0 { // and the lanes are known
		t.Fatalf("claimed %d tasks of the future", len(got))
	}
	f.db.LanesTook(fixNS, time.Hour) // so that they are not read again

	f.enqueue(1, queued("own"))
	if got := f.claim("w", 1); len(got) != 1 {
		t.Errorf("claimed %d tasks that were just enqueued, want 1", len(got))
	}
	tx := f.begin()
	if _, err := f.db.Enqueue(t.Context(), fixNS, sqlite.Tx(tx), f.drafts(1, queued("caller's"))); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := f.claim("w", 1); len(got) != 1 {
		t.Errorf("claimed %d tasks that a caller's transaction enqueued, want 1", len(got))
	}
}
