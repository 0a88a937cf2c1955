package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Sweep removes files of Puts that never completed because their process died: temporary files that were unchanged
// for the given time. It returns their number.
func (d *Folder) Sweep(ctx context.Context, unchanged time.Duration) (removed int, err error) {
	err = d.walk(ctx, func(key string, e fs.DirEntry) error {
		if !strings.HasPrefix(path.Base(key), tempPrefix) {
			return nil
		}
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) >= unchanged {
			dir, name := path.Split(key)
			err = d.removeTemp(dir, name)
			if err == nil {
				removed++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("sweep %s: %w", d.path, err)
	}
	return removed, nil
}

// removeTemp removes a temporary file from the shard that contains it.
func (d *Folder) removeTemp(dir, name string) error {
	found, err := filepath.Glob(filepath.Join(d.path, filepath.FromSlash(dir), "*.d", name))
	for _, f := range found {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}
