package sqlite

import (
	"context"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// WriterPragma returns the value of a pragma on the writer's connection.
func (db *DB) WriterPragma(ctx context.Context, name string) (value string, err error) {
	if qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) { value, err = c.Pragma("PRAGMA " + name) }); qerr != nil {
		return "", qerr
	}
	return value, err
}
