package weaver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// changing returns other bytes each time it is read from the beginning.
type changing struct {
	*strings.Reader
	next string
}

func (c *changing) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		c.Reader = strings.NewReader(c.next)
	}
	return c.Reader.Seek(offset, whence)
}

// broken fails reads with its own error.
type broken struct{ error }

func (b broken) Read([]byte) (int, error) { return 0, b.error }

// An error of an artifact's source is reported as such, and the stored bytes are the bytes read.
func TestArtifactSource(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.artifacts.source.v1", weaver.NoRetry())
	sources := map[string]func() io.Reader{
		"changing": func() io.Reader { return &changing{strings.NewReader("first"), "OTHER"} },
		"broken":   func() io.Reader { return broken{errors.New("the pipe broke")} },
		"good":     func() io.Reader { return strings.NewReader("first") },
	}
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		ref, err := weaver.PutArtifact(ctx, "a", sources[in]())
		if err != nil {
			return "", err
		}
		r, err := weaver.OpenArtifact(ctx, ref)
		if err != nil {
			return "", err
		}
		got, err := io.ReadAll(r)
		return string(got), errors.Join(err, r.Close())
	})
	bucketTest(t, "that fails or changes is an error of the handler, and stores nothing", func(b *bucketed) {
		b.run(handler)
		for in, want := range map[string]string{"changing": "the source changed between the two reads", "broken": "the pipe broke"} {
			_, err := enqueue(b.fixture, typ, in).Wait(b.Context())
			te, ok := errors.AsType[*weaver.TaskError](err)
			if !ok || te.Kind != task.KindHandler || !strings.Contains(te.Message, want) {
				b.Errorf("%s: %v, want %q", in, err, want)
			}
		}
		equal(b.fixture, "the output of the good one", result(b.fixture, enqueue(b.fixture, typ, "good")), "first")
	})
	bucketTest(t, "heals bytes that were lost or damaged since", func(b *bucketed) {
		b.run(handler)
		_ = result(b.fixture, enqueue(b.fixture, typ, "good"))
		for _, harm := range []func(key string) error{
			func(key string) error { return b.bucket.Delete(b.Context(), key) },
			func(key string) error { return b.bucket.Put(b.Context(), key, strings.NewReader("other")) },
		} {
			if err := harm(b.keys()[0]); err != nil {
				b.Fatal(err)
			}
			equal(b.fixture, "the output of the next one", result(b.fixture, enqueue(b.fixture, typ, "good")), "first")
		}
		equal(b.fixture, "the blobs", len(b.keys()), 1)
	})
}
