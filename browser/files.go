package browser

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/sealorder"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// files are the files of a program: the database, and the folder of its blobs. A backup is a ZIP file with both under
// their names, so it can be unpacked beside a program on a machine, and a ZIP file made there can be restored in a tab.
type files struct {
	path  string // of the database
	blobs string // the folder; "" if the program has another bucket
	mu    sync.Mutex

	killed func() error // of tests: after each move
}

// staged is the folder of an upload. It is complete when it has the file `complete`; the next start of the program
// then puts its files in place.
func (f *files) staged(name string) string { return filepath.Join(f.path+".restore", name) }

const (
	upload   = "upload.zip"
	database = "database"
	complete = "complete"
)

// settle is called before the database is opened. It puts a complete upload in place, and removes an incomplete one
// and a backup that was not sent. It continues after a kill in its middle.
func (f *files) settle() error {
	if err := os.RemoveAll(f.path + ".backup"); err != nil {
		return err
	}
	if !exists(f.staged(complete)) {
		return os.RemoveAll(f.staged(""))
	}
	if exists(f.staged(database)) {
		for _, suffix := range []string{"-journal", "-wal", "-shm", ""} {
			if err := os.Remove(f.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := f.move(f.staged(database), f.path); err != nil {
			return err
		}
	}
	// The blobs of the database that was replaced stay: they have other names.
	from := f.staged("blobs")
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		to := filepath.Join(f.blobs, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return f.move(path, to)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(f.staged(""))
}

func (f *files) move(from, to string) error {
	if err := os.Rename(from, to); err != nil || f.killed == nil {
		return err
	}
	return f.killed()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// watch returns ErrGone when the database was deleted.
func (f *files) watch(ctx context.Context, db *sqlite.DB) error {
	every := time.NewTicker(500 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			if errors.Is(db.Gone(), store.ErrGone) {
				return ErrGone
			}
		}
	}
}

// routes adds the requests that weaver.js sends for backup, restore and check. restored is called when a restored
// database is to be opened.
func (f *files) routes(mux *http.ServeMux, db *sqlite.DB, eng *weaver.Engine, restored func()) {
	mux.HandleFunc("GET /browser/backup", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, f.backup(r.Context(), w, db))
	})
	mux.HandleFunc("POST /browser/restore", func(w http.ResponseWriter, r *http.Request) {
		err := errOnMachine
		if inTab {
			err = f.stage(r, eng)
		}
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
			restored()
		}
		refuse(w, err)
	})
	mux.HandleFunc("GET /browser/check", func(w http.ResponseWriter, r *http.Request) {
		found, err := check(r.Context(), db, eng.Client.Namespace())
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			err = json.NewEncoder(w).Encode(found)
		}
		refuse(w, err)
	})
}

// refuse answers with a problem (RFC 9457), if there is one.
func refuse(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, errHasTasks), errors.Is(err, errOnMachine):
		status = http.StatusConflict
	case errors.Is(err, store.ErrFull):
		status = http.StatusInsufficientStorage
	case errors.Is(err, syscall.ENOSPC):
		status, err = http.StatusInsufficientStorage, fmt.Errorf("%w: free space on the disk, or prune tasks that have ended, and try again", err)
	case errors.As(err, new(badFile)):
		status = http.StatusUnprocessableEntity
	}
	w.Header().Del("Content-Disposition")
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)                                                                                                    // without effect in the middle of a backup, whose end is then missing
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": err.Error()}) // the page has gone
}

