//go:build unix && !illumos && !solaris && !aix

package sqlite

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/goweaver/weaver/store"
)

// ForkHeld returns copies of the descriptors of the locks that db holds, as a
// process has them that is being forked off, until it executes its program.
func (db *DB) ForkHeld() (fds []int, err error) {
	db.locks.mu.Lock()
	defer db.locks.mu.Unlock()
	for _, f := range db.locks.held {
		if fds, err = dup(fds, f); err != nil {
			return fds, err
		}
	}
	return fds, nil
}

// ForkWhileReaping takes the locks of dead workers as a reap does, and returns
// copies of their descriptors when they are given back.
func (db *DB) ForkWhileReaping(ctx context.Context, ns string) (fds []int, err error) {
	locks, err := db.deadWorkers(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer dead{locks: locks}.Close()
	for _, f := range locks {
		if fds, err = dup(fds, f); err != nil {
			return fds, err
		}
	}
	return fds, nil
}

// Share takes a worker's lock as a look at it does, until the result is called.
func (db *DB) Share(ns string, id store.WorkerID) (giveBack func(), err error) {
	f, err := os.OpenFile(db.lockPath(ns, id), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if ok, err := tryShare(f); err != nil || !ok {
		return nil, errors.Join(errors.New("the lock cannot be shared"), err)
	}
	return func() { dropLock(f) }, nil
}

func dup(fds []int, f *os.File) ([]int, error) {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return fds, err
	}
	return append(fds, fd), nil
}
