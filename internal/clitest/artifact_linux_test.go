package clitest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// maxStreaming is the maximum memory in KiB for storing or reading a gigabyte.
const maxStreaming = 64 << 10

// A gigabyte is stored in and read from the bucket with little memory, compressed or not.
func TestE2EArtifactGigabyte(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	const size = 1 << 30
	for name, source := range map[string]string{"zeros": "/dev/zero", "noise": "/dev/urandom"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gate := filepath.Join(dir, "gate")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "big.yaml"), fmt.Sprintf(`name: big
tasks:
  make: {run: "head -c %d %s | tee big.bin | sha256sum >sum", artifacts: big.bin}
  wait: {run: "cat gate", needs: [make]}
`, size, source))
			in := start(t, dir, "run", "big.yaml")
			in.await("wait: started")
			peak := resident(t, in.cmd.Process.Pid)
			write(t, gate, "go on\n")
			if code := in.end(); code != 0 {
				t.Fatalf("exit code %d: %s%s", code, in.stdout.String(), in.stderr.String())
			}
			if peak == 0 || peak > maxStreaming {
				t.Errorf("in: it used %d KiB of memory, want at most %d", peak, maxStreaming)
			}
			if err := os.Remove(filepath.Join(dir, "big.bin")); err != nil {
				t.Fatal(err)
			}
			out := start(t, dir, "artifact", "get", "big/make/big.bin")
			sum := sha256.New()
			if _, err := io.CopyN(sum, out.out, size-1<<20); err != nil { // the last piece waits in the pipe
				t.Fatalf("%v: %s", err, out.stderr.String())
			}
			if peak = resident(t, out.cmd.Process.Pid); peak == 0 || peak > maxStreaming {
				t.Errorf("out: it used %d KiB of memory, want at most %d", peak, maxStreaming)
			}
			n, err := io.Copy(sum, out.out)
			if err != nil || n != 1<<20 {
				t.Errorf("the last piece has %d bytes, %v", n, err)
			}
			if err := out.cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, out.stderr.String())
			}
			if got, want := hex.EncodeToString(sum.Sum(nil)), read(t, filepath.Join(dir, "sum")); !strings.HasPrefix(want, got) {
				t.Errorf("its hash is %s, want %s", got, want)
			}
		})
	}
}

// A run is killed while it stores an artifact, or after storing and before recording it. The next run continues: no
// data is lost, and a collector removes all leftovers.
func TestRunIsKilledWhileItPuts(t *testing.T) {
	t.Parallel()
	data := make([]byte, 8<<20)
	noise := rand.NewChaCha8([32]byte{1})
	_, _ = noise.Read(data)
	sum := sha256.Sum256(data)
	shard := filepath.Join("weaver.db.blobs", "default", hex.EncodeToString(sum[:1])+".d")
	for name, event := range map[string]uint32{"while it writes": syscall.IN_MODIFY, "when it has its name": syscall.IN_MOVED_TO} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "data.bin"), string(data))
			write(t, filepath.Join(dir, "p.yaml"), `name: p
tasks:
  make: {run: "echo run >>runs; cp data.bin out.bin", artifacts: out.bin}
`)
			if err := os.MkdirAll(filepath.Join(dir, shard), 0o700); err != nil {
				t.Fatal(err)
			}
			happens := watch(t, filepath.Join(dir, shard), event)
			first := start(t, dir, "run", "p.yaml")
			happens()
			first.signal(syscall.SIGKILL)
			if code := first.end(); code != -1 {
				t.Fatalf("exit code %d: it was not killed", code)
			}
			list := start(t, dir, "artifact", "ls", "p")
			if code := list.end(); code != 0 {
				t.Errorf("ls: exit code %d: %s", code, list.stderr.String())
			}
			recorded := !strings.Contains(list.stdout.String(), "no artifacts")
			if recorded && event == syscall.IN_MODIFY {
				t.Errorf("there are artifacts before they are written:\n%s", list.stdout.String())
			}
			show := start(t, dir, "task", "show", "p/make")
			show.end()
			ended := strings.Contains(show.stdout.String(), "It succeeded") // before the signal arrived: the next run begins a new job
			want := "run\nrun\n"
			if recorded && !ended {
				want = "run\n"
			}
			second := start(t, dir, "run", "p.yaml")
			if code := second.end(); code != 0 {
				t.Fatalf("exit code %d:\n%s%s", code, second.stdout.String(), second.stderr.String())
			}
			if got := read(t, filepath.Join(dir, "runs")); got != want {
				t.Errorf("the command ran: %q, want %q", got, want)
			}
			gc := start(t, dir, "artifact", "gc", "--unused-for", "0s")
			if code := gc.end(); code != 0 {
				t.Errorf("gc: exit code %d: %s", code, gc.stderr.String())
			}
			get := start(t, dir, "artifact", "get", "p/make/out.bin", "--to", "got.bin")
			if code := get.end(); code != 0 {
				t.Fatalf("get: exit code %d: %s", code, get.stderr.String())
			}
			if !bytes.Equal([]byte(read(t, filepath.Join(dir, "got.bin"))), data) {
				t.Error("other bytes came back")
			}
			if left := filesBelow(t, filepath.Join(dir, "weaver.db.blobs")); len(left) != 1 {
				t.Errorf("the bucket has %v, want the artifact alone", left)
			}
			if doctor := start(t, dir, "doctor", "--deep"); doctor.end() != 0 || !strings.Contains(doctor.stdout.String(), "all bytes of 1 blob") {
				t.Errorf("doctor: %s%s", doctor.stdout.String(), doctor.stderr.String())
			}
		})
	}
}

// watch returns a function that waits for an event in a folder.
func watch(t *testing.T, dir string, what uint32) (happens func()) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	})
	if _, err := syscall.InotifyAddWatch(fd, dir, what); err != nil {
		t.Fatal(err)
	}
	return func() {
		buf := make([]byte, 4<<10)
		for {
			_, err := syscall.Read(fd, buf)
			if err == nil {
				return
			}
			if !errors.Is(err, syscall.EINTR) {
				t.Fatal(err)
			}
		}
	}
}

// filesBelow lists the files of a folder except the ID file of a bucket.
func filesBelow(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != ".bucket-id" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