// backup writes a ZIP file with a copy of the database at one instant and, after it, the blobs: those of its rows are
// in the folder already.
func (f *files) backup(ctx context.Context, w http.ResponseWriter, db *sqlite.DB) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, name := f.path+".backup", filepath.Base(f.path)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // settle removes the rest
	if _, err := db.Backup(ctx, filepath.Join(dir, name)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", strings.TrimSuffix(name, filepath.Ext(name))+".zip"))
	z := zip.NewWriter(w)
	if err := add(z, name, filepath.Join(dir, name)); err != nil {
		return err
	}
	if f.blobs != "" && exists(f.blobs) {
		err := filepath.WalkDir(f.blobs, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			err = add(z, name+".blobs"+filepath.ToSlash(strings.TrimPrefix(path, f.blobs)), path)
			if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return z.Close()
}

func add(z *zip.Writer, name, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

// badFile means that a file cannot be restored.
type badFile struct{ error }

// errOnMachine: other processes may have the file open there.
var errOnMachine = errors.New("the program runs on a machine: stop it, remove its database with the -wal and -shm files, and unpack the backup in that folder")

var errHasTasks = errors.New("the program has tasks, which a restore would delete: download a backup of them, and restore with {replace: true}")

// stage makes an upload ready to be put in place. The upload is a backup, or a database alone.
func (f *files) stage(r *http.Request, eng *weaver.Engine) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Query().Get("replace") != "true" {
		o, err := eng.Client.Overview(r.Context(), store.OverviewRequest{Parts: store.OverviewCounts})
		if err != nil {
			return err
		}
		for _, c := range o.Counts.States {
			if c.N > 0 {
				return errHasTasks
			}
		}
	}
	if err := os.RemoveAll(f.staged("")); err != nil {
		return err
	}
	if err := os.Mkdir(f.staged(""), 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(f.staged("")))
		}
	}()
	if err := save(f.staged(upload), r.Body); err != nil {
		return err
	}
	if err := f.unpack(); err != nil {
		return err
	}
	if err := os.Remove(f.staged(upload)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := accept(r.Context(), f.staged(database), eng.Client.Namespace()); err != nil {
		return badFile{fmt.Errorf("this file cannot be restored: %w", err)}
	}
	return save(f.staged(complete), strings.NewReader(""))
}

// unpack turns the upload into the database and its blobs.
func (f *files) unpack() (err error) {
	file, err := os.Open(f.staged(upload))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	const sqliteFile = "SQLite format 3\x00"
	head := make([]byte, len(sqliteFile))
	if _, err := io.ReadFull(file, head); err == nil && string(head) == sqliteFile {
		return save(f.staged(database), io.MultiReader(bytes.NewReader(head), file))
	}
	z, err := zip.NewReader(file, info.Size())
	if err != nil {
		return badFile{fmt.Errorf("want the ZIP file of a backup, or a database of Weaver: %w", err)}
	}
	name := ""
	for _, e := range z.File { // the database is the only file outside of folders
		if e.Mode().IsRegular() && !strings.ContainsAny(e.Name, `/\`) {
			if name != "" {
				return badFile{fmt.Errorf("this ZIP file has %q and %q: want one database, and the folder of its blobs", name, e.Name)}
			}
			name = e.Name
		}
	}
	if name == "" {
		return badFile{errors.New("this ZIP file has no database: want one beside the folder of its blobs")}
	}
	for _, e := range z.File {
		to := f.staged(database)
		if e.Name != name {
			below, found := strings.CutPrefix(e.Name, name+".blobs/")
			if !found || !fs.ValidPath(below) || strings.Contains(below, `\`) || !e.Mode().IsRegular() {
				if e.Mode().IsDir() {
					continue
				}
				return badFile{fmt.Errorf("this ZIP file has %q: want %s and the folder %[2]s.blobs", e.Name, name)}
			}
			if f.blobs == "" {
				continue
			}
			to = filepath.Join(f.staged("blobs"), filepath.FromSlash(below))
		}
		from, err := e.Open()
		if err != nil {
			return badFile{fmt.Errorf("read %s of this ZIP file: %w", e.Name, err)}
		}
		if err := errors.Join(save(to, from), from.Close()); err != nil {
			if errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
				return badFile{fmt.Errorf("%s of this ZIP file is damaged: %w", e.Name, err)}
			}
			return err
		}
	}
	return nil
}

// save writes a new file, which is on the disk when it returns.
func save(path string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// accept checks a database before it replaces another, migrates it, ends the leases of the workers that it was copied
// from, and holds its unsettled orders.
func accept(ctx context.Context, path, namespace string) (err error) {
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if db.Capsule() != nil {
		return errors.New("it is a capsule: open it in the dashboard")
	}
	var text string
	if err := db.DB().QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&text); err != nil {
		return err
	}
	if text != "ok" {
		return fmt.Errorf("it is damaged: %s", text)
	}
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	by, reason := "local", "restored from a backup"
	res, err := db.Operate(ctx, namespace, store.Restored{EndLeases: true, Audit: store.Audit{By: by, Reason: reason}})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		return err
	}
	_, err = sealorder.Hold(ctx, db, namespace, order.Audit{By: by, Reason: reason})
	return err
}

// checked is the answer of a check.
type checked struct {
	Tasks      int      `json:"tasks"`
	Violations []string `json:"violations"` // of the invariants of the store, as `weaver doctor` shows them
}

func check(ctx context.Context, st store.Store, namespace string) (checked, error) {
	found := checked{Violations: []string{}}
	err := st.Scan(ctx, namespace, func(p *store.Part) error {
		if p.Of == store.PartOfTasks {
			found.Tasks += len(p.Snapshot.Tasks)
		}
		for _, v := range store.CheckPart(p) {
			found.Violations = append(found.Violations, v.String())
		}
		return nil
	})
	return found, err
}
