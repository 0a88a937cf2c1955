package workerlock

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/store"
)

// Dead holds the locks of workers that are proven dead, so that two reapers never remove the same file. The caller
// must close it.
type Dead struct {
	folder *Folder
	ns     string
	files  map[store.WorkerID]*os.File
}

func (l *Folder) newDead(ns string) *Dead { return &Dead{l, ns, make(map[store.WorkerID]*os.File)} }

// Dead tries the locks of workers and keeps those that are free. It skips a worker whose lock this Folder holds. Do
// not call it inside a transaction. Worker IDs are random and never reused.
func (l *Folder) Dead(ctx context.Context, ns string, ids []store.WorkerID) *Dead {
	dead := l.newDead(ns)
	if l == nil || l.trust() != nil {
		return dead
	}
	for _, id := range ids {
		path := l.Path(ns, id)
		if l.holds(path) {
			continue
		}
		if f, err := l.take(ctx, path, existing); err == nil { // an error proves nothing
			dead.files[id] = f
		}
	}
	return dead
}

// IDs returns the IDs of the dead workers.
func (d *Dead) IDs() []store.WorkerID { return slices.Collect(maps.Keys(d.files)) }

// Forget deletes the lock files of workers whose rows are gone. A file that stays behind does no harm.
func (d *Dead) Forget(ids []store.WorkerID) {
	for _, id := range ids {
		path := d.folder.Path(d.ns, id) // the worker has been silent for long
		if f := d.files[id]; f != nil {
			path = f.Name()
		}
		if path != "" {
			_ = os.Remove(path)
		}
	}
}

// Close releases the locks.
func (d *Dead) Close() {
	for _, f := range d.files {
		_ = filelock.Close(f)
	}
}

// LooksDead reports whether a worker's lock is proven free. It holds a shared lock while it compares two file names,
// and neither creates nor removes a file. Effects on other processes:
//
//   - A reaper or a joining worker that meets the shared lock tries again
//     ([lockFile]): a shared lock never counts as held.
//   - A live worker holds its lock exclusively, so its lock is never found free. It
//     takes the lock before others learn of it, so no reader sees the file between
//     its creation and its locking.
//   - A lock file that lost its name proves nothing, as for a reaper.
func (l *Folder) LooksDead(ns string, id store.WorkerID) bool {
	if l == nil {
		return false
	}
	path := l.Path(ns, id)
	if l.holds(path) || l.trust() != nil {
		return false
	}
	f, free := l.share(path)
	if f == nil {
		return false
	}
	_ = filelock.Close(f)
	return free
}

// share opens a file and takes its lock shared if the lock is free and the file still has its name. It returns nil if
// the file is missing or not readable.
func (l *Folder) share(path string) (f *os.File, free bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|filelock.NoFollow, 0)
	if err != nil {
		return nil, false
	}
	if l.opened != nil {
		l.opened()
	}
	free, err = filelock.TryShare(f)
	return f, err == nil && free && isAt(f, path)
}

// young is the time for which Sweep spares a lock file without a worker row: a worker takes its lock before it writes
// its row.
const young = time.Minute

// Sweep removes lock files that prove nothing: those of workers that were killed before they had a row, and those of
// another database with the same name. known are the paths of workers with a row, read before the call. A file that
// Sweep cannot remove stays and does no harm. Other programs may use the folder too: Sweep touches only empty regular
// files with lock file names.
func (l *Folder) Sweep(ctx context.Context, known map[string]bool) {
	if l == nil {
		return
	}
	// Files created after the rows were read are young.
	files, _ := os.ReadDir(l.dir)
	for _, f := range files {
		path := l.dir + "/" + f.Name()
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 0 || !lockName.MatchString(f.Name()) {
			continue
		}
		if known[path] || time.Since(info.ModTime()) < young {
			continue
		}
		if lock, err := l.take(ctx, path, existing); err == nil {
			_ = os.Remove(path)
			_ = filelock.Close(lock)
		}
	}
}
