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

// Dead are workers proven dead, with their locks, which keep two reapers from
// removing one file twice. It must be closed.
type Dead struct {
	folder *Folder
	ns     string
	files  map[store.WorkerID]*os.File
}

func (l *Folder) newDead(ns string) *Dead { return &Dead{l, ns, make(map[store.WorkerID]*os.File)} }

// Dead tries the locks of workers, and keeps those that are free. A worker whose
// lock this Folder holds is not tried. It must not be called inside a transaction;
// ids are random and never come back.
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
		if f, err := l.take(ctx, path, existing); err == nil { // else there is no proof
			dead.files[id] = f
		}
	}
	return dead
}

// IDs returns them.
func (d *Dead) IDs() []store.WorkerID { return slices.Collect(maps.Keys(d.files)) }

// Forget deletes the lock files of workers that have no row any more. One that remains
// does no harm.
func (d *Dead) Forget(ids []store.WorkerID) {
	for _, id := range ids {
		path := d.folder.Path(d.ns, id) // of one that was silent for long
		if f := d.files[id]; f != nil {
			path = f.Name()
		}
		if path != "" {
			_ = os.Remove(path)
		}
	}
}

// Close gives the locks back.
func (d *Dead) Close() {
	for _, f := range d.files {
		_ = filelock.Close(f)
	}
}

// LooksDead reports whether a worker's lock is proven free. It takes the lock shared,
// for as long as it takes to compare two names, and neither creates nor removes a
// file. What that does to others:
//
//   - A reaper or a joining worker that meets the shared lock tries again
//     ([lockFile]): it takes nothing for held that is only looked at.
//   - A worker that lives holds its lock exclusively, so it is never found free. It
//     has it before others know of it, so no worker is found in the moment between
//     the creation of its file and the locking of it.
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

// share opens a file and takes its lock shared, if that is free and the file has its
// name. nil: there is no file, or one that may not be read.
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

// young is how long a lock file may wait for its worker's row: a worker takes the
// lock first.
const young = time.Minute

// Sweep removes lock files that prove nothing: those of workers that were killed
// before they had a row, or that another database of this name had. known are the
// paths of the workers that have a row, read before. What it cannot remove stays; it
// is only a file. The folder may be that of another program, too: only empty regular
// files with names of ours are touched.
func (l *Folder) Sweep(ctx context.Context, known map[string]bool) {
	if l == nil {
		return
	}
	// Those that came after the rows were read are young.
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
