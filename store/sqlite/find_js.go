package sqlite

import (
	"errors"
	"fmt"
	"path"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
	"github.com/goweaver/weaver/store/sqlite/internal/opfs"
)

// find opens the file of the browser's private file system, which no other tab can open until
// this one has closed it. done is called when SQLite has opened it too.
func (db *DB) find(name string) (done func(), err error) {
	db.name = path.Clean("/" + name)
	done, err = opfs.Warm(db.name)
	switch {
	case errors.Is(err, opfs.ErrElsewhere):
		return nil, fmt.Errorf("%w: %w", store.ErrBusy, err)
	case errors.Is(err, opfs.ErrMissing):
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case err != nil:
		return nil, db.translate(err)
	}
	db.opts.vfs = opfs.Name
	db.alone = aloneWith(db.name)
	if err := conn.LeaveWAL(db.address()); err != nil {
		done()
		return nil, db.translate(err)
	}
	return done, nil
}
