package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/pipeline"
)

// includes reads the files that a pipeline includes. path is that of the pipeline,
// absolute.
func includes(path string) pipeline.ReadFile {
	return func(given string) ([]byte, error) {
		file := given
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		switch same, err := sameFile(file, path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errors.New("there is no such file")
		case err == nil && same:
			return nil, errors.New("it is this file itself")
		}
		src, err := readAtMost(file, maxRead)
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			err = pathErr.Err // the message has the path
		}
		return src, err
	}
}

// sameFile reports whether two paths lead to one file. Its error is that of the
// first one.
func sameFile(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two), nil
}
