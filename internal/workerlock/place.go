package workerlock

import (
	"context"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/store"
)

// Place locates a worker's lock for processes that share only a database with the worker. The zero Place proves
// nothing.
//
// A process that finds the file of a Place, and its lock free, knows that the worker is dead. A false proof is
// impossible:
//
//   - Another machine has another Host. (Containers of one machine share its kernel,
//     and so its Host.)
//   - Path may lead to another file, in another mount namespace or after the file was
//     recreated. Then File differs: a live worker keeps its file open, so no other file
//     of that kernel can have its device and inode.
//   - Path contains a hash of namespace and worker ID. A wrong row leads to no other
//     worker's file and opens nothing but lock files.
//   - A row never leads to an unlocked file of a live worker: the row is written after
//     the file was locked. A worker that recreates its file keeps the old one open until
//     the new one is locked.
type Place struct {
	Host string // the machine's boot ID
	Path string // absolute
	File string // device and inode
}

// Place returns the place of a lock that this Folder holds. It is zero if the system has no ID for the machine.
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

// DeadAt is Dead for workers whose locks lie at their Places, in any folder of this machine.
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

// leadsTo reports whether Path leads to the lock file of the worker and the file has the expected identity. It checks
// this before the open, because opening a device may have side effects.
func (p Place) leadsTo(ns string, id store.WorkerID) bool {
	if !filepath.IsAbs(p.Path) || filepath.Base(p.Path) != name(ns, id) {
		return false
	}
	info, err := os.Lstat(p.Path)
	return err == nil && info.Mode().IsRegular() && fileID(info) == p.File
}

// takeAt takes the lock of a worker at its Place. It returns nil if that proves nothing.
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

// Here reports whether a Place is on this machine. The file may still be invisible to this process.
func (l *Folder) Here(p Place) bool { return l != nil && p.Host != "" && p.Host == bootID() }

// LooksDeadAt is LooksDead for a worker whose lock lies at its Place.
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
