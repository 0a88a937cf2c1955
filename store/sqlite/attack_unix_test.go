//go:build unix

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

const otherUser = 65534

// Files that another user planted in a shared folder, under a name that the store expects, are
// not used.
func TestAttackForeignFiles(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 { // only root can change the owner of files
		return
	}
	for _, name := range []string{"w.db", "w.db-wal", "w.db-shm", "w.db-journal", "w.db.workers", "w.db.logs", "w.db.blobs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, path := filepath.Join(dir, name), filepath.Join(dir, "w.db")
			var err error
			if strings.HasSuffix(name, "s") && strings.Count(name, ".") > 1 {
				err = os.Mkdir(file, 0o755)
			} else {
				err = os.WriteFile(file, nil, 0o666)
			}
			if err == nil {
				err = os.Chown(file, otherUser, otherUser)
			}
			if err == nil {
				err = os.Chmod(dir, 0o777|os.ModeSticky)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = sqlite.Open(t.Context(), path)
			says(t, err, store.ErrUnavailable, file, "belongs to user 65534", "`chown 0 "+file+"`")
			if err := os.Chmod(dir, 0o755); err != nil { // every user that may write to it is trusted
				t.Fatal(err)
			}
			openFile(t, path)
		})
	}
}

// A link that another user planted in a shared folder is not followed, in any part of the
// path.
func TestAttackLinks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 { // only root can change the owner of files
		return
	}
	own, shared := t.TempDir(), t.TempDir()
	openFile(t, filepath.Join(own, "w.db"))
	at := func(name string) string { return filepath.Join(shared, name) }
	for name, to := range map[string]string{"file": filepath.Join(own, "w.db"), "folder": own, "new": filepath.Join(own, "new.db"), "through": at("file")} {
		if err := errors.Join(os.Symlink(to, at(name)), os.Lchown(at(name), otherUser, otherUser)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Lchown(at("through"), 0, 0), os.Chmod(shared, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	for path, link := range map[string]string{"file": "file", "folder/w.db": "folder", "new": "new", "through": "file"} {
		_, err := sqlite.Open(t.Context(), at(path))
		says(t, err, store.ErrUnavailable, at(link)+" is a link of user 65534", "Name the file itself")
	}
	if err := os.Lchown(at("file"), 0, 0); err != nil {
		t.Fatal(err)
	}
	openFile(t, at("through"))
}

// A lock folder in which another user can make workers look dead is not used.
func TestAttackLockFolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(dir string) error
		says string
	}{
		"everybody writes": {func(dir string) error { return os.Chmod(dir, 0o777) }, "`chmod o-w "},
		"a link": {func(dir string) error {
			if err := os.Rename(dir, dir+".real"); err != nil {
				return err
			}
			return os.Symlink(dir+".real", dir)
		}, "is not a folder, or is a link"},
		"another user's": {func(dir string) error { return os.Chown(dir, otherUser, otherUser) }, "belongs to user 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "another user's" && os.Geteuid() != 0 {
				return
			}
			f := fileFixture(t)
			f.join("a")
			other := fixtureOn(t, openFile(t, f.db.Path()))
			dir := f.db.Path() + ".workers"
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			err := other.db.Join(t.Context(), fixNS, store.WorkerInfo{ID: "b", TTL: fixTTL})
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Join: %v, want %q", err, c.says)
			}
		})
	}
}
