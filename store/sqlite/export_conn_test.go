package sqlite

import "context"

// WriterPragma returns the value of a pragma on the writer's connection.
func (db *DB) WriterPragma(ctx context.Context, name string) (value string, err error) {
	if qerr := db.queue.Exclusive(ctx, func() { value, err = db.w.conn.Pragma("PRAGMA " + name) }); qerr != nil {
		return "", qerr
	}
	return value, err
}
