// Package plainfile opens files that a person named. Reading a pipe or a device waits for
// whoever writes to it, possibly for ever, so these are refused at once.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotRegular is the cause of the error for a pipe, a device, a socket or a folder.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a file for reading. What is not a regular file is refused, but the null device,
// which is empty. The open itself does not wait either.
func Open(path string) (*os.File, error) { return open(path, false) }

// OpenStream is Open for a file that the process reads once, for its user: descriptors that
// the user handed over, as /dev/stdin and the shell's <(command), are read too.
func OpenStream(path string) (*os.File, error) { return open(path, true) }

func open(path string, streams bool) (*os.File, error) {
	if streams && handedOver(path) {
		return os.Open(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Check refuses what is not a regular file, but the null device.
func Check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
		return nil
	}
	if info.IsDir() {
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is %s, %w", kind(info.Mode()), ErrNotRegular)}
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// handedOver reports whether a path is a descriptor of this process.
func handedOver(path string) bool {
	path = filepath.Clean(path)
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// Read reads a whole file that Open opens.
func Read(path string) ([]byte, error) { return read(Open(path)) }

// ReadStream reads a whole file that OpenStream opens.
func ReadStream(path string) ([]byte, error) { return read(OpenStream(path)) }

func read(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(f)
	return raw, errors.Join(err, f.Close())
}
