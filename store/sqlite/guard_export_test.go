package sqlite

import (
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// OnOp calls fn before each operation of the group commit, whose error it may
// be; nil takes it away.
func (db *DB) OnOp(fn func() error) {
	db.faults.OnOp = nil
	if fn != nil {
		db.faults.OnOp = func(*conn.Conn) error { return fn() }
	}
}
