// Package blobtest is the conformance suite for blob.Bucket, to be called by the test of an adapter.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/blob"
)

// Bucket is a bucket under test.
type Bucket struct {
	blob.Bucket
	// Damage changes the stored bytes of a key, somewhere after their beginning.
	Damage func(key string)
	// InMemory reports that the bucket holds its blobs in memory, so that the memory use of streams cannot be tested.
	InMemory bool
}

// Run tests the buckets returned by open, each of which must be empty. The test that calls it must not be parallel.
func Run(t *testing.T, open func(t *testing.T) Bucket) {
	cases := []struct {
		name string
		run  func(t *testing.T, b Bucket)
	}{
		{"a put is read back, whatever its size", sizes},
		{"a key without bytes is ErrNotFound, its delete is not an error", missing},
		{"what is no key is ErrKey", keys},
		{"a deleted key is free again", deletes},
		{"a put over another replaces it whole", replaces},
		{"a list has the keys with a prefix", lists},
		{"changed bytes are ErrCorrupt", corrupt},
		{"a failed upload leaves nothing", failedUpload},
		{"a cancelled upload leaves nothing", cancelledUpload},
		{"a cancelled read ends with the context's error", cancelledRead},
		{"many put and get one key at once", concurrent},
	}
	// Run alone, because it counts allocations.
	t.Run("large_bytes_are_streamed", func(t *testing.T) { streams(t, open(t)) })
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

func put(t testing.TB, b Bucket, key, text string) {
	t.Helper()
	if err := b.Put(t.Context(), key, strings.NewReader(text)); err != nil {
		t.Fatalf("Put(%s): %v", key, err)
	}
}

func get(t testing.TB, b Bucket, key string) string {
	t.Helper()
	got, err := read(t.Context(), b, key)
	if err != nil {
		t.Fatalf("Get(%s): %v", key, err)
	}
	return got
}

func read(ctx context.Context, b Bucket, key string) (string, error) {
	r, err := b.Get(ctx, key)
	if err != nil {
		return "", err
	}
	got, err := io.ReadAll(r)
	return string(got), errors.Join(err, r.Close())
}

func wantFree(t testing.TB, b Bucket, key string) {
	t.Helper()
	if _, err := b.Get(t.Context(), key); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get(%s) = %v, want ErrNotFound", key, err)
	}
	if got := list(t, b, ""); slices.Contains(got, key) {
		t.Errorf("List has %s", key)
	}
}

func list(t testing.TB, b Bucket, prefix string) []string {
	t.Helper()
	var keys []string
	err := b.List(t.Context(), prefix, func(i blob.Info) bool {
		if i.Stored <= 0 || i.Modified.IsZero() {
			t.Errorf("List: %+v has no size or no time", i)
		}
		keys = append(keys, i.Key)
		return true
	})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	slices.Sort(keys)
	return keys
}

func sizes(t *testing.T, b Bucket) {
	for i, n := range []int{0, 1, 31, 32, 33, 4 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		for j, text := range []string{strings.Repeat("a", n), string(noise(n))} {
			key := fmt.Sprintf("ns/%d-%d", i, j)
			put(t, b, key, text)
			if got := get(t, b, key); got != text {
				t.Errorf("%d bytes: %d came back, or others", n, len(got))
			}
		}
	}
}

// noise returns incompressible bytes.
func noise(n int) []byte {
	p := make([]byte, n)
	(&generator{}).fill(p)
	return p
}

// generator generates the same bytes each time.
type generator struct{ x uint64 }

func (g *generator) fill(p []byte) {
	for i := range p {
		g.x = g.x*6364136223846793005 + 1442695040888963407
		p[i] = byte(g.x >> 56)
	}
}

func missing(t *testing.T, b Bucket) {
	wantFree(t, b, "ns/none")
	if err := b.Delete(t.Context(), "ns/none"); err != nil {
		t.Errorf("Delete of a key without bytes: %v", err)
	}
}

func keys(t *testing.T, b Bucket) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/.", ".a", "A", "a b", "a\x00b", "a\\b", "ä", "a:b", strings.Repeat("a", 513),
	} {
		if err := b.Put(t.Context(), key, strings.NewReader("x")); !errors.Is(err, blob.ErrKey) {
			t.Errorf("Put(%q) = %v, want ErrKey", key, err)
		}
		if _, err := b.Get(t.Context(), key); !errors.Is(err, blob.ErrKey) {
			t.Errorf("Get(%q) = %v, want ErrKey", key, err)
		}
		if err := b.Delete(t.Context(), key); !errors.Is(err, blob.ErrKey) {
			t.Errorf("Delete(%q) = %v, want ErrKey", key, err)
		}
	}
	if got := list(t, b, ""); len(got) > 0 {
		t.Errorf("List = %v, want nothing", got)
	}
	for _, key := range []string{"a", "a.b/c-d_e/0", "a.d"} {
		put(t, b, key, key)
		if got := get(t, b, key); got != key {
			t.Errorf("Get(%q) = %q", key, got)
		}
	}
}

