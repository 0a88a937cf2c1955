package sqlite_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	addsTable = "-- additive\nCREATE TABLE weaver_later (n INTEGER);"
	addsMore  = "-- additive\nCREATE TABLE weaver_more (n INTEGER);"
	raises    = "DROP TABLE weaver_later;"
)

// A program is ready, migrates nothing, and works if all unknown migrations are additive. One
// unknown migration that is not additive, at any position, makes it refuse the database.
func TestSchemaFloor(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	known := f.count("SELECT count(*) FROM weaver_schema_versions")
	var ids []task.ID
	for _, sql := range [][]string{{addsTable}, {addsTable, addsMore}} {
		if err := f.db.MigrateAs(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
		if err := f.db.Ready(t.Context()); err != nil {
			t.Errorf("Ready beside %d additive migrations: %v", len(sql), err)
		}
		if err := f.db.Migrate(t.Context()); err != nil {
			t.Errorf("Migrate beside %d additive migrations: %v", len(sql), err)
		}
		list, err := f.db.MigrationStatus(t.Context())
		if err != nil || len(list) != known+len(sql) || list[known].Name != "later" || list[known].AppliedAt.IsZero() {
			t.Errorf("MigrationStatus = %v, %v; want the unknown migrations too", list, err)
		}
		ids = append(ids, f.enqueue(1)...)
		f.finish(f.claim("w", 1)...)
		f.sound(ids...)
	}
	if err := f.db.MigrateAs(t.Context(), addsTable, addsMore, raises); err != nil {
		t.Fatal(err)
	}
	says(t, f.db.Ready(t.Context()), store.ErrNewerSchema, "use the newer weaver")
	says(t, f.db.Migrate(t.Context()), store.ErrNewerSchema)
	if err := f.db.MigrateAs(t.Context(), addsTable, addsMore, raises, addsTable); err != nil {
		t.Fatal(err)
	}
	says(t, f.db.Ready(t.Context()), store.ErrNewerSchema)
}

// A worker continues after another program applied an additive migration, and stops after one
// that is not additive.
func TestWorkerGoesOnAboveTheFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		_, stop := f.works(weaver.Config{})
		time.Sleep(time.Second)
		if err := f.db.MigrateAs(t.Context(), addsTable); err != nil {
			t.Fatal(err)
		}
		time.Sleep(store.DefaultLease)
		id := f.enqueue(1)[0]
		time.Sleep(store.DefaultLease)
		f.sound(id)
		if err := stop(); err != nil {
			t.Errorf("the worker ended with %v", err)
		}

		_, stop = f.works(weaver.Config{})
		time.Sleep(time.Second)
		if err := f.db.MigrateAs(t.Context(), addsTable, raises); err != nil {
			t.Fatal(err)
		}
		time.Sleep(store.DefaultLease)
		says(t, stop(), store.ErrNewerSchema)
	})
}
