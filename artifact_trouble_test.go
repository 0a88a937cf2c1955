package weaver_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestArtifactTrouble(t *testing.T) {
	t.Parallel()
	put := weaver.Define[string, weaver.ArtifactRef]("acme.trouble.put.v1", weaver.MaxAttempts(3))
	get := weaver.Define[weaver.ArtifactRef, string]("acme.trouble.get.v1", weaver.MaxAttempts(3))
	putter := put.Handler(func(ctx context.Context, text string) (weaver.ArtifactRef, error) {
		return weaver.PutArtifact(ctx, "a.txt", strings.NewReader(text))
	})
	getter := get.Handler(func(ctx context.Context, ref weaver.ArtifactRef) (string, error) {
		r, err := weaver.OpenArtifact(ctx, ref)
		if err != nil {
			return "", err
		}
		got, err := io.ReadAll(r)
		return string(got), errors.Join(err, r.Close())
	})
	made := func(b *bucketed, text string) weaver.ArtifactRef {
		b.Helper()
		h, err := put.Enqueue(b.Context(), b.with, text)
		if err != nil {
			b.Fatal(err)
		}
		ref, err := h.Wait(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return ref
	}

	bucketTest(t, "a worker without a bucket leaves the task to another one", func(b *bucketed) {
		swallows := put.Handler(func(ctx context.Context, text string) (weaver.ArtifactRef, error) {
			ref, _ := weaver.PutArtifact(ctx, "a.txt", strings.NewReader(text))
			return ref, nil
		})
		h, err := put.Enqueue(b.Context(), b.with, "hello")
		if err != nil {
			b.Fatal(err)
		}
		e := b.fixture.start(b.store, weaver.Config{Handlers: []weaver.Handler{swallows}})
		wantError(b.fixture, notHere(b.fixture, h), nil, `put artifact "a.txt"`, "Config.Bucket")
		if err := e.stop(); err != nil {
			b.Error(err)
		}
		b.run(putter)
		if ref, err := h.Wait(b.Context()); err != nil || ref.Blob.Size != 5 {
			b.Errorf("with a bucket: %+v, %v", ref, err)
		}
		b.consistent()
	})
	bucketTest(t, "bytes that changed block the task that reads them, and are named", func(b *bucketed) {
		b.run(putter, getter)
		ref := made(b, "hello")
		key := b.keys()[0]
		b.bucket.Damage(key)
		h, err := get.Enqueue(b.Context(), b.with, ref)
		if err != nil {
			b.Fatal(err)
		}
		_, err = h.Wait(b.Context())
		wantError(b.fixture, err, weaver.ErrBlocked, `artifact "a.txt"`, "changed", key)
		made(b, "hello") // puts the same bytes again, complete
		if err := b.with.Unblock(b.Context(), h.ID(), nil); err != nil {
			b.Fatal(err)
		}
		if got, err := h.Wait(b.Context()); err != nil || got != "hello" {
			b.Errorf("after the repair: %q, %v", got, err)
		}
	})
	bucketTest(t, "a reference that names nothing fails the task at once", func(b *bucketed) {
		b.run(getter)
		for want, ref := range map[string]weaver.ArtifactRef{
			"the ArtifactRef is empty": {},
			"has no blob":              {Name: "a.txt"},
			"another form":             {Name: "a.txt", Blob: task.Blob{ID: task.NewIDs(nil).New(), SHA256: "../../etc/passwd", Size: 1}},
		} {
			h, err := get.Enqueue(b.Context(), b.with, ref)
			if err != nil {
				b.Fatal(err)
			}
			var te *weaver.TaskError
			if _, err := h.Wait(b.Context()); !errors.As(err, &te) || te.Attempts != 1 || !strings.Contains(te.Message, want) {
				b.Errorf("%+v: %v, want %q", ref, err, want)
			}
			_, err = b.with.OpenArtifact(b.Context(), ref)
			wantError(b.fixture, err, weaver.ErrInvalidOption, want)
		}
	})
	bucketTest(t, "a collector looks for leftovers every hour", func(b *bucketed) {
		s := &sweptBucket{Bucket: b.bucket}
		b.runConfig(b.store, weaver.Config{Bucket: s})
		time.Sleep(3*time.Hour + 30*time.Minute)
		if got := s.with(); len(got) != 4 || got[0] != store.DefaultPending {
			b.Errorf("in 3.5 hours it looked with %v", got)
		}
		c, err := weaver.NewClient(b.store, weaver.ClientConfig{Bucket: s})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.CollectArtifacts(b.Context(), 0); err != nil || len(s.with()) != 5 || s.with()[4] != 1 {
			b.Errorf("CollectArtifacts: %v, %v", s.with(), err)
		}
	})
	bucketTest(t, "uploads that nothing used go after the time that is given", func(b *bucketed) {
		up, err := b.store.Operate(b.Context(), weaver.DefaultNamespace, store.Upload{ID: task.NewIDs(nil).New(), SHA256: strings.Repeat("ab", 32), Size: 3})
		if err != nil || len(up) != 1 {
			b.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, c := range []struct {
			opts []time.Duration
			want int
		}{{nil, 0}, {[]time.Duration{2 * time.Hour}, 0}, {[]time.Duration{time.Minute}, 1}} {
			if n, err := b.with.CollectArtifacts(b.Context(), c.opts...); n != c.want || err != nil {
				b.Errorf("collected %d, %v, want %d", n, err, c.want)
			}
		}
	})
}

// sweptBucket records the arguments of its sweeps.
type sweptBucket struct {
	blob.Bucket
	mu     sync.Mutex // guards sweeps
	sweeps []time.Duration
}

func (s *sweptBucket) with() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sweeps)
}

func (s *sweptBucket) Sweep(_ context.Context, unchanged time.Duration) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps = append(s.sweeps, unchanged)
	return 0, nil
}

// An unusable bucket is refused when the program starts.
func TestBucketIsChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, bucket := range map[string]blob.Bucket{
		"no path":                 blob.Dir(""),
		"has a NUL":               blob.Dir("a\x00b"),
		file + " is a file":       blob.Dir(file),
		"part of its path":        blob.Dir(filepath.Join(file, "below")),
		"*blob.Folder is nil":     (*blob.Folder)(nil),
		"*blob.Memory is nil":     (*blob.Memory)(nil),
		"codec 0 of the bucket":   blob.NewMemory(nil),
		"codec 0 of the bucket i": blob.Dir("x", nil),
	} {
		_, err := weaver.New(memstore.New(), weaver.Config{Bucket: bucket})
		if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), "Bucket: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
		if _, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{Bucket: bucket}); !errors.Is(err, weaver.ErrConfig) {
			t.Errorf("NewClient = %v, want ErrConfig", err)
		}
	}
	good := filepath.Join(t.TempDir(), "not", "there", "yet")
	if _, err := weaver.New(memstore.New(), weaver.Config{Bucket: blob.Dir(good)}); err != nil {
		t.Errorf("a folder that is not there yet: %v", err)
	}
	if _, err := os.Stat(good); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}
