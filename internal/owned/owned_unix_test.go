//go:build unix

package owned_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/owned"
)

// New files copy the mode of the model file and, for root, its owner and group. Existing files, links included, stay
// unchanged.
func TestAs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check(t, os.WriteFile(at("db"), nil, 0o600))
	check(t, os.Chmod(at("db"), 0o664))
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 65534, 65533
		check(t, os.Chown(at("db"), uid, gid))
	}
	as := owned.As{Path: at("db")}
	check(t, as.MkdirAll(at("folder/below")))
	check(t, as.MkdirAll(at("folder/below")))
	f, err := as.Open(at("folder/below/file"), os.O_RDWR)
	check(t, err)
	check(t, f.Close())
	check(t, owned.As{Path: at("db"), OwnerOnly: true}.Mkdir(at("private")))
	check(t, owned.As{}.Mkdir(at("plain")))
	for name, want := range map[string]fs.FileMode{"folder": 0o775, "folder/below": 0o775, "folder/below/file": 0o664, "private": 0o700, "plain": 0o700} {
		info, err := os.Lstat(at(name))
		check(t, err)
		st := info.Sys().(*syscall.Stat_t)
		wantUID, wantGID := uid, gid
		if name == "plain" {
			wantUID, wantGID = os.Geteuid(), int(st.Gid)
		}
		if info.Mode().Perm() != want || int(st.Uid) != wantUID || int(st.Gid) != wantGID {
			t.Errorf("%s: mode %#o, owner %d:%d, want %#o, %d:%d", name, info.Mode().Perm(), st.Uid, st.Gid, want, wantUID, wantGID)
		}
	}

	check(t, os.WriteFile(at("mine"), nil, 0o600))
	check(t, os.Symlink(at("mine"), at("link")))
	if f, err = as.Open(at("link"), os.O_RDWR); err == nil {
		check(t, f.Close())
	}
	info, err := os.Stat(at("mine"))
	check(t, err)
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that a link leads to was given away: %v, owner %d", info.Mode(), st.Uid)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
