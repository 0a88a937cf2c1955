package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/goweaver/weaver/internal/owned"
)

// Folder is a Bucket in a folder of the file system, which several processes may use at once. Use Dir.
type Folder struct {
	path   string
	codecs []Codec
	as     owned.As
}

// Dir returns a Bucket that keeps its bytes in files below a folder, which the first Put creates. A file is
// written in the target folder under a name that begins with a dot, synced and renamed. A crash leaves such files,
// and Sweep removes them. The last part of a key is the name of the file, and its first two characters name a
// folder above it, so that no folder grows with the number of keys.
func Dir(path string, codecs ...Codec) *Folder { return &Folder{path: path, codecs: codecs} }

// OwnedAs returns a copy of the bucket whose new files and folders get the owner, group and mode of a file, such as
// the database next to the folder. A run by root then does not lock out the owner of the database. Without it, new
// entries get the owner and group of the folder.
func (d *Folder) OwnedAs(file string) *Folder {
	own := *d
	own.as = owned.As{Path: file}
	return &own
}

// owner returns the owner of new files and folders.
func (d *Folder) owner() owned.As {
	if d.as.Path != "" {
		return d.as
	}
	return owned.As{Path: d.path, OwnerOnly: true}
}

var (
	_ Bucket  = (*Folder)(nil)
	_ Checker = (*Folder)(nil)
	_ Sweeper = (*Folder)(nil)
)

// Check implements Checker: the folder may not exist yet.
func (d *Folder) Check() error {
	switch {
	case d == nil:
		return errors.New("the *blob.Folder is nil: make one with blob.Dir")
	case d.path == "":
		return errors.New("blob.Dir was given no path: name a folder")
	case strings.ContainsRune(d.path, 0):
		return fmt.Errorf("blob.Dir was given the path %q, which has a NUL: name a folder", d.path)
	}
	if err := checkCodecs(d.codecs); err != nil {
		return err
	}
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the first Put creates it
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("the folder %s of the bucket cannot be made: a part of its path is a file", d.path)
	case err != nil:
		return fmt.Errorf("the folder of the bucket cannot be used: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file: name a folder for the bucket", d.path)
	}
	return nil
}

// Path returns the folder.
func (d *Folder) Path() string { return d.path }

// Codecs returns the codecs of the folder; see CodecsOf.
func (d *Folder) Codecs() []Codec { return d.codecs }

// file returns the path of a key.
func (d *Folder) file(key string) string {
	dir, name := path.Split(key)
	return filepath.Join(d.path, filepath.FromSlash(dir), name[:min(2, len(name))]+".d", name)
}

// Put implements Bucket.
func (d *Folder) Put(ctx context.Context, key string, r io.Reader) (err error) {
	if err := CheckKey(key); err != nil {
		return err
	}
	defer func() { err = d.failure("put", key, err) }()
	place := d.file(key)
	if err := d.makeFolders(filepath.Dir(place)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(place), tempPrefix+"*")
	if err != nil {
		return err
	}
	d.owner().Give(f)
	// Crash here, or before the rename: the file remains until Sweep.
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	if err := Encode(f, &ctxReader{ctx, r}, d.codecs...); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := os.Rename(f.Name(), place); err != nil {
		return err
	}
	// The file is in its place and stays there even if the following fails.
	if serr := syncFolder(filepath.Dir(place)); serr != nil {
		return errors.Join(serr, os.Remove(place))
	}
	return nil
}

// tempPrefix begins the names of files that are being written. No key begins with it.
const tempPrefix = ".put-"

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

// makeFolders creates a folder and its parents, each durably in its parent.
func (d *Folder) makeFolders(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if above := filepath.Dir(dir); above != dir {
		if err := d.makeFolders(above); err != nil {
			return err
		}
	}
	if err := d.owner().Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// Get implements Bucket.
func (d *Folder) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	f, err := os.Open(d.file(key))
	if err != nil {
		return nil, d.failure("get", key, err)
	}
	r, err := Decode(ReadStored(ctx, f), d.codecs...)
	if err != nil {
		return nil, d.failure("get", key, err)
	}
	return &namedReader{r, func(err error) error { return d.failure("read", key, err) }}, nil
}

// Delete implements Bucket.
func (d *Folder) Delete(_ context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := os.Remove(d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.failure("delete", key, err)
}

// List implements Bucket.
func (d *Folder) List(ctx context.Context, prefix string, each func(Info) bool) error {
	err := d.walk(ctx, func(key string, e fs.DirEntry) error {
		if name := path.Base(key); name[0] == '.' || !strings.HasPrefix(key, prefix) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !each(Info{key, info.Size(), info.ModTime()}) {
			err = fs.SkipAll
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list blobs in %s: %w", d.path, err)
	}
	return nil
}

// walk calls each for every file below the folder, with its key.
func (d *Folder) walk(ctx context.Context, each func(key string, e fs.DirEntry) error) error {
	return filepath.WalkDir(d.path, func(file string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // deleted meanwhile, or the folder was never made
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !e.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(d.path, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		return each(path.Join(path.Dir(path.Dir(rel)), path.Base(rel)), e)
	})
}

// failure wraps an error with the operation, the key and a hint.
func (d *Folder) failure(verb, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && verb == "get":
		return fmt.Errorf("%w: no file %s", ErrNotFound, d.file(key))
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrCodec):
		return fmt.Errorf("%w: %s the file %s", err, verb, d.file(key))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%s blob %s: %w: %s: free some there, or name another folder: %w", verb, key, ErrFull, d.path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s blob %s: this user may not use the folder %s of the bucket: change its owner or its mode: %w", verb, key, d.path, err)
	}
	return fmt.Errorf("%s blob %s in %s: %w", verb, key, d.path, err)
}
