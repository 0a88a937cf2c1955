package disktest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/faults/disktest"
)

// bench is a database in WAL mode on a disk, with its history.
type bench struct {
	*testing.T
	disk *disktest.Disk
	hist *disktest.History
	path string
	db   *sqlite3.Conn
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, disk: disktest.New(), path: filepath.Join(t.TempDir(), "b.db")}
	t.Cleanup(b.disk.Close)
	b.db = b.open()
	b.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (v TEXT)")
	var err error
	if b.hist, err = b.disk.Record(b.path, b.path+"-wal"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) open() *sqlite3.Conn {
	b.Helper()
	c, err := sqlite3.Open("file:" + b.path + "?vfs=" + b.disk.Name())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return c
}

func (b *bench) exec(sql string) {
	b.Helper()
	if err := b.db.Exec(sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// fill returns a value that fills several pages.
func fill(v string) string {
	return fmt.Sprintf("INSERT INTO t SELECT '%s' || hex(zeroblob(10000))", v)
}

// image returns the files at a position.
func (b *bench) image(at int, s disktest.Survival, drops bool) map[string][]byte {
	p := b.hist.Platter(disktest.Flaws{DropsPages: drops})
	p.Advance(at)
	return p.Image(s, rand.New(rand.NewPCG(1, uint64(at))))
}

func (b *bench) files() map[string][]byte {
	b.Helper()
	all := make(map[string][]byte)
	for _, p := range []string{b.path, b.path + "-wal"} {
		data, err := os.ReadFile(p)
		if err != nil {
			b.Fatal(err)
		}
		all[p] = data
	}
	return all
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}

func TestImages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(fill("a"))
	synced := b.hist.Len()
	after := b.files()
	for s := range disktest.Survivals {
		if !same(b.image(synced, s, false), after) {
			t.Errorf("after a sync, %v: the image is not what the files are", s)
		}
	}
	b.exec("PRAGMA synchronous=OFF; " + fill("b"))
	end := b.hist.Len()
	if !same(b.image(end, disktest.Synced, false), after) {
		t.Error("what was not synced is in the image of what was")
	}
	if !same(b.image(end, disktest.Arrived, false), b.files()) {
		t.Error("the image of everything is not what the files are")
	}
	for _, s := range []disktest.Survival{disktest.Ordered, disktest.Torn} {
		if got := b.image(end, s, false); same(got, after) || same(got, b.files()) {
			t.Errorf("%v: nothing is torn", s)
		}
	}
}

// The changes of a failed sync become durable with the next sync, or never.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.disk.Fail(func(op disktest.Op) *disktest.Fault {
		if op.Kind == disktest.Sync && op.N == 1 {
			return &disktest.Fault{Err: syscall.EIO}
		}
		return nil
	})
	if err := b.db.Exec(fill("a")); !errors.Is(err, sqlite3.IOERR_FSYNC) {
		t.Fatalf("a commit whose sync fails: %v", err)
	}
	if n := b.disk.Faults(); n != 1 {
		t.Errorf("%d faults, want 1", n)
	}
	failed := b.files()
	b.exec("PRAGMA wal_checkpoint(PASSIVE)") // syncs the log without writing it
	if got := b.image(b.hist.Len(), disktest.Synced, false)[b.path+"-wal"]; !bytes.Equal(got, failed[b.path+"-wal"]) {
		t.Error("the next sync did not bring what the failed one was about")
	}
	if got := b.image(b.hist.Len(), disktest.Arrived, true)[b.path+"-wal"]; bytes.Equal(got, failed[b.path+"-wal"]) {
		t.Error("what a failed sync dropped is on the disk")
	}
}

// A deleted file can come back until the folder is synced; the first sync of a new log
// does that.
func TestDeletedFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec("PRAGMA journal_mode=DELETE; " + fill("a") + "; PRAGMA journal_mode=WAL; " + fill("b"))
	for _, flaws := range []disktest.Flaws{{}, {ForgetsNames: true}} {
		p := b.hist.Platter(flaws)
		p.Advance(b.hist.Len())
		_, back := p.Image(disktest.Synced, nil)[b.path+"-journal"]
		if back != flaws.ForgetsNames {
			t.Errorf("%+v: the journal that was deleted is there: %v", flaws, back)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(fill("a"))
	before := b.files()[b.path+"-wal"]
	b.disk.Fail(func(op disktest.Op) *disktest.Fault {
		if op.Kind == disktest.Write && op.N == 2 && op.Log && op.Grows {
			return &disktest.Fault{Err: sqlite3.FULL, Keep: 1000}
		}
		return nil
	})
	if err := b.db.Exec(fill("b")); !errors.Is(err, sqlite3.FULL) {
		t.Fatalf("a commit whose write fails: %v", err)
	}
	if got := b.files()[b.path+"-wal"]; len(got) != len(before)+24+1000 {
		t.Errorf("the log grew by %d bytes, want a frame's header and 1000", len(got)-len(before))
	}
	if n := b.disk.Count(disktest.Write); n != 2 {
		t.Errorf("%d writes were counted, want 2", n)
	}
	b.disk.Fail(nil)
	b.exec(fill("c"))
	if !same(b.image(b.hist.Len(), disktest.Arrived, false), b.files()) {
		t.Error("the history does not know what a failed write left")
	}
}

// Connections share the log's index, also with connections through the system's VFS.
func TestConnectionsSeeEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	second := b.open()
	plain, err := sqlite3.Open(b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	for i := range 3 {
		b.exec(fill("a"))
		for name, c := range map[string]*sqlite3.Conn{"a second one": second, "a plain one": plain} {
			st, _, err := c.Prepare("SELECT count(*) FROM t")
			if err != nil {
				t.Fatal(err)
			}
			if !st.Step() || st.ColumnInt(0) != i+1 {
				t.Errorf("%s sees %d rows, want %d (%v)", name, st.ColumnInt(0), i+1, st.Err())
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
