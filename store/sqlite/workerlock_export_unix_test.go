//go:build unix && !illumos && !solaris && !aix

package sqlite

import (
	"os"
	"syscall"

	"github.com/goweaver/weaver/store"
)

// Share takes a worker's lock like a check of it, until the result is called.
func (db *DB) Share(ns string, id store.WorkerID) (giveBack func(), err error) {
	f, err := os.OpenFile(db.LockPath(ns, id), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
