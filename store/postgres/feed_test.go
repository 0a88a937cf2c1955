package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// feedReader reads a feed repeatedly.
type feedReader struct {
	*testing.T
	db    *postgres.DB
	ns    string
	after int64
	seen  map[task.ID]int
}

// read reads the present rows.
func (r *feedReader) read() {
	r.Helper()
	for {
		page, err := r.db.Feed(r.Context(), r.ns, store.FeedRequest{After: r.after, Limit: 3})
		if err != nil {
			r.Fatal(err)
		}
		for _, row := range page.Rows {
			if row.Pos <= r.after {
				r.Errorf("the row %d comes behind %d", row.Pos, r.after)
			}
			r.seen[row.Task]++
		}
		if r.after = page.Next; !page.More {
			return
		}
	}
}

// until reads until n rows were seen.
func (r *feedReader) until(n int) {
	r.Helper()
	eventually(r, fmt.Sprintf("%d rows are there", n), func() bool { r.read(); return len(r.seen) >= n })
	for id, n := range r.seen {
		if n != 1 {
			r.Errorf("the row of %s came %d times", id, n)
		}
	}
}

// A transaction that drew a position holds the feed back until it ends: a reader misses no row that
// is committed after one with a higher position.
func TestFeedOfCrossingTransactions(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(t, "weaver", migrateURL))
	if err := keepFeed(t.Context(), db, "ns", time.Hour); err != nil {
		t.Fatal(err)
	}
	state, err := feedState(t.Context(), db, "ns")
	if err != nil || state != (store.FeedState{On: true}) {
		t.Fatalf("before the first row the feed is %+v, %v", state, err)
	}
	ids := task.NewIDs(nil)
	enqueue := func(ctx context.Context, tx store.Tx) task.ID {
		t.Helper()
		id := ids.New()
		if _, err := db.Enqueue(ctx, "ns", tx, store.Submission{Tasks: []task.New{{ID: id, Type: "a.b.c.v1", Queue: "q", MaxAttempts: 1}}}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	reader := &feedReader{T: t, db: db, ns: "ns", seen: map[task.ID]int{}}
	want := 0
	for round, others := range []int{0, 5, 5, 0, 0, 1} { // transactions committed meanwhile
		commits := round%3 < 2
		slow, err := db.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t.Context(), postgres.Tx(slow))
		for range others {
			enqueue(t.Context(), nil)
		}
		for range 3 {
			reader.read()
		}
		if len(reader.seen) != want {
			t.Errorf("round %d: %d rows are there while a transaction with a lower position goes on, want %d", round, len(reader.seen), want)
		}
		want += others
		if commits {
			want++
			err = slow.Commit(t.Context())
		} else {
			err = slow.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		reader.until(want)
	}
	if state, err := feedState(t.Context(), db, "ns"); err != nil || state.Newest > state.Last {
		t.Errorf("in the end the feed is %+v, %v", state, err)
	}
	fresh := &feedReader{T: t, db: openURL(t, db.RawURL()), ns: "ns", seen: map[task.ID]int{}}
	fresh.until(want)
	if fmt.Sprint(fresh.seen) != fmt.Sprint(reader.seen) {
		t.Error("a reader that begins later sees other rows")
	}
}
