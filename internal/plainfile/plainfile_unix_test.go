//go:build unix

package plainfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/plainfile"
)

// Open refuses pipes, devices and folders without waiting; the null device reads as empty.
func TestOpen_RefusesWhatWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link, plain := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "plain")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(fifo, link), os.WriteFile(plain, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		fifo: "a named pipe, not a regular file", link: "a named pipe, not a regular file", "/dev/zero": "a device, not a regular file",
	} {
		for _, read := range []func(string) ([]byte, error){plainfile.Read, plainfile.ReadStream} {
			if _, err := read(path); !errors.Is(err, plainfile.ErrNotRegular) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", path, err, want)
			}
		}
	}
	for path, want := range map[string]string{plain: "text", os.DevNull: ""} {
		if got, err := plainfile.Read(path); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := plainfile.Read(dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("got %v, want that it is a directory", err)
	}
	if _, err := plainfile.Read(filepath.Join(dir, "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want one that there is no file", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("handed over")
	_ = w.Close()
	given := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := plainfile.Read(given); !errors.Is(err, plainfile.ErrNotRegular) {
		t.Errorf("Read of a descriptor: %v", err)
	}
	if got, err := plainfile.ReadStream(given); err != nil || string(got) != "handed over" {
		t.Errorf("ReadStream of a descriptor: %q, %v", got, err)
	}
	_ = r.Close()
}
