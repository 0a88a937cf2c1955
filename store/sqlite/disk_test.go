package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/faults/disktest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The tests in disk_*_test.go play a script of calls over a failing disk (internal/faults/disktest).
// Afterwards they compare the callers' answers with the file as a plain reader finds it.
// WEAVER_DISK=full plays them in full size.

// diskFull asks for the full size.
var diskFull = os.Getenv("WEAVER_DISK") == "full"

// of returns the number of points to play: short, or full in the full size.
func of(short, full int) int {
	if diskFull {
		return full
	}
	return max(1, short/diskShare)
}

// spread returns the distance between played points.
func spread(all, played int) int { return max(1, all/max(1, played)) }

// some returns one in share of a list, or the whole list in the full size.
func some(list []int, share int) (part []int) {
	if diskFull {
		return list
	}
	for i := 0; i < len(list); i += share {
		part = append(part, list[i])
	}
	return part
}

// inBubble runs a test under the fake clock, so that IDs, times and therefore all pages are
// the same in each run.
func inBubble(t *testing.T, play func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, play)
}

// blank is a migrated, empty database with the user's table, made once.
var blank = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "weaver-disk")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "blank.db")
	ctx := context.Background()
	err = opened(ctx, path, func(db *sqlite.DB) error {
		if err := db.Migrate(ctx); err != nil {
			return err
		}
		return db.Exec(ctx, "CREATE TABLE orders (note TEXT PRIMARY KEY)")
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// rig is a database on a failing disk, with the ledger of its callers' answers.
type rig struct {
	*testing.T
	disk *disktest.Disk
	hist *disktest.History
	db   *sqlite.DB
	path string
	led  ledger
	ids  *task.IDs
	rng  *seeded
}

// newRig opens a new database on a new disk, which records a history.
func newRig(t *testing.T, opts ...sqlite.Option) *rig {
	t.Helper()
	image, err := blank()
	if err != nil {
		t.Fatalf("make an empty database: %v", err)
	}
	r := emptyRig(t, image)
	if err := r.open(opts...); err != nil {
		t.Fatalf("open on the test's disk: %v", err)
	}
	return r
}

// emptyRig returns a rig whose database is not open yet. Without an image there is no file.
func emptyRig(t *testing.T, image []byte) *rig {
	t.Helper()
	r := &rig{T: t, disk: disktest.New(), path: filepath.Join(t.TempDir(), "w.db"), rng: newSeeded(1)}
	r.ids = task.NewIDs(r.rng)
	t.Cleanup(r.disk.Close)
	if image != nil {
		if err := os.WriteFile(r.path, image, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.hist, err = r.disk.Record(r.path, r.path+"-wal"); err != nil {
		t.Fatal(err)
	}
	r.led.now = r.hist.Len
	t.Cleanup(r.close)
	return r
}

// open opens the rig's database.
func (r *rig) open(opts ...sqlite.Option) (err error) {
	r.db, err = sqlite.Open(r.Context(), r.path, append([]sqlite.Option{sqlite.VFS(r.disk.Name())}, opts...)...)
	if err == nil {
		r.db.Whole, r.db.Part = 3, 2 // a job of the script is stored in parts
	}
	return err
}

// close closes the database, on a working disk.
func (r *rig) close() {
	r.disk.Fail(nil)
	if r.db == nil {
		return
	}
	if err := r.db.Close(); err != nil {
		r.Errorf("Close on a disk that works: %v", err)
	}
	r.db = nil
}

// seeded is a small repeatable source of bytes.
type seeded struct {
	mu sync.Mutex
	n  uint64
}

func newSeeded(seed uint64) *seeded { return &seeded{n: seed} }

// Read implements io.Reader.
func (s *seeded) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range p {
		s.n = s.n*6364136223846793005 + 1442695040888963407
		p[i] = byte(s.n >> 56)
	}
	return len(p), nil
}

// leaseID returns a lease ID that is the same in each run.
func (r *rig) leaseID() (id task.LeaseID) {
	_, _ = r.rng.Read(id[:]) // never fails
	return id
}

// found is the content of a file for a plain reader.
type found struct {
	snap   *store.Snapshot
	orders map[string]bool
	tasks  map[task.ID]*task.Task
}

// look opens the file with SQLite's ordinary file layer and reads everything. An error
// concerns the file. violations are the findings of store.Check and integrity_check.
func look(t testing.TB, path string) (f *found, violations []string, err error) {
	t.Helper()
	// This handle writes nothing durable, so it does not wait for the disk.
	db, err := sqlite.Open(t.Context(), path, sqlite.Synchronous(sqlite.SyncOff))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	return read(t, db)
}

// view reads through the rig's own handle.
func (r *rig) view() (*found, []string, error) { return read(r, r.db) }

func read(t testing.TB, db *sqlite.DB) (f *found, violations []string, err error) {
	f = &found{orders: make(map[string]bool), tasks: make(map[task.ID]*task.Task)}
	if f.snap, err = db.Snapshot(t.Context(), fixNS); err != nil {
		return nil, nil, err
	}
	for i := range f.snap.Tasks {
		f.tasks[f.snap.Tasks[i].ID] = &f.snap.Tasks[i]
	}
	for _, v := range store.Check(f.snap) {
		violations = append(violations, "store.Check: "+v.String())
	}
	notes, err := column(t, db.DB(), "SELECT note FROM orders")
	if err != nil {
		return nil, nil, err
	}
	for _, n := range notes {
		f.orders[n] = true
	}
	lines, err := column(t, db.DB(), "PRAGMA integrity_check")
	if err != nil {
		return nil, nil, err
	}
	if len(lines) != 1 || lines[0] != "ok" {
		violations = append(violations, fmt.Sprintf("integrity_check: %v", lines))
	}
	return f, violations, nil
}

func column(t testing.TB, db *sql.DB, query string) (values []string, err error) {
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// lookAt is look for the files of an image, in their own folder.
func lookAt(t testing.TB, dir string, image map[string][]byte) (*found, []string, error) {
	t.Helper()
	path := filepath.Join(dir, "image.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for name, b := range image {
		suffix := ""
		if filepath.Ext(name) != ".db" {
			suffix = name[len(name)-len("-wal"):]
		}
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return look(t, path)
}

// hour is a lease that outlives every test.
const hour = time.Hour
