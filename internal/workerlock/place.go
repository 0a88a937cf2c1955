package workerlock

import (
	"context"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/store"
)

// Place says where a worker's lock is, to processes that share only a database with
// it. The zero Place proves nothing.
//
// A process that finds the file of a Place, and its lock free, knows that the worker
// is dead. There is no false proof:
//
//   - Another machine has another Host. (Containers of one machine share its kernel,
//     and so its Host.)
//   - Where Path leads to another file, in another mount namespace or after the file
//     was made again, File differs: the worker that lives keeps its file open, so
//     neither the device nor the inode can be another file's in that kernel.
//   - Path is named after namespace and worker, so a row that is wrong leads to no
//     other worker's file, and opens nothing but lock files.
//   - A lock file is never seen unlocked by a row that leads to it: the row is written
//     after it was locked, and a worker that makes its file again keeps the old one
//     open until the new one is locked.
type Place struct {
	Host string // the boot id of the machine
	Path string // absolute
	File string // device and inode
}

// Place returns where the lock of a worker is that this Folder holds. It is zero
// where the system cannot name the machine.
func (l *Folder) Place(ns string, id store.WorkerID) Place {
	host := bootID()
	if l == nil || host == "" {
		return Place{}
	}
	path, err := filepath.Abs(l.Path(ns, id))
	if err != nil {
		return Place{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.held[l.Path(ns, id)]
	if f == nil || !isAt(f, path) {
		return Place{}
	}
	info, err := f.Stat()
	if err != nil {
		return Place{}
	}
	file := fileID(info)
	if file == "" {
		return Place{}
	}
	return Place{Host: host, Path: path, File: file}
}

// DeadAt is Dead for workers whose locks are where their Places say, in any folder of
// this machine.
func (l *Folder) DeadAt(ctx context.Context, ns string, places map[store.WorkerID]Place) *Dead {
	dead := l.newDead(ns)
	for id, p := range places {
		if !l.Here(p) || l.holds(l.Path(ns, id)) {
			continue
		}
		if f := l.takeAt(ctx, ns, id, p); f != nil {
			dead.files[id] = f
		}
	}
	return dead
}

// leadsTo reports whether Path leads to a lock file of the worker, and to the one that
// is meant. Before it is opened: opening a device may do something.
func (p Place) leadsTo(ns string, id store.WorkerID) bool {
	if !filepath.IsAbs(p.Path) || filepath.Base(p.Path) != name(ns, id) {
		return false
	}
	info, err := os.Lstat(p.Path)
	return err == nil && info.Mode().IsRegular() && fileID(info) == p.File
}

// takeAt takes the lock of a worker where its Place says; nil: that proves nothing.
func (l *Folder) takeAt(ctx context.Context, ns string, id store.WorkerID, p Place) *os.File {
	if !p.leadsTo(ns, id) {
		return nil
	}
	f, err := l.take(ctx, p.Path, existing)
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || fileID(info) != p.File {
		_ = filelock.Close(f)
		return nil
	}
	return f
}

// Here reports whether a Place is one of this machine. Another process of it may not
// see the file.
func (l *Folder) Here(p Place) bool { return l != nil && p.Host != "" && p.Host == bootID() }

// LooksDeadAt is LooksDead for a worker whose lock is where its Place says.
func (l *Folder) LooksDeadAt(ns string, id store.WorkerID, p Place) bool {
	if !l.Here(p) || l.holds(l.Path(ns, id)) || !p.leadsTo(ns, id) {
		return false
	}
	f, free := l.share(p.Path)
	if f == nil {
		return false
	}
	defer func() { _ = filelock.Close(f) }()
	info, err := f.Stat()
	return free && err == nil && fileID(info) == p.File
}
