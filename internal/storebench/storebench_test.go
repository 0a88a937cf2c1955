package storebench_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storebench"
	"github.com/goweaver/weaver/store/sqlite"
)

func open(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rows counts the rows of each table.
func rows(t *testing.T, db *sqlite.DB) string {
	t.Helper()
	list, err := db.DB().QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'weaver%' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range tables {
		var n int
		if err := db.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %d\n", name, n)
	}
	return all.String()
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	db := open(t)
	rest := rows(t, db)
	var got []storebench.Figure
	c := storebench.Config{Store: db, Namespace: "bench-1", Tasks: 1500, Slots: 4, Measured: func(f storebench.Figure) { got = append(got, f) }}
	if err := storebench.Measure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{storebench.EnqueueOne: 150, storebench.EnqueueMany: 1500, storebench.Enqueue: 750, storebench.Run: 2400, storebench.Steps: 150, storebench.Start: 30}
	if len(got) != len(counts) {
		t.Errorf("%d figures, want %d", len(got), len(counts))
	}
	for _, f := range got {
		if f.Count != counts[f.Name] || f.Took <= 0 || f.PerSecond <= 0 || f.P50 > f.P99 {
			t.Errorf("the figure is %+v, want a count of %d", f, counts[f.Name])
		}
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: "bench-1"})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Counts(t.Context()); err != nil || n.States[weaver.StateSucceeded].N != 2431 {
		t.Errorf("%+v, %v; want 2431 tasks that succeeded", n, err)
	}
	if err := storebench.Remove(t.Context(), db, "bench-1"); err != nil {
		t.Fatal(err)
	}
	if after := rows(t, db); after != rest {
		t.Errorf("after Remove there is\n%s\nbefore there was\n%s", after, rest)
	}
}

// Remove also removes waiting tasks, and tasks with more steps than one batch of the collector deletes.
func TestRemove(t *testing.T) {
	t.Parallel()
	db := open(t)
	rest := rows(t, db)
	typ := weaver.Define[int, weaver.None]("acme.test.steps.v1")
	eng, err := weaver.New(db, weaver.Config{Namespace: "bench-2", NoStats: true, Handlers: []weaver.Handler{
		typ.Handler(func(ctx context.Context, n int) (none weaver.None, err error) {
			for i := range n {
				err = errors.Join(err, weaver.Do(ctx, fmt.Sprint(i), func(context.Context) error { return nil }))
			}
			return none, err
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typ.Enqueue(t.Context(), eng, 1001); err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := typ.Enqueue(t.Context(), eng, 1); err != nil {
		t.Fatal(err)
	}
	if err := storebench.Remove(t.Context(), db, "bench-2"); err != nil {
		t.Fatal(err)
	}
	if after := rows(t, db); after != rest {
		t.Errorf("after Remove there is\n%s\nbefore there was\n%s", after, rest)
	}
}
