package sqlite

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// sqlCapsule reads the mark that makes a file a capsule: a copy of a few tasks, made to be
// read.
const sqlCapsule = `SELECT value FROM weaver_store_meta WHERE namespace = '' AND key = 'capsule'`

// Capsule returns the description of a capsule (`weaver export`), a JSON object, or nil for
// any other database. Nothing is written to a capsule: every call that would write returns
// store.ErrReadOnly, so no worker runs the tasks in it. Migrate works.
func (db *DB) Capsule() []byte { return slices.Clone(db.capsule) }

// loadCapsule reads the mark. Without a schema there is none.
func (db *DB) loadCapsule(c *conn.Conn) {
	st := c.Stmt(sqlCapsule)
	if st.One() {
		db.capsule = st.ColBytes(0)
	}
	_ = st.Done() // without a schema; the next statement finds any other error
}

// refuseCapsule refuses writes to a capsule.
func (db *DB) refuseCapsule() error {
	if db.capsule == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: it is a capsule, a copy of tasks that `weaver export` made to be read and replayed; nothing runs or changes in it",
		db.path, store.ErrReadOnly)
}
