//go:build unix

package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A file that lost its name takes no write, because acknowledged writes would be lost with it.
func TestFileIsGoneWhileOpen(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(path string) error{
		"deleted":      os.Remove,
		"moved":        func(path string) error { return os.Rename(path, path+".moved") },
		"log deleted":  func(path string) error { return os.Remove(path + "-wal") },
		"older copy":   func(path string) error { return os.Rename(path+".older", path) },
		"folder moved": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "w.db")
			f := fixtureOn(t, openFile(t, path))
			copyFile(t, path, path+".older")
			f.join("w")
			f.enqueue(2)
			c := f.claim("w", 1)[0]
			open := f.begin()
			if err := away(path); err != nil {
				t.Fatal(err)
			}
			f.db.OnCommit(func(func() error) error {
				t.Error("something was committed to the file that is gone")
				return nil
			})
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "deleted or replaced") {
					t.Errorf("%s: %v; want ErrUnavailable, and why", what, err)
				}
			}
			refused("Commit", open.Commit())
			_, err := f.db.Heartbeat(t.Context(), fixNS, store.HeartbeatRequest{Worker: "w", TTL: fixTTL})
			refused("Heartbeat", err)
			refused("Enqueue", f.submit(t.Context(), f.drafts(1)))
			_, err = f.db.Claim(t.Context(), fixNS, fixClaim("w", 1))
			refused("Claim", err)
			_, err = f.db.Finish(t.Context(), fixNS, store.Finish{Lease: c.Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage("1")})
			refused("Finish", err)
			_, err = f.db.StepTx(t.Context(), fixNS, store.Record{Lease: c.Lease, Step: &task.Step{Name: "s"}}, time.Minute,
				func(context.Context, store.Tx) (json.RawMessage, error) { return json.RawMessage("1"), nil })
			refused("StepTx", err)
			_, err = f.db.DB().BeginTx(t.Context(), nil)
			refused("BeginTx", err)
			_, err = f.db.DB().ExecContext(t.Context(), "CREATE TABLE mine (n)")
			refused("Exec", err)
			refused("Migrate", f.db.Migrate(t.Context()))
			refused("Ready", f.db.Ready(t.Context()))
			_, _, err = f.db.List(t.Context(), fixNS, store.Filter{})
			refused("List", err)
		})
	}
}

// A worker whose file is gone logs this every minute.
func TestWorkerSaysThatItsFileIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := fileFixture(t)
		log, stop := f.works(weaver.Config{})
		time.Sleep(65 * time.Second) // between two checks
		if text := log(); strings.Contains(text, "level") {
			t.Errorf("it logged\n%s", text)
		}
		if err := os.Rename(f.db.Path(), f.db.Path()+".moved"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if text := log(); strings.Count(text, `level=ERROR msg="the store cannot be used"`) != 3 || !strings.Contains(text, "deleted or replaced") {
			t.Errorf("in three minutes it logged\n%s", text)
		}
		if err := stop(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Run = %v; it cannot have left", err)
		}
	})
}

// A file that gets its name back accepts writes again.
func TestFileComesBack(t *testing.T) {
	t.Parallel()
	f := fileFixture(t)
	path := f.db.Path()
	kept := f.enqueue(1)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	says(t, f.submit(t.Context(), f.drafts(1)), store.ErrUnavailable)
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	f.sound(append(kept, f.enqueue(1)...)...)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// With two names a file would have two logs.
func TestOpenRefusesHardLinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.db")
	db := openOnce(t, path)
	shut(t, db)
	if err := os.Link(path, path+".second"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".second"} {
		_, err := sqlite.Open(t.Context(), name)
		says(t, err, store.ErrUnavailable, name, "2 names", "hard link")
	}
	if err := os.Remove(path + ".second"); err != nil {
		t.Fatal(err)
	}
	openFile(t, path)
}

// Two names of one file, one of them a symbolic link, are one database with one log and one
// folder of locks.
func TestSymlinksAreOneDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"data", "links"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, link := filepath.Join(dir, "data", "w.db"), filepath.Join(dir, "links", "linked.db")
	if err := os.Symlink("../data/w.db", link); err != nil { // to a missing file
		t.Fatal(err)
	}
	a := fixtureOn(t, openFile(t, link))
	if got := a.db.Path(); got != link {
		t.Errorf("Path() = %q, want the name that was given, %q", got, link)
	}
	b := fixtureOn(t, openFile(t, path))
	a.join("a")
	says(t, b.db.Join(t.Context(), fixNS, store.WorkerInfo{ID: "a", TTL: fixTTL}), store.ErrConflict) // its lock is seen
	ids := append(a.enqueue(1), b.enqueue(1)...)
	a.sound(ids...)
	left, err := os.ReadDir(filepath.Join(dir, "links"))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the link there are %v, %v; want nothing", left, err)
	}
	// Changing the link later does not affect processes that have the file open.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere.db"), link); err != nil {
		t.Fatal(err)
	}
	a.sound(append(ids, a.enqueue(1)...)...)
	a.join("later")
	if _, err := os.Stat(filepath.Join(dir, "elsewhere.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that the link leads to now was made: %v", err)
	}
}

// New files belong to their owner only. The permissions of an existing file apply to the files
// next to it.
func TestModesOfFiles(t *testing.T) {
	t.Parallel()
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	check := func(f *fixture, want fs.FileMode) {
		t.Helper()
		path := f.db.Path()
		f.join("w")
		f.enqueue(1)
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if got := mode(name); got != want {
				t.Errorf("%s has mode %v, want %v", filepath.Base(name), got, want)
			}
		}
		if got := mode(path + ".workers"); got != want|want>>2&0o111 {
			t.Errorf("the folder of locks has mode %v, the database %v", got, want)
		}
		locks, err := filepath.Glob(path + ".workers/*")
		if err != nil || len(locks) != 2 {
			t.Errorf("locks %v, %v; want one, and the file of the turns", locks, err)
		}
		for _, name := range locks {
			if got := mode(name); got != want {
				t.Errorf("%s has mode %v, want %v", name, got, want)
			}
		}
	}
	check(fileFixture(t), 0o600)

	shared := filepath.Join(t.TempDir(), "shared.db")
	db := openOnce(t, shared)
	shut(t, db) // the log is removed with it
	if err := os.Chmod(shared, 0o660); err != nil {
		t.Fatal(err)
	}
	_ = os.Chown(shared, 65534, 65534) // works as root
	check(fixtureOn(t, openFile(t, shared)), 0o660)
	owner := func(path string) uint32 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid
	}
	for _, name := range []string{shared + "-wal", shared + "-shm", shared + ".workers"} {
		if got, want := owner(name), owner(shared); got != want {
			t.Errorf("%s belongs to user %d, and the database to %d", filepath.Base(name), got, want)
		}
	}
}
