package attemptlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// partAfter returns the offset of the first file of a log that begins after an offset; ok is false if there is no
// such file.
func partAfter(first string, offset int64) (next int64, ok bool, err error) {
	entries, err := os.ReadDir(moreDir(first))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	for _, e := range entries {
		at, err := strconv.ParseInt(e.Name(), 10, 64)
		if err == nil && at > offset && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok, nil
}

// Reader reads the log of one attempt, even while it is written: after io.EOF a later Read returns the bytes added
// since. It is not safe for concurrent use.
type Reader struct {
	first string
	file  *os.File
	begun int64  // the offset of file in the log
	at    int64  // the offset of the next byte
	note  []byte // a line of the reader itself, returned first
	ended bool   // the last byte returned was a line break
}

// Open returns a reader at the beginning of an attempt's log. It returns fs.ErrNotExist if there is no log: the
// attempt wrote no output, ran on another machine, or its log was removed (see Folder.Removed).
func (f *Folder) Open(a Attempt) (*Reader, error) {
	r := &Reader{first: f.path(a), ended: true}
	file, err := os.Open(r.first)
	if err != nil {
		return nil, err
	}
	r.file = file
	return r, nil
}

// Read implements io.Reader. In place of missing bytes it returns one line with their number. Its errors are file
// errors and io.EOF.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		if len(r.note) > 0 {
			n := copy(p, r.note)
			r.note = r.note[n:]
			return n, nil
		}
		n, err := r.file.Read(p)
		if n > 0 {
			r.at += int64(n)
			r.ended = p[n-1] == '\n'
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		more, err := r.goOn()
		if err != nil {
			return 0, err
		}
		if !more {
			return 0, io.EOF
		}
	}
}

// goOn opens the next file, if there is one.
func (r *Reader) goOn() (more bool, err error) {
	next, more, err := partAfter(r.first, r.begun)
	if err != nil || !more {
		return false, err
	}
	// The writer completes a file before it creates the next. The part of this file read so far may lack its end.
	if rest, err := r.file.Stat(); err != nil || rest.Size() > r.at-r.begun {
		return err == nil, err
	}
	file, err := os.Open(partName(r.first, next))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // just removed: look again
	}
	if err != nil {
		return false, err
	}
	if err := r.file.Close(); err != nil {
		return false, errors.Join(err, file.Close())
	}
	if missing := next - r.at; missing > 0 {
		line := fmt.Sprintf("[… %d bytes of this output were not kept]\n", missing)
		if !r.ended {
			line = "\n" + line
		}
		r.note, r.ended = []byte(line), true
	}
	r.file, r.begun, r.at = file, next, next
	return true, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
