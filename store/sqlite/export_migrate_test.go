package sqlite

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// MigrateAs migrates like a later program whose further migrations have these texts.
func (db *DB) MigrateAs(ctx context.Context, sql ...string) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	later := append([]migrate.Migration(nil), known...)
	for _, text := range sql {
		later = append(later, migrate.Parse(len(later)+1, "later", []byte(text)))
	}
	var failed error
	err = db.writer.Exclusive(ctx, func(c *conn.Conn) { failed = db.migrate(c, later) })
	return errors.Join(err, failed)
}
