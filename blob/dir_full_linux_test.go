package blob_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/blob"
)

// A file that cannot grow is treated like a full disk: Put returns an error with a hint, leaves nothing behind, and
// works again when there is space. The limit applies to a process, so the test runs in one.
func TestDirFull(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDirFullChild$")
	cmd.Env = append(os.Environ(), "BLOB_LIMITED="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDirFullChild(t *testing.T) {
	dir := os.Getenv("BLOB_LIMITED")
	if dir == "" {
		return // TestDirFull runs it
	}
	signal.Ignore(syscall.SIGXFSZ) // otherwise the first such write ends the process
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	b := blob.Dir(dir)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := b.Put(t.Context(), "ns/a", bytes.NewReader(data))
	if !errors.Is(err, blob.ErrFull) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "ns/a") {
		t.Errorf("Put = %v, want ErrFull that names the blob and the folder", err)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("it left %v", got)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), "ns/a", bytes.NewReader(data)); err != nil {
		t.Errorf("with room: %v", err)
	}
}
