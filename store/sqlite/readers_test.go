package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A reader's connection cannot write, and so never holds the write lock.
func TestReadersCannotWrite(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	err := f.db.Read(t.Context(), func(exec func(sql string) error) error { return exec("DELETE FROM weaver_tasks") })
	says(t, err, store.ErrReadOnly)
}

// taken is a file layer that refuses new file locks while locked is true.
type taken struct {
	vfs.VFSFilename
	locked atomic.Bool
}

// OpenFilename implements vfs.VFSFilename.
func (l *taken) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := l.VFSFilename.OpenFilename(name, flags)
	if whole, ok := f.(wholeFile); ok {
		f = &takenFile{whole, l}
	}
	return f, flags, err
}

type wholeFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type takenFile struct {
	wholeFile
	layer *taken
}

// Lock implements vfs.File.
func (f *takenFile) Lock(lock vfs.LockLevel) error {
	if f.layer.locked.Load() {
		return sqlite3.BUSY
	}
	return f.wholeFile.Lock(lock)
}

var takenFiles atomic.Int32

// The first reader opens a connection and waits in SQLite. The next readers must not wait for
// it, but in SQLite like it, with a timeout.
func TestReadersConnectBesideEachOther(t *testing.T) {
	t.Parallel()
	layer := &taken{VFSFilename: vfs.Find("").(vfs.VFSFilename)}
	name := fmt.Sprintf("taken-%d", takenFiles.Add(1)) // unique for each run (-count)
	vfs.Register(name, layer)
	t.Cleanup(func() { vfs.Unregister(name) })
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, filepath.Join(t.TempDir(), "w.db"), sqlite.VFS(name))
		var idle sync.WaitGroup // takes the connection that Migrate left idle
		held, release := make(chan struct{}), make(chan struct{})
		idle.Go(func() {
			err := db.Read(t.Context(), func(func(string) error) error {
				close(held)
				<-release
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-held
		defer idle.Wait()
		defer close(release)
		layer.locked.Store(true)
		done := make(chan error, 3)
		for range cap(done) {
			go func() {
				_, err := db.Snapshot(t.Context(), fixNS)
				done <- err
			}()
		}
		time.Sleep(time.Second)
		if len(done) > 0 {
			t.Fatalf("a read went on without a lock: %v", <-done)
		}
		layer.locked.Store(false)
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// The clock of a snapshot must not be behind its contents, or due tasks would not look due.
// Here a task is enqueued just before the snapshot is fixed, which happens when its first
// statement begins.
func TestTheClockOfASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "w.db")))
		if _, err := f.db.Snapshot(t.Context(), fixNS); err != nil { // its connection stays open
			t.Fatal(err)
		}
		came := sync.OnceFunc(func() {
			time.Sleep(time.Second)
			f.enqueue(1)
		})
		f.db.BeforeReads(func(sql string) {
			if strings.HasPrefix(strings.TrimSpace(sql), "SELECT") {
				came()
			}
		})
		snap, err := f.db.Snapshot(t.Context(), fixNS)
		if err != nil || len(snap.Tasks) != 1 {
			t.Fatalf("the snapshot shows %+v, %v, want one task", snap, err)
		}
		if at := snap.Tasks[0].CreatedAt; snap.Now.Before(at) {
			t.Errorf("the clock of the snapshot shows %v, and its task is of %v", snap.Now, at)
		}
	})
}
