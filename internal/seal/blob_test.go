package seal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/zstd"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/task"
)

// raw is a bucket that stores bytes unchanged.
type raw struct {
	blob.Bucket
	stored []byte
	codecs []blob.Codec
}

func (r *raw) Codecs() []blob.Codec { return r.codecs }

func (r *raw) Put(_ context.Context, _ string, in io.Reader) (err error) {
	r.stored, err = io.ReadAll(in)
	return err
}

func open(t *testing.T, s *seal.Sealer, r *raw, b task.Blob) ([]byte, error) {
	t.Helper()
	rc, err := s.OpenBlob(t.Context(), r, b, io.NopCloser(bytes.NewReader(r.stored)))
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(rc)
	return got, errors.Join(err, rc.Close())
}

func newBlob(t *testing.T, s *seal.Sealer) task.Blob {
	t.Helper()
	name, err := s.BlobName(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	b := task.Blob{ID: task.NewIDs(nil).New(), SHA256: name}
	if !seal.IsBlob(b) || blob.CheckKey(blob.Key(ns, b.SHA256, b.ID.String())) != nil {
		t.Fatalf("the name %q is not one", name)
	}
	return b
}

func TestBlob(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1", "k2")
	s := sealer(t, k[0])
	b := newBlob(t, s)
	for _, codecs := range [][]blob.Codec{nil, {zstd.Codec()}} {
		for _, size := range []int{0, 1, 64<<10 - 100, 64 << 10, 64<<10 + 1, 300_000} {
			bucket := &raw{codecs: codecs}
			plain := bytes.Repeat([]byte("secret "), size/7+1)[:size]
			if err := s.PutBlob(t.Context(), bucket, "k", b, bytes.NewReader(plain)); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(bucket.stored, []byte("secret")) {
				t.Errorf("%d bytes: the secret is stored", size)
			}
			if codecs != nil && size > 200_000 && len(bucket.stored) > size/10 {
				t.Errorf("%d bytes are stored as %d: they were not compressed before they were sealed", size, len(bucket.stored))
			}
			if got, err := open(t, s, bucket, b); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes: opened %d, %v", size, len(got), err)
			}
			if got, err := open(t, sealer(t, k...), bucket, b); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes, after a change of the key: opened %d, %v", size, len(got), err)
			}
			if key, err := seal.KeyOf(bytes.NewReader(bucket.stored)); err != nil || key != "k1" {
				t.Errorf("KeyOf = %q, %v", key, err)
			}
			if _, err := open(t, sealer(t, k[1]), bucket, b); !errors.Is(err, codec.ErrNoKey) || errors.Is(err, blob.ErrCorrupt) || !strings.Contains(err.Error(), `"k1"`) {
				t.Errorf("without the key: %v", err)
			}
			if _, err := open(t, nil, bucket, b); !errors.Is(err, codec.ErrNoCodec) || !strings.Contains(err.Error(), `"k1"`) {
				t.Errorf("without a codec: %v", err)
			}
		}
	}
}

// pieces splits stored bytes after the first 8.
func pieces(t *testing.T, stored []byte) (all [][]byte) {
	t.Helper()
	for rest := stored[8:]; len(rest) > 0; {
		n := 2 + int(rest[1])
		n += 4 + int(binary.BigEndian.Uint32(rest[n:]))
		all, rest = append(all, rest[:n]), rest[n:]
	}
	return all
}

func TestBlobTampered(t *testing.T) {
	t.Parallel()
	s := sealer(t, keys(t, "k1")...)
	b := newBlob(t, s)
	good := &raw{}
	if err := s.PutBlob(t.Context(), good, "k", b, bytes.NewReader(make([]byte, 200_000))); err != nil {
		t.Fatal(err)
	}
	p := pieces(t, good.stored)
	if len(p) != 4 {
		t.Fatalf("%d pieces", len(p))
	}
	last := slices.Clone(p[2])
	last[0] = 1
	join := func(parts ...[]byte) []byte { return slices.Concat(append([][]byte{good.stored[:8]}, parts...)...) }
	cases := map[string][]byte{
		"cut at a piece":        join(p[0], p[1]),
		"cut, the end declared": join(p[0], p[1], last),
		"exchanged":             join(p[1], p[0], p[2], p[3]),
		"one is missing":        join(p[0], p[2], p[3]),
		"one comes twice":       join(p[0], p[0], p[1], p[2], p[3]),
		"something follows":     append(slices.Clone(good.stored), 0),
		"no magic":              good.stored[1:],
		"empty":                 {},
	}
	for i := 0; i < len(good.stored); i += 997 {
		changed := slices.Clone(good.stored)
		changed[i] ^= 0x40
		cases["byte changed"+string(rune('0'+i%10))] = changed
		cases["cut in a piece"+string(rune('0'+i%10))] = good.stored[:i]
	}
	for name, stored := range cases {
		got, err := open(t, s, &raw{stored: stored}, b)
		if !errors.Is(err, codec.ErrChanged) && !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, codec.ErrNoKey) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := open(t, s, good, newBlobNamed(b)); !errors.Is(err, codec.ErrChanged) {
		t.Errorf("in the place of another blob: %v", err)
	}
}

// newBlobNamed returns b with another name.
func newBlobNamed(b task.Blob) task.Blob {
	end := "1"
	if strings.HasSuffix(b.SHA256, end) {
		end = "2"
	}
	b.SHA256 = b.SHA256[:len(b.SHA256)-1] + end
	return b
}

// A read error of the source does not count as its end.
func TestBlobSourceFails(t *testing.T) {
	t.Parallel()
	s := sealer(t, keys(t, "k1")...)
	b := newBlob(t, s)
	for _, failure := range []error{errors.New("gone"), io.ErrUnexpectedEOF} {
		source := io.MultiReader(bytes.NewReader(make([]byte, 100_000)), &failing{failure})
		if err := s.PutBlob(t.Context(), &raw{}, "k", b, source); err == nil {
			t.Errorf("%v: it was put", failure)
		}
	}
	if err := s.PutBlob(t.Context(), &refusing{}, "k", b, bytes.NewReader(make([]byte, 1<<20))); !errors.Is(err, blob.ErrFull) {
		t.Errorf("a full bucket: %v", err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

type refusing struct{ blob.Bucket }

func (*refusing) Put(context.Context, string, io.Reader) error { return blob.ErrFull }

// sink is a bucket that discards its bytes.
type sink struct{ blob.Bucket }

func (sink) Put(_ context.Context, _ string, in io.Reader) error {
	_, err := io.Copy(io.Discard, in)
	return err
}

// zeros reads as n zero bytes.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	z.n -= n
	return int(n), nil
}

func TestBlobStreams(t *testing.T) {
	s := sealer(t, keys(t, "k1")...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if err := s.PutBlob(t.Context(), sink{}, "k", newBlob(t, s), &zeros{256 << 20}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("256 MiB were sealed with %d bytes of memory", grown)
	}
}
