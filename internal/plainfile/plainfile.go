// Package plainfile opens files that a user named. Reading a pipe or device can block forever, so Open refuses them
// at once.
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

// ErrNotRegular is the cause of the error for a pipe, device, socket or folder.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file or the null device for reading, and refuses everything else. The open itself never
// blocks.
func Open(path string) (*os.File, error) { return open(path, false) }

// OpenStream is Open for a file that the process reads once for its user. It also accepts descriptors from the user,
// such as /dev/stdin and the shell's <(command).
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

// Check returns an error unless the file is a regular file or the null device.
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

// handedOver reports whether a path names a descriptor of this process.
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
