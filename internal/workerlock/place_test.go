//go:build linux

package workerlock

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/store"
)

// deadAt reports whether a process with its own folder finds the worker w dead from the Place in its row.
func deadAt(t *testing.T, p Place) bool {
	t.Helper()
	return deadBy(t, In(t.TempDir()), p)
}

func deadBy(t *testing.T, l *Folder, p Place) bool {
	t.Helper()
	looks := l.LooksDeadAt(testNS, "w", p)
	d := l.DeadAt(t.Context(), testNS, map[store.WorkerID]Place{"w": p})
	defer d.Close()
	if dead := len(d.IDs()) == 1; dead != looks {
		t.Errorf("a look says %t, a reaper says %t of %+v", looks, dead, p)
	}
	return looks
}

func placeOf(t *testing.T, l *Folder) Place {
	t.Helper()
	p := l.Place(testNS, "w")
	if p.Host == "" || p.File == "" || !filepath.IsAbs(p.Path) {
		t.Fatalf("place %+v", p)
	}
	return p
}

func TestAFreeLockElsewhereProvesDeath(t *testing.T) {
	t.Parallel()
	mine, _ := joined(t)
	p := placeOf(t, mine)
	if deadAt(t, p) || deadBy(t, mine, p) {
		t.Error("a worker that lives is found dead")
	}
	mine.Drop(testNS, "w")
	if !deadAt(t, p) {
		t.Error("a worker whose lock is free is not found dead")
	}
	if mine.Place(testNS, "w") != (Place{}) {
		t.Error("a worker without its lock has a place")
	}
	if mine.Release(testNS, "w"); deadAt(t, Place{}) {
		t.Error("no place proves something")
	}
}

// The lock is free in each of these cases, and proves nothing.
func TestNoProofFromElsewhere(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(t *testing.T, p *Place){
		"another machine":                     func(_ *testing.T, p *Place) { p.Host = "5a7b" + p.Host[4:] },
		"a machine without a name":            func(_ *testing.T, p *Place) { p.Host = "" },
		"the file of another file system":     func(_ *testing.T, p *Place) { p.File = "1" + p.File },
		"no file":                             func(_ *testing.T, p *Place) { p.File = "" },
		"a path that is not there":            func(_ *testing.T, p *Place) { p.Path = "/nowhere/" + filepath.Base(p.Path) },
		"a path that depends on where one is": func(_ *testing.T, p *Place) { p.Path = filepath.Base(p.Path) },
		"another worker's file": func(t *testing.T, p *Place) {
			p.Path = filepath.Join(filepath.Dir(p.Path), strings.Repeat("ab", 12))
			p.File = made(t, p.Path)
		},
		"a file of the same name in another mount namespace": func(t *testing.T, p *Place) {
			p.Path = filepath.Join(t.TempDir(), filepath.Base(p.Path))
			made(t, p.Path)
		},
		"a file that was made again": func(t *testing.T, p *Place) {
			again := p.Path + ".again" // created while the old file exists, so that it cannot get its inode
			made(t, again)
			if err := os.Rename(again, p.Path); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, p *Place) {
			link := filepath.Join(t.TempDir(), filepath.Base(p.Path))
			if err := os.Symlink(p.Path, link); err != nil {
				t.Fatal(err)
			}
			p.Path = link
		},
		"a pipe": func(t *testing.T, p *Place) {
			p.Path = filepath.Join(t.TempDir(), filepath.Base(p.Path))
			if err := syscall.Mkfifo(p.Path, 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(p.Path)
			if err != nil {
				t.Fatal(err)
			}
			p.File = fileID(info)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			mine, _ := joined(t)
			p := placeOf(t, mine)
			mine.Drop(testNS, "w")
			if !deadAt(t, p) {
				t.Fatal("without a change it proves nothing either")
			}
			change(t, &p)
			if deadAt(t, p) {
				t.Errorf("%+v proves a death", p)
			}
		})
	}
}

// made creates an empty file and returns its identity.
func made(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fileID(info)
}

// A worker whose file was removed creates another. Its row leads to no free lock, not even before the new file is
// locked: were the old file closed by then, the new one could get its inode.
func TestAFileMadeAgainHasAnotherInode(t *testing.T) {
	t.Parallel()
	mine, _ := joined(t)
	p := placeOf(t, mine)
	if err := os.Remove(p.Path); err != nil {
		t.Fatal(err)
	}
	looked := false
	mine.opened = func() {
		if looked = true; deadAt(t, p) {
			t.Error("a worker that makes its file again is found dead")
		}
	}
	if err := mine.Hold(t.Context(), testNS, "w"); err != nil || !looked {
		t.Fatal(looked, err)
	}
	mine.opened = nil
	if again := placeOf(t, mine); again.File == p.File || deadAt(t, p) || deadAt(t, again) {
		t.Errorf("the new file is %+v, the old one was %+v", again, p)
	}
}

func TestMakePrivate(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		make func(dir string) error
		want string // expected in the error; "" expects success
	}{
		"a new folder":            {func(string) error { return nil }, ""},
		"one that is there":       {func(dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		"one that others read":    {func(dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		"one that others write":   {func(dir string) error { return os.Chmod(mkdir(dir), 0o777) }, "chmod 700"},
		"a file":                  {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a folder"},
		"a link to a folder":      {func(dir string) error { return os.Symlink(mkdir(dir+".d"), dir) }, "is not a folder"},
		"one without its parent":  {func(dir string) error { return os.Remove(filepath.Dir(dir)) }, "no such file"},
		"one of another user":     {func(dir string) error { return os.Chown(mkdir(dir), 12345, -1) }, "belongs to user 12345"},
		"one of other file modes": {func(dir string) error { return os.Chmod(mkdir(dir), 0o720) }, "has mode 0720"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			parent := filepath.Join(t.TempDir(), "run")
			if err := os.Mkdir(parent, 0o700); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(parent, "weaver")
			if err := c.make(dir); err != nil {
				if os.IsPermission(err) {
					return // only root can create such a folder
				}
				t.Fatal(err)
			}
			err := MakePrivate(dir)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func mkdir(dir string) string {
	_ = os.Mkdir(dir, 0o700)
	return dir
}
