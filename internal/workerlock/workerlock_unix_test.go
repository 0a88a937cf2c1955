//go:build unix && !illumos && !solaris && !aix

package workerlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goweaver/weaver/internal/filelock"
	"github.com/goweaver/weaver/store"
)

const testNS = "test"

// joined returns two Folders for the same directory; the first holds the lock of the worker w.
func joined(t *testing.T) (mine, other *Folder) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workers")
	mine, other = In(dir), In(dir)
	t.Cleanup(func() { mine.Close(); other.Close() })
	if err := mine.Hold(t.Context(), testNS, "w"); err != nil {
		t.Fatal(err)
	}
	return mine, other
}

// dead reports whether a Folder proves the worker w dead by the name of its file.
func (l *Folder) dead(t *testing.T) bool {
	t.Helper()
	d := l.Dead(t.Context(), testNS, []store.WorkerID{"w"})
	defer d.Close()
	return len(d.IDs()) == 1
}

func TestAFreeLockProvesDeath(t *testing.T) {
	t.Parallel()
	mine, other := joined(t)
	for what, l := range map[string]*Folder{"the worker's own": mine, "another": other} {
		if l.dead(t) || l.LooksDead(testNS, "w") {
			t.Errorf("%s folder finds a worker dead that lives", what)
		}
	}
	if err := other.Hold(t.Context(), testNS, "w"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a second process under the same id: %v, want ErrConflict", err)
	}
	mine.Drop(testNS, "w")
	if !other.LooksDead(testNS, "w") || !other.dead(t) {
		t.Error("the worker's lock is free, and it is not found dead")
	}
	if err := mine.Hold(t.Context(), testNS, "w"); err != nil {
		t.Fatal(err)
	}
	mine.Release(testNS, "w") // the worker leaves
	if other.LooksDead(testNS, "w") || other.dead(t) {
		t.Error("a worker that left, and has no file, is found dead")
	}
}

func TestForgetRemovesTheFile(t *testing.T) {
	t.Parallel()
	mine, other := joined(t)
	for what, prove := range map[string]func(l *Folder) *Dead{
		"that of a dead worker":     func(l *Folder) *Dead { return l.Dead(t.Context(), testNS, []store.WorkerID{"w"}) },
		"that of one in any folder": func(*Folder) *Dead { return In(t.TempDir()).takenFrom(other, "w") },
		"that of a silent one":      func(l *Folder) *Dead { return l.Dead(t.Context(), testNS, nil) },
	} {
		if err := mine.Hold(t.Context(), testNS, "w"); err != nil {
			t.Fatal(err)
		}
		mine.Drop(testNS, "w")
		dead := prove(other)
		dead.Forget([]store.WorkerID{"w", "unknown"})
		dead.Close()
		if _, err := os.Lstat(mine.Path(testNS, "w")); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", what, err)
		}
	}
}

// takenFrom returns the proof of death for a worker whose file lies in another folder.
func (l *Folder) takenFrom(other *Folder, id store.WorkerID) *Dead {
	dead := l.newDead(testNS)
	if f, err := other.take(context.Background(), other.Path(testNS, id), existing); err == nil {
		dead.files[id] = f
	}
	return dead
}

// A shared lock does not count as held.
func TestDeadWhileLookedAt(t *testing.T) {
	t.Parallel()
	mine, other := joined(t)
	mine.Drop(testNS, "w")
	f, err := os.Open(mine.Path(testNS, "w"))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := filelock.TryShare(f); !ok || err != nil {
		t.Fatal(ok, err)
	}
	once := sync.OnceFunc(func() { _ = filelock.Close(f) })
	defer once()
	taken := make(chan bool)
	go func() { taken <- other.dead(t) }()
	once()
	if !<-taken {
		t.Error("a lock that was only looked at was taken for one that is held")
	}
}

func TestNoFolderProvesNothing(t *testing.T) {
	t.Parallel()
	var none *Folder
	if err := none.Hold(t.Context(), testNS, "w"); err != nil {
		t.Error(err)
	}
	if none.dead(t) || none.LooksDead(testNS, "w") || none.Place(testNS, "w") != (Place{}) || none.Path(testNS, "w") != "" {
		t.Error("no folder proves something")
	}
	none.Sweep(t.Context(), nil)
	none.Drop(testNS, "w")
	none.Release(testNS, "w")
	none.Close()
}
