//go:build unix && !illumos && !solaris && !aix

package workerlock

import (
	"os"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
)

// A program that is being started holds a copy of every descriptor of this process until it executes, and with them
// the worker locks. A released lock must be free nevertheless.
func TestLocksAreFreeBesideAFork(t *testing.T) {
	t.Parallel()
	for what, giveUp := range map[string]func(t *testing.T, mine, other *Folder) []int{
		"the worker's process dies": func(t *testing.T, mine, _ *Folder) []int {
			fds := forked(t, mine.held)
			mine.Drop(testNS, "w")
			return fds
		},
		"its store is closed": func(t *testing.T, mine, _ *Folder) []int {
			fds := forked(t, mine.held)
			mine.Close()
			return fds
		},
		"a reap that took no lease of it ends": func(t *testing.T, mine, other *Folder) []int {
			mine.Drop(testNS, "w")
			dead := other.Dead(t.Context(), testNS, []store.WorkerID{"w"})
			defer dead.Close()
			return forked(t, dead.files)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mine, other := In(dir), In(dir)
			if err := mine.Hold(t.Context(), testNS, "w"); err != nil {
				t.Fatal(err)
			}
			fds := giveUp(t, mine, other)
			for _, fd := range fds {
				defer func() { _ = syscall.Close(fd) }()
			}
			if len(fds) != 1 {
				t.Fatalf("%d descriptors were copied, want 1", len(fds))
			}
			dead := other.Dead(t.Context(), testNS, []store.WorkerID{"w"})
			defer dead.Close()
			if len(dead.IDs()) != 1 {
				t.Error("the lock of the dead worker is not free")
			}
		})
	}
}

// forked returns copies of the descriptors of locks, like those of a forked process that has not yet executed its
// program.
func forked[K comparable](t *testing.T, files map[K]*os.File) (fds []int) {
	t.Helper()
	for _, f := range files {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	return fds
}