func deletes(t *testing.T, b Bucket) {
	put(t, b, "ns/a", "x")
	if err := b.Delete(t.Context(), "ns/a"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	wantFree(t, b, "ns/a")
	put(t, b, "ns/a", "y")
	if got := get(t, b, "ns/a"); got != "y" {
		t.Errorf("Get = %q, want y", got)
	}
}

func replaces(t *testing.T, b Bucket) {
	put(t, b, "ns/a", strings.Repeat("long", 1000))
	put(t, b, "ns/a", "short")
	if got := get(t, b, "ns/a"); got != "short" {
		t.Errorf("Get = %.20q…, want short", got)
	}
}

func lists(t *testing.T, b Bucket) {
	for _, key := range []string{"one/a", "one/b", "two/a"} {
		put(t, b, key, "x")
	}
	if got, want := list(t, b, "one/"), []string{"one/a", "one/b"}; !slices.Equal(got, want) {
		t.Errorf("List(one/) = %v, want %v", got, want)
	}
	if got := list(t, b, ""); len(got) != 3 {
		t.Errorf("List() = %v, want all", got)
	}
	n := 0
	if err := b.List(t.Context(), "", func(blob.Info) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("List went on after false: %d calls, %v", n, err)
	}
}

func corrupt(t *testing.T, b Bucket) {
	for i, text := range []string{"short", strings.Repeat("long enough to be compressed ", 10_000), string(noise(200 << 10))} {
		key := fmt.Sprintf("ns/%d", i)
		put(t, b, key, text)
		b.Damage(key)
		if _, err := read(t.Context(), b, key); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%d bytes, one of them changed: %v, want ErrCorrupt", len(text), err)
		}
	}
}

var errUpload = errors.New("the connection broke")

func failedUpload(t *testing.T, b Bucket) {
	for _, n := range []int{0, 10, 300 << 10} {
		r := io.MultiReader(bytes.NewReader(noise(n)), broken{})
		if err := b.Put(t.Context(), "ns/half", r); !errors.Is(err, errUpload) {
			t.Errorf("Put of what breaks after %d bytes = %v, want the reader's error", n, err)
		}
		wantFree(t, b, "ns/half")
	}
	if got := list(t, b, ""); len(got) > 0 {
		t.Errorf("List = %v, want nothing", got)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errUpload }

func cancelledUpload(t *testing.T, b Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	r := io.MultiReader(bytes.NewReader(noise(300<<10)), hook(cancel), bytes.NewReader(noise(300<<10)))
	if err := b.Put(ctx, "ns/half", r); !errors.Is(err, context.Canceled) {
		t.Errorf("Put with a context that ends = %v, want context.Canceled", err)
	}
	wantFree(t, b, "ns/half")
}

// hook is an empty reader that calls a function.
type hook func()

func (h hook) Read([]byte) (int, error) {
	h()
	return 0, io.EOF
}

func cancelledRead(t *testing.T, b Bucket) {
	put(t, b, "ns/a", string(noise(4<<20)))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := b.Get(ctx, "ns/a")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) || errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("a read whose context ended = %v, want context.Canceled, and not ErrCorrupt", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func concurrent(t *testing.T, b Bucket) {
	text := strings.Repeat("the same bytes ", 20_000)
	put(t, b, "ns/a", text)
	errs := make(chan error)
	const n = 8
	for range n {
		go func() { errs <- b.Put(t.Context(), "ns/a", strings.NewReader(text)) }()
		go func() {
			got, err := read(t.Context(), b, "ns/a")
			if err == nil && got != text {
				err = fmt.Errorf("read %d bytes, want %d", len(got), len(text))
			}
			errs <- err
		}()
	}
	for range 2 * n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := list(t, b, ""); len(got) != 1 {
		t.Errorf("List = %v, want one key", got)
	}
}

// streams counts the allocations of a put and a get: far fewer bytes than their content.
func streams(t *testing.T, b Bucket) {
	if b.InMemory {
		return
	}
	const size, most = 32 << 20, 8 << 20
	before := allocated()
	if err := b.Put(t.Context(), "ns/large", &stream{left: size}); err != nil {
		t.Fatal(err)
	}
	r, err := b.Get(t.Context(), "ns/large")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != size || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got := allocated() - before; got > most {
		t.Errorf("%d MiB in and out allocated %d MiB, want at most %d", size>>20, got>>20, most>>20)
	}
}

// stream returns slightly compressible bytes.
type stream struct {
	g    generator
	left int
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), s.left)]
	s.g.fill(p[:len(p)/2])
	s.left -= len(p)
	return len(p), nil
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
