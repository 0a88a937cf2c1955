package postgres_test

import (
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/refusetest"
	"github.com/goweaver/weaver/store"
)

// What the database refuses for good ends the task, on every path on which an engine writes.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	refusetest.Run(t, func(t *testing.T, w refusetest.Write) store.Store {
		url := pgtest.Migrated(t, "weaver", migrateURL)
		connect(t, url).exec(fmt.Sprintf("ALTER TABLE weaver.%s ADD CONSTRAINT %s CHECK (%s NOT LIKE '%%%s%%')", w.Table, refusetest.Said, w.Column, refusetest.Poison))
		return openURL(t, url)
	})
}
