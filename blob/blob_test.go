package blob_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/blobtest"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blobtest.Bucket {
		m := blob.NewMemory()
		return blobtest.Bucket{Bucket: m, Damage: func(key string) { m.Damage(key) }, InMemory: true}
	})
}

func TestDir(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Bucket {
		dir := t.TempDir()
		return blobtest.Bucket{Bucket: blob.Dir(dir), Damage: func(key string) { damage(t, dir, key) }}
	})
}

// damage changes a byte in the middle of a blob's file.
func damage(t *testing.T, dir, key string) {
	t.Helper()
	name := file(t, dir, filepath.Base(key))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 0x10
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func file(t *testing.T, dir, name string) (found string) {
	t.Helper()
	for _, f := range files(t, dir) {
		if filepath.Base(f) == name {
			return f
		}
	}
	t.Fatalf("no file %s below %s", name, dir)
	return ""
}

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A truncated file, or a file in another format, is corrupt.
func TestDirTruncated(t *testing.T) {
	t.Parallel()
	for _, keep := range []int64{0, 4, 9, 20, 42} {
		dir := t.TempDir()
		b := blob.Dir(dir)
		if err := b.Put(t.Context(), "ns/a", strings.NewReader("some bytes that are kept")); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file(t, dir, "a"), keep); err != nil {
			t.Fatal(err)
		}
		r, err := b.Get(t.Context(), "ns/a")
		if err == nil {
			_, err = io.ReadAll(r)
			if cerr := r.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if !errors.Is(err, blob.ErrCorrupt) || !strings.Contains(err.Error(), file(t, dir, "a")) {
			t.Errorf("a file cut to %d bytes: %v, want ErrCorrupt that names the file", keep, err)
		}
	}
}

// Sweep removes the files of processes that died in a Put once they are old, and no files in use.
func TestDirSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := blob.Dir(dir)
	if err := b.Put(t.Context(), "ns/a", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(file(t, dir, "a")), ".put-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Sweep(t.Context(), 1<<40); n != 0 || err != nil {
		t.Errorf("Sweep of new files = %d, %v", n, err)
	}
	if n, err := b.Sweep(t.Context(), 0); n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("files: %v, want that of the key", got)
	}
}

// The error for a folder that cannot be written contains its path and a hint.
func TestDirNotWritable(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := blob.Dir(place).Put(t.Context(), "a", strings.NewReader("x"))
	if err == nil || !strings.Contains(err.Error(), place) {
		t.Errorf("Put below a file = %v, want an error that names it", err)
	}
}

// The error for a missing codec contains its name.
func TestCodecMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := blob.Dir(dir, rot{}).Put(t.Context(), "a", strings.NewReader("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Dir(dir).Get(t.Context(), "a"); !errors.Is(err, blob.ErrCodec) || !strings.Contains(err.Error(), "rot") {
		t.Errorf("Get = %v, want ErrCodec that names rot", err)
	}
	r, err := blob.Dir(dir, rot{}).Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(file(t, dir, "a")); err != nil || strings.Contains(string(data), "hello") {
		t.Errorf("stored %q, %v, want other bytes", data, err)
	}
}

// rot is a codec that flips a bit of each byte.
type rot struct{}

func (rot) Name() string                               { return "rot" }
func (rot) Wants([]byte) bool                          { return true }
func (rot) Writer(w io.Writer) (io.WriteCloser, error) { return rotWriter{w}, nil }
func (rot) Reader(r io.Reader) (io.ReadCloser, error)  { return io.NopCloser(rotReader{r}), nil }

type rotWriter struct{ w io.Writer }

func (r rotWriter) Write(p []byte) (int, error) { return r.w.Write(flip(p)) }
func (r rotWriter) Close() error                { return nil }

type rotReader struct{ r io.Reader }

func (r rotReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	copy(p, flip(p[:n]))
	return n, err
}

func flip(p []byte) []byte {
	q := make([]byte, len(p))
	for i := range p {
		q[i] = p[i] ^ 0x20
	}
	return q
}
