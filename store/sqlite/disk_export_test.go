package sqlite

import (
	"context"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// VFS makes SQLite use the file layer registered under a name.
func VFS(name string) Option { return func(o *options) { o.vfs = name } }

// Exclusive runs fn while no group is being committed.
func (db *DB) Exclusive(ctx context.Context, fn func()) error {
	return db.writer.Exclusive(ctx, func(*conn.Conn) { fn() })
}
