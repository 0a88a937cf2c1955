//go:build unix && !illumos && !solaris && !aix

package sqlite_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
)

// A program that is being started has a copy of every descriptor of this
// process until it executes, and with it the worker locks. A lock that is given
// up must be free all the same.
func TestLocksAreFreeBesideAFork(t *testing.T) {
	t.Parallel()
	for what, giveUp := range map[string]func(f, other *fixture) ([]int, error){
		"the worker's process dies": func(f, _ *fixture) ([]int, error) {
			fds, err := f.db.ForkHeld()
			f.db.Kill(fixNS, "w")
			return fds, err
		},
		"its store is closed": func(f, _ *fixture) ([]int, error) {
			fds, err := f.db.ForkHeld()
			return fds, errors.Join(err, f.db.Close())
		},
		"a reap that took no lease of it ends": func(f, other *fixture) ([]int, error) {
			f.db.Kill(fixNS, "w")
			return other.db.ForkWhileReaping(f.Context(), fixNS)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "w.db")
			f, other := fixtureOn(t, openFile(t, path)), fixtureOn(t, openFile(t, path))
			f.join("w")
			f.enqueue(1)
			f.claim("w", 1)
			fds, err := giveUp(f, other)
			for _, fd := range fds {
				defer func() { _ = syscall.Close(fd) }()
			}
			if err != nil || len(fds) == 0 {
				t.Fatalf("%d descriptors were copied: %v", len(fds), err)
			}
			got, err := other.db.Reap(t.Context(), fixNS, store.ReapRequest{Worker: "other", TTL: fixTTL, CrashBudget: 3})
			if err != nil || len(got.Reaped) != 1 {
				t.Errorf("the reap took %d leases, want the one of the dead worker: %v", len(got.Reaped), err)
			}
		})
	}
}
