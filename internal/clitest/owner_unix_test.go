//go:build unix

package clitest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Files of a run next to the store get the owner, group and mode of the store's file; for a user other than root only
// the mode.
func TestOwnerOfWhatIsBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "weaver.db")
	write(t, filepath.Join(dir, "made.yaml"), "name: made\ntasks:\n  a: {run: \"echo out >out; echo said\", artifacts: [out]}\n  b: {run: \"kill -9 $PPID; sleep 60\", needs: [a]}\n")
	if code := start(t, dir, "migrate", "up").end(); code != 0 {
		t.Fatalf("migrate up: exit code %d", code)
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 65534, 65534
	}
	for _, path := range []string{dir, db} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(db, 0o660); err != nil {
		t.Fatal(err)
	}
	start(t, dir, "run", "made.yaml").end() // killed: its lock file stays
	if code := start(t, dir, "backup", "copy.db").end(); code != 0 {
		t.Errorf("backup: exit code %d", code)
	}
	seen := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, err2 := filepath.Rel(dir, path)
		if err != nil || err2 != nil || !strings.HasPrefix(name, "weaver.db") && name != "copy.db" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o660)
		if d.IsDir() {
			want = 0o770
		}
		st := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm() != want || int(st.Uid) != uid || int(st.Gid) != gid {
			t.Errorf("%s: mode %#o, owner %d:%d, want %#o, %d:%d", name, info.Mode().Perm(), st.Uid, st.Gid, want, uid, gid)
		}
		first, below, _ := strings.Cut(name, "/")
		seen[first] = seen[first] || below != "" || !d.IsDir()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"weaver.db.workers", "weaver.db.logs", "weaver.db.blobs", "copy.db"} {
		if !seen[name] {
			t.Errorf("there is nothing in %s", name)
		}
	}
}
