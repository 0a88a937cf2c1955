package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goweaver/weaver/internal/pipeline"
)

// includes returns a reader for files that a pipeline includes. They must be below its folder or an allowed folder,
// after following symbolic links. path is the absolute path of the pipeline.
func includes(path string, allowed []string) pipeline.ReadFile {
	return func(given string) ([]byte, error) {
		file := given
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		full, err := filepath.EvalSymlinks(file)
		if err != nil {
			full = filepath.Clean(file) // a missing file has no links to follow
		}
		folders := append([]string{filepath.Dir(path)}, allowed...)
		if !slices.ContainsFunc(folders, func(dir string) bool { return isBelow(full, dir) }) {
			return nil, fmt.Errorf("it is outside %s, the folder of the pipeline: to include it, allow its folder with --include-dir DIR", filepath.Dir(path))
		}
		switch same, err := sameFile(file, path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errors.New("there is no such file")
		case err == nil && same:
			return nil, errors.New("it is this file itself")
		}
		src, err := readAtMost(full, maxRead)
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			err = pathErr.Err // the message already has the path
		}
		return src, err
	}
}

// isBelow reports whether a path without symbolic links is a folder or below it.
func isBelow(path, dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// sameFile reports whether two paths name the same file. It returns the error of the first path.
func sameFile(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two), nil
}
