package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// transient are the errors of the driver and of database/sql that do not depend on the failed
// statement. A transaction is done before its user ended it if its context ended.
var transient = []error{
	sqlite3.BUSY, sqlite3.LOCKED, sqlite3.PROTOCOL, sqlite3.INTERRUPT, sqlite3.NOMEM,
	sqlite3.FULL, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.READONLY,
	driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone,
}

// Transient implements store.Flow.
func (db *DB) Transient(err error) bool {
	for _, t := range transient {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
