package browser

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

var note = weaver.Define[string, string]("example.notes.keep.v1")

// program opens the files of a program, as Run does.
func program(t *testing.T, path string) (*files, *sqlite.DB, *weaver.Engine) {
	t.Helper()
	f := &files{path: path, blobs: path + ".blobs"}
	if err := f.settle(); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	eng, err := weaver.New(db, weaver.Config{
		Handlers: []weaver.Handler{note.Handler(func(_ context.Context, s string) (string, error) { return s, nil })},
		Bucket:   blob.Dir(f.blobs), Plugins: []weaver.Plugin{schema.Plugin()}, InlineLimit: 1 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, db, eng
}

// run1 runs a task with a large value, which is in the bucket.
func run1(t *testing.T, eng *weaver.Engine) weaver.TaskID {
	t.Helper()
	h, err := note.Enqueue(t.Context(), eng.Client, strings.Repeat("x", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.ID()
}

// A restore that is killed after any of its writes is complete after the next start, or has changed nothing.
func TestRestore(t *testing.T) {
	t.Parallel()
	f, db, eng := program(t, filepath.Join(t.TempDir(), "a.db"))
	id := run1(t, eng)
	orders, _ := order.Of(db)
	want, err := order.Orders{}.Parse([]byte(`{"order_id":"o","instrument":"BTC-JPY","side":"BUY","qty":"1","time_in_force":"GTC","idempotency_key":"k","requested_at":"2026-01-02T03:04:05Z"}`), time.Now())
	if err == nil {
		_, err = orders.AcceptOrders(t.Context(), eng.Client.Namespace(), nil, want.New(order.Orders{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	f.routes(mux, db, eng, nil)
	got := httptest.NewRecorder()
	mux.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/browser/backup", nil))
	if got.Code != http.StatusOK {
		t.Fatal(got.Code, got.Body)
	}
	backup := got.Body.Bytes()
	refused := httptest.NewRecorder()
	mux.ServeHTTP(refused, httptest.NewRequest(http.MethodPost, "/browser/restore", nil))
	if refused.Code != http.StatusConflict || !strings.Contains(refused.Body.String(), "stop it") {
		t.Errorf("a restore on a machine: %d %s", refused.Code, refused.Body)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "b.db")
	f, db, eng = program(t, path)
	if err := f.stage(httptest.NewRequest(http.MethodPost, "/browser/restore", bytes.NewReader(backup)), eng); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string // of the staged files
	err = filepath.WalkDir(f.staged(""), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	whole := os.DirFS(filepath.Dir(path))
	copied := func() *files {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, whole); err != nil {
			t.Fatal(err)
		}
		return &files{path: filepath.Join(dir, "b.db"), blobs: filepath.Join(dir, "b.db.blobs")}
	}
	for kept := range len(names) + 1 {
		f := copied()
		f.killed = func() error { // a kill after so many moves
			if kept--; kept < 0 {
				return errKilled
			}
			return nil
		}
		if err := f.settle(); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		_, db, eng := program(t, f.path)
		out, err := eng.Client.Get(t.Context(), id)
		if err != nil || len(out.Output) < 100_000 {
			t.Errorf("the restored task has %d bytes: %v", len(out.Output), err)
		}
		orders, _ := order.Of(db)
		if o, err := orders.GetOrder(t.Context(), eng.Client.Namespace(), "k"); err != nil || !o.Row.Held {
			t.Errorf("the unsent order of a backup is held %v, %v", o.Row.Held, err)
		}
		if _, err := os.Stat(f.staged("")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the upload is left: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}

	f = copied()
	if err := os.Remove(f.staged(complete)); err != nil { // killed while it was uploaded
		t.Fatal(err)
	}
	_, db, eng = program(t, f.path)
	if got, err := eng.Client.Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after half of an upload the task is %v, %v", got, err)
	}
	if exists(f.staged("")) {
		t.Error("half of an upload is left")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

var errKilled = errors.New("killed")

// Only a backup replaces the files.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	f, db, eng := program(t, filepath.Join(t.TempDir(), "a.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	packed := func(names ...string) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range names {
			if _, err := z.Create(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for says, upload := range map[string][]byte{
		"want the ZIP file":     []byte("hello"),
		"has no database":       packed("folder/a.db"),
		`has "a.db" and "b.db"`: packed("a.db", "b.db"),
		"a.db.blobs/../../evil": packed("a.db", "a.db.blobs/../../evil"),
		"cannot be restored":    append([]byte("SQLite format 3\x00"), make([]byte, 4096)...),
	} {
		err := f.stage(httptest.NewRequest(http.MethodPost, "/browser/restore", bytes.NewReader(upload)), eng)
		if !errors.As(err, new(badFile)) || !strings.Contains(err.Error(), says) {
			t.Errorf("an upload: %v, want %q", err, says)
		}
		if exists(f.staged("")) {
			t.Errorf("%s: the upload is left", says)
		}
	}
	full := httptest.NewRecorder()
	refuse(full, &fs.PathError{Op: "write", Path: "a.db.restore/upload.zip", Err: syscall.ENOSPC})
	if full.Code != http.StatusInsufficientStorage || !strings.Contains(full.Body.String(), "no space left") {
		t.Errorf("no space for an upload: %d %s", full.Code, full.Body)
	}
	run1(t, eng)
	if err := f.stage(httptest.NewRequest(http.MethodPost, "/browser/restore", strings.NewReader("hello")), eng); !errors.Is(err, errHasTasks) {
		t.Errorf("a program with tasks: %v", err)
	}
}
