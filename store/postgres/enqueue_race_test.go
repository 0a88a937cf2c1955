package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// A key may become free between the insert that finds it taken and the lookup of its task. The task
// is stored then after all: every result names a task.
func TestEnqueueBesideDeletes(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	ids := task.NewIDs(nil)
	ctx, end := context.WithCancel(t.Context())
	latest := make(chan task.ID, 1)
	var all sync.WaitGroup
	for range 4 {
		db := openURL(t, url)
		all.Go(func() {
			w := &planWork{TB: t, db: db, ids: ids}
			defer end()
			for ctx.Err() == nil {
				n := w.draft(func(n *task.New) { n.IdempotencyKey = "often" })
				got, err := db.Enqueue(context.Background(), planNS, nil, store.Submission{Tasks: []task.New{n}})
				if err != nil || len(got) != 1 || got[0].ID.IsZero() {
					t.Errorf("Enqueue: %+v, %v", got, err)
					return
				}
				select {
				case latest <- got[0].ID:
				default:
				}
			}
		})
	}
	db := openURL(t, url)
	all.Go(func() {
		defer end()
		remove(ctx, t, db, latest, 100)
	})
	all.Wait()
}

// remove deletes the given number of tasks, each as soon as it exists.
func remove(ctx context.Context, t *testing.T, db *postgres.DB, latest <-chan task.ID, tasks int) {
	for deleted := 0; deleted < tasks && !t.Failed(); {
		var id task.ID
		select {
		case id = <-latest:
		case <-ctx.Done():
			return
		}
		got, err := db.Operate(context.Background(), planNS, store.CancelTask{Task: id}, store.DeleteTask{Task: id})
		if err != nil {
			t.Error(err)
		} else if got[1].Err == nil {
			deleted++
		}
	}
}
