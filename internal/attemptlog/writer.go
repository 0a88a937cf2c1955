package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/goweaver/weaver/internal/filelock"
)

// Writer writes the log of one attempt. Its methods are safe for concurrent use.
type Writer struct {
	folder *Folder
	first  string // path

	mu    sync.Mutex
	total int64    // bytes passed to Write
	head  *os.File // the first file, locked while it is open
	last  *os.File // the file being written, which may be head
	at    int64    // the offset of last in the log
	size  int64    // of last
	past  string   // the file before last, unless that is head
	err   error    // a write error: later bytes are not kept
}

// Writer returns a writer for an attempt. The first byte creates its file and replaces an older log of that attempt.
// The caller must call Close.
func (f *Folder) Writer(a Attempt) *Writer { return &Writer{folder: f, first: f.path(a)} }

// Write appends to the log. After an error it drops the rest of the log, calls Config.Warn, and returns the error
// from this and every later call.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += int64(len(p))
	if w.err == nil {
		w.err = w.write(p)
		if w.err != nil {
			w.folder.warn(w.err)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *Writer) write(p []byte) error {
	for len(p) > 0 {
		if w.head == nil {
			if err := w.begin(); err != nil {
				return err
			}
		}
		room := w.folder.cfg.AttemptBytes / 2 // the first file gets half the limit; the end has two files of a quarter each
		if w.last != w.head {
			room /= 2
		}
		room -= w.size
		if room <= 0 {
			if err := w.goOn(); err != nil {
				return err
			}
			continue
		}
		n, err := w.last.Write(p[:min(int64(len(p)), room)])
		w.size += int64(n)
		w.folder.grew(int64(n))
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// begin creates the first file.
func (w *Writer) begin() error {
	f, err := w.create(w.first)
	if errors.Is(err, fs.ErrNotExist) { // its folder does not exist yet, or was just removed because it was empty
		if err = w.folder.cfg.as().MkdirAll(filepath.Dir(w.first)); err == nil {
			f, err = w.create(w.first)
		}
	}
	if err != nil {
		return err
	}
	// The file is empty until it is locked, and an empty file is not removed.
	if err := w.take(f); err != nil {
		return errors.Join(err, filelock.Close(f))
	}
	w.head, w.last = f, f
	w.folder.grew(perFile)
	return nil
}

// take locks a new first file. It clears the log of an attempt with the same number, which a store restored from a
// backup leaves behind.
func (w *Writer) take(f *os.File) error {
	free, err := filelock.Try(f)
	free = free || !filelock.Supported
	if err != nil || !free {
		return &fs.PathError{Op: "lock", Path: w.first, Err: errors.Join(err, errLockedUnless(free))}
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	return errors.Join(os.RemoveAll(moreDir(w.first)), f.Truncate(0))
}

func errLockedUnless(free bool) error {
	if free {
		return nil
	}
	return errLocked
}

// goOn starts the next file and removes the one before the last.
func (w *Writer) goOn() error {
	at := w.at + w.size
	f, err := w.more(at)
	if err != nil {
		return err
	}
	w.folder.grew(perFile)
	if w.last != w.head {
		if w.past != "" {
			if err := os.Remove(w.past); err != nil {
				return errors.Join(err, f.Close())
			}
			w.folder.grew(-w.size - perFile)
		}
		w.past = w.last.Name()
		if err := w.last.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	w.last, w.at, w.size = f, at, 0
	return nil
}

// more creates the file that continues the log from an offset.
func (w *Writer) more(at int64) (*os.File, error) {
	if err := w.folder.cfg.as().Mkdir(moreDir(w.first)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return w.create(partName(w.first, at))
}

func (w *Writer) create(path string) (*os.File, error) {
	return w.folder.cfg.as().Open(path, os.O_WRONLY)
}

// Close ends the log. It returns the errors of closing files.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == nil {
		return nil
	}
	var errs []error
	if w.total > w.at+w.size {
		// The rest could not be written. The name of an empty file tells readers the length of the log, if the file
		// can be created.
		if f, err := w.more(w.total); err == nil {
			errs = append(errs, f.Close())
		}
	}
	if w.last != w.head {
		errs = append(errs, w.last.Close())
	}
	errs = append(errs, filelock.Close(w.head))
	w.head, w.last = nil, nil
	return errors.Join(errs...)
}
