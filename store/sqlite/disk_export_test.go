package sqlite

import "context"

// VFS makes SQLite use the file layer registered under a name.
func VFS(name string) Option { return func(o *options) { o.vfs = name } }

// Alone runs fn while nobody writes.
func (db *DB) Alone(ctx context.Context, fn func()) error { return db.queue.Exclusive(ctx, fn) }
