package capsule

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// DB is the part of sqlite.DB that capsules need.
type DB interface {
	store.Store
	DB() *sql.DB
	Capsule() []byte
	Close() error
}

// Open opens a database file, as sqlite.Open does.
type Open func(ctx context.Context, path string) (DB, error)

// Write writes a capsule into a new file, or with replace in the place of another, and returns its size in bytes. The
// file is complete once it has its name: it is made in a folder next to it, NAME.partial-…, which a killed process
// leaves behind. Error: fs.ErrExist.
func Write(ctx context.Context, open Open, path string, replace bool, c *Content) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return 0, fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".partial-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made := filepath.Join(dir, "capsule")
	if err := write(ctx, open, filepath.Join(dir, "store"), made, c); err != nil {
		return 0, err
	}
	if size, err = settle(made); err != nil {
		return 0, err
	}
	// Crash here: the capsule is complete, and has no name yet.
	if replace {
		return size, os.Rename(made, path)
	}
	err = os.Link(made, path) // never replaces a file, even one made in between
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(made, path) // a file system without hard links
	}
	return size, err
}

// write makes a database and copies it, compact and without a log, into the file made.
func write(ctx context.Context, open Open, path, made string, c *Content) (err error) {
	db, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	tx, err := db.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err = Insert(ctx, tx, c); err == nil {
		err = Mark(ctx, tx, &c.Info)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return vacuum(ctx, db.DB(), made)
}

// vacuum copies a database. Small pages make the many empty tables small.
func vacuum(ctx context.Context, db *sql.DB, into string) (err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err = c.ExecContext(ctx, "PRAGMA page_size=1024"); err == nil {
		_, err = c.ExecContext(ctx, "VACUUM INTO ?", into)
	}
	return err
}

// settle makes the bytes of the file durable, and lets only its owner read them.
func settle(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := errors.Join(f.Chmod(0o600), f.Sync()); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Bucket returns the bytes of the artifacts in a capsule.
func Bucket(db DB) blob.Bucket { return bucket{db.DB()} }

// bucket reads the table weaver_capsule_blobs.
type bucket struct{ db *sql.DB }

var errReadOnly = fmt.Errorf("%w: the bytes in a capsule do not change", store.ErrReadOnly)

// Put implements blob.Bucket.
func (bucket) Put(context.Context, string, io.Reader) error { return errReadOnly }

// Delete implements blob.Bucket.
func (bucket) Delete(context.Context, string) error { return errReadOnly }

// Get implements blob.Bucket.
func (b bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := blob.CheckKey(key); err != nil {
		return nil, err
	}
	id, err := task.ParseID(strings.ToUpper(key[strings.LastIndexByte(key, '-')+1:]))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", blob.ErrNotFound, key)
	}
	var data []byte
	err = b.db.QueryRowContext(ctx, `SELECT data FROM weaver_capsule_blobs WHERE blob_id = ?`, id[:]).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: the capsule was made without the bytes of blob %s", blob.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// List implements blob.Bucket. Nothing in a capsule is to be collected.
func (bucket) List(context.Context, string, func(blob.Info) bool) error { return nil }

// Opened is a copy of a capsule, in a folder of its own.
type Opened struct {
	DB
	Info
	Content *Content

	dir string
}

// Close removes the copy.
func (o *Opened) Close() error { return errors.Join(o.DB.Close(), os.RemoveAll(o.dir)) }

// OpenCopy reads a capsule. It works on a copy in a temporary folder, so that the file stays as it is, and may be one
// that cannot be written. A capsule of an older version is migrated there. Errors: ErrNotCapsule, ErrNewer,
// store.ErrNotDatabase, store.ErrNewerSchema, and those of reading the file.
func OpenCopy(ctx context.Context, open Open, path string) (o *Opened, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the capsule %s: %w", path, err)
		}
	}()
	dir, err := os.MkdirTemp("", "weaver-capsule-*")
	if err != nil {
		return nil, err
	}
	o = &Opened{dir: dir}
	if err = o.open(ctx, open, path); err == nil {
		return o, nil
	}
	if o.DB != nil {
		err = errors.Join(err, o.DB.Close())
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

func (o *Opened) open(ctx context.Context, open Open, path string) error {
	made := filepath.Join(o.dir, filepath.Base(path))
	if err := copyFile(made, path); err != nil {
		return err
	}
	db, err := open(ctx, made)
	if errors.Is(err, store.ErrNotDatabase) {
		return fmt.Errorf("the file is damaged or cut off: get it again: %w", err)
	}
	if err != nil {
		return err
	}
	o.DB = db
	if o.Info, err = ParseInfo(o.Capsule()); err != nil {
		return err
	}
	var said string
	if err := o.DB.DB().QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: it is damaged: %s", store.ErrNotDatabase, said)
	}
	if err := o.Ready(ctx); errors.Is(err, store.ErrNotMigrated) {
		err = o.Migrate(ctx)
		if err != nil {
			return err
		}
	} else if errors.Is(err, store.ErrNewerSchema) {
		return fmt.Errorf("%w: read it with Weaver %s or later: %w", ErrNewer, o.Weaver, err)
	} else if err != nil {
		return err
	}
	client, err := weaver.NewClient(o.DB, weaver.ClientConfig{Namespace: Namespace})
	if err != nil {
		return err
	}
	if o.Content, err = Read(ctx, client, o.Info); err != nil {
		return err
	}
	return o.readBlobs(ctx)
}

// readBlobs reads the bytes of the artifacts.
func (o *Opened) readBlobs(ctx context.Context) error {
	b := Bucket(o.DB)
	seen := map[task.ID]bool{}
	for i := range o.Content.Tasks {
		for _, a := range o.Content.Tasks[i].Artifacts {
			if seen[a.Blob.ID] || len(a.LinkValue) > 0 {
				continue
			}
			seen[a.Blob.ID] = true
			r, err := b.Get(ctx, blob.Key(Namespace, a.Blob.SHA256, a.Blob.ID.String()))
			if errors.Is(err, blob.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			data, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil {
				return err
			}
			o.Content.Blobs = append(o.Content.Blobs, Blob{a.Blob, data})
		}
	}
	return nil
}

// header begins every file of SQLite.
const header = "SQLite format 3\x00"

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	begin := make([]byte, len(header))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != header {
		return fmt.Errorf("%w: it does not begin as a file of SQLite: %w", ErrNotCapsule, store.ErrNotDatabase)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.MultiReader(bytes.NewReader(begin), in))
	return errors.Join(err, out.Close())
}
