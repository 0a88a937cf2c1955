package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Identified is implemented by a Bucket with an identity that stays when its bytes are moved. The store records the
// identity of the bucket with its blobs.
type Identified interface {
	// Identity returns the bucket's ID and its location for messages. If there is no ID, create makes one; without
	// create the ID is "".
	Identity(ctx context.Context, create bool) (id, place string, err error)
}

var _ Identified = (*Folder)(nil)

// Identity implements Identified: the ID is in a file of the folder and moves or is copied with it.
func (d *Folder) Identity(_ context.Context, create bool) (id, place string, err error) {
	place = d.path
	if abs, aerr := filepath.Abs(d.path); aerr == nil {
		place = abs
	}
	if id, err = d.identity(); id != "" || err != nil || !create {
		return id, place, err
	}
	if err = d.makeIdentity(); err == nil {
		id, err = d.identity() // of the first process
	}
	return id, place, err
}

func (d *Folder) identityFile() string { return filepath.Join(d.path, "id.d", ".bucket-id") }

// identity reads the ID, or returns "" if there is no ID.
func (d *Folder) identity() (string, error) {
	b, err := os.ReadFile(d.identityFile())
	switch id := strings.TrimSpace(string(b)); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the ID of the bucket: %w", err)
	case len(id) < 16 || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("the file %s should hold the ID of the bucket, and is damaged: restore it from a backup, or delete it and accept the bucket anew", d.identityFile())
	default:
		return id, nil
	}
}

// makeIdentity writes an ID unless another process was faster. Crash before the link: the file remains until Sweep.
func (d *Folder) makeIdentity() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the ID of the bucket: %w", err)
		}
	}()
	place := d.identityFile()
	if err := d.makeFolders(filepath.Dir(place)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(place), tempPrefix+"*")
	if err != nil {
		return err
	}
	d.owner().Give(f)
	_, err = f.WriteString(rand.Text() + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Link(f.Name(), place); errors.Is(err, fs.ErrExist) {
			err = nil
		} else if err != nil { // a file system without links
			return os.Rename(f.Name(), place)
		}
	}
	if err = errors.Join(err, os.Remove(f.Name())); err == nil {
		err = syncFolder(filepath.Dir(place))
	}
	return err
}
