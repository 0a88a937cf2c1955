package weaver_test

import (
	"context"
	"errors"
	"io"
	"runtime/metrics"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/blob/zstd"
	"github.com/goweaver/weaver/store/memstore"
)

// An artifact is streamed in and out: memory use is far below its size.
func TestArtifactIsStreamed(t *testing.T) {
	const size, most = 64 << 20, 32 << 20
	typ := weaver.Define[weaver.None, weaver.ArtifactRef]("acme.reports.big.v1", weaver.NoRetry())
	bucket := blob.Dir(t.TempDir(), zstd.Codec())
	eng, err := weaver.New(memstore.New(), weaver.Config{Bucket: bucket, Handlers: []weaver.Handler{
		typ.Handler(func(ctx context.Context, _ weaver.None) (weaver.ArtifactRef, error) {
			ref, err := weaver.PutArtifact(ctx, "big", io.LimitReader(text{}, size))
			if err != nil {
				return ref, err
			}
			r, err := weaver.OpenArtifact(ctx, ref)
			if err != nil {
				return ref, err
			}
			n, err := io.Copy(io.Discard, r)
			if n != size {
				err = errors.Join(err, errors.New("another size came back"))
			}
			return ref, errors.Join(err, r.Close())
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := allocatedBytes()
	h, err := typ.Enqueue(t.Context(), eng, weaver.None{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ref, err := h.Wait(t.Context()); err != nil || ref.Blob.Size != size {
		t.Errorf("the artifact is %+v, %v", ref, err)
	}
	if got := allocatedBytes() - before; got > most {
		t.Errorf("%d MiB in and out allocated %d MiB, want at most %d", size>>20, got>>20, most>>20)
	}
}

// text returns compressible bytes.
type text struct{}

func (text) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "a line of a report\n"[i%19]
	}
	return len(p), nil
}

func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
