package sqlite

import (
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// faults lets this package's tests make the database fail where it matters.
// The zero value, which everybody else has, does nothing.
type faults struct {
	onOp     func(*conn.Conn) error          // before each operation
	onCommit func(commit func() error) error // around COMMIT
}

func (f *faults) op(c *conn.Conn) error {
	if f.onOp == nil {
		return nil
	}
	return f.onOp(c)
}

func (f *faults) commit(commit func() error) error {
	if f.onCommit == nil {
		return commit()
	}
	return f.onCommit(commit)
}
