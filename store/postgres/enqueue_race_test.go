package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// A key may be free again between the insert that finds it taken and the look at who has
// it. Then the task is stored after all: every answer names a task.
func TestEnqueueBesideDeletes(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	ids := task.NewIDs(nil)
	end := time.Now().Add(2 * time.Second)
	latest := make(chan task.ID, 1)
	var all sync.WaitGroup
	for range 4 {
		db := openURL(t, url)
		all.Go(func() {
			w := &planWork{TB: t, db: db, ids: ids}
			for time.Now().Before(end) && !t.Failed() {
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
	all.Go(func() { remove(t, openURL(t, url), latest, end) })
	all.Wait()
}

// remove deletes tasks as soon as they are there.
func remove(t *testing.T, db *postgres.DB, latest <-chan task.ID, end time.Time) {
	deleted := 0
	for time.Now().Before(end) && !t.Failed() {
		select {
		case id := <-latest:
			got, err := db.Operate(context.Background(), planNS, store.CancelTask{Task: id}, store.DeleteTask{Task: id})
			if err != nil {
				t.Error(err)
			} else if got[1].Err == nil {
				deleted++
			}
		case <-time.After(time.Millisecond):
		}
	}
	if deleted < 5 {
		t.Errorf("%d tasks were deleted: nothing met", deleted)
	}
}
