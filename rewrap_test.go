package weaver_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
)

// rewrap rewraps all values, batch by batch.
func rewrap(fx *fixture, c *weaver.Client, limit int) (sum ops.Rewrapped) {
	fx.Helper()
	for {
		got, err := c.Rewrap(fx.Context(), sum.Next, limit)
		fx.must(err)
		sum.Values, sum.Blobs, sum.Plain, sum.Failed = sum.Values+got.Values, sum.Blobs+got.Blobs, sum.Plain+got.Plain, sum.Failed+got.Failed
		if sum.Why == nil {
			sum.Why = got.Why
		}
		if sum.Next = got.Next; sum.Next == "" {
			return sum
		}
	}
}

// After a rewrap no kind of value needs the old key.
func TestRewrap(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := aesKeys(t, "k1", "k2")
		db := openFile(t, filepath.Join(dir, "weaver.db"))
		s := newSealed(newFixture(t, db), aesCodec(t, k[0]), blob.Dir(filepath.Join(dir, "bucket")))
		tellStory(s)
		both, late := s.with(aesCodec(t, k...)), s.with(aesCodec(t, k[1]))

		first, err := both.Rewrap(t.Context(), "", 3) // interrupted
		s.must(err)
		if first.Values == 0 || first.Next == "" {
			t.Fatalf("the first bite: %+v", first)
		}
		for _, v := range store.Check(must(db.Snapshot(t.Context(), weaver.DefaultNamespace))) {
			t.Errorf("between two bites: %s: %s", v.Invariant, v.Text)
		}
		sum := rewrap(s.fixture, both, 7)
		if sum.Values < 30 || sum.Blobs != 3 || sum.Failed > 0 || sum.Plain > 0 {
			t.Errorf("rewrapped: %+v", sum)
		}
		sum = rewrap(s.fixture, both, 100)
		equal(s.fixture, "done by a second one", sum.Values+sum.Blobs+sum.Failed, 0)

		list, _, err := late.List(t.Context(), weaver.Filter{Types: []string{markedStory.Name()}})
		s.must(err)
		for _, info := range list {
			got, err := markedStory.Get(t.Context(), late, info.ID)
			s.must(err)
			equal(s.fixture, "output", got.Output, "mark-output")
			equal(s.fixture, "progress", got.Progress.Message, "mark-progress")
			h, err := late.History(t.Context(), info.ID)
			s.must(err)
			for _, v := range h.Steps {
				if strings.Contains(string(v.Value), "$weaver") && v.Name != "large" {
					t.Errorf("step %s: %s", v.Name, v.Value)
				}
			}
			equal(s.fixture, "checkpoint", string(h.Checkpoints[0].Value), `"mark-checkpoint"`)
			r, err := late.OpenArtifact(t.Context(), h.Artifacts[0].Ref())
			s.must(err)
			s.must(r.Close())
			for _, err := range late.Subscribe(t.Context(), weaver.EventFilter{TaskID: info.ID}) {
				s.must(err)
			}
			s.must(markedSay.Send(t.Context(), late, info.ID, "2", "mark-unused-signal"))
		}
		check(t, dir, true)
		for _, v := range store.Check(must(db.Snapshot(t.Context(), weaver.DefaultNamespace))) {
			t.Errorf("%s: %s", v.Invariant, v.Text)
		}
	})
}

func TestRewrapBesideWork(t *testing.T) {
	typ := weaver.Define[string, string]("acme.vault.copy.v1")
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		v, err := weaver.Step(ctx, "s", func(context.Context) (string, error) { return in, nil })
		if err != nil {
			return "", err
		}
		return v, weaver.Sleep(ctx, "nap", 1)
	})
	sealedTest(t, "what was stored before the codec is sealed, and blobs of that time are told", func(s *sealedFixture) {
		var ids []weaver.TaskID
		for _, in := range []string{"x", large("input")} {
			h, err := typ.Enqueue(s.Context(), s.with(nil), in)
			s.must(err)
			ids = append(ids, h.ID())
		}
		got := rewrap(s.fixture, s.client, 0)
		equal(s.fixture, "rewrapped", [4]int{got.Values, got.Blobs, got.Plain, got.Failed}, [4]int{1, 0, 1, 0})
		_, err := typ.Get(s.Context(), s.with(nil), ids[0])
		wantError(s.fixture, err, codec.ErrNoCodec)
		s.run(handler)
		_, err = typ.Wait(s.Context(), s.client, ids[0])
		s.must(err)
	})
	sealedTest(t, "what cannot be opened stays, and is counted", func(s *sealedFixture) {
		h := enqueue(s.fixture, typ, "x")
		enqueue(s.fixture, typ, large("input"))
		other := s.with(aesCodec(s, aesKeys(s, "k2")...))
		got := rewrap(s.fixture, other, 0)
		equal(s.fixture, "rewrapped", [4]int{got.Values, got.Blobs, got.Plain, got.Failed}, [4]int{0, 0, 0, 2})
		wantError(s.fixture, got.Why, codec.ErrNoKey, `"k1"`)
		s.run(handler)
		equal(s.fixture, "output", result(s.fixture, h), "x")
	})
	sealedTest(t, "a value that changes meanwhile is left to the program that changed it", func(s *sealedFixture) {
		k := aesKeys(s, "k1", "k2")
		old := s.with(aesCodec(s, k[0]))
		h, err := typ.Enqueue(s.Context(), old, "x", weaver.ConcurrencyKey("c"), weaver.Coalesce(), weaver.Delay(1e9))
		s.must(err)
		below := s.store
		c, err := weaver.NewClient(swapping{below, func() {
			_, err := typ.Enqueue(s.Context(), old, "y", weaver.ConcurrencyKey("c"), weaver.Coalesce())
			s.must(err)
		}}, weaver.ClientConfig{Codec: aesCodec(s, k...)})
		s.must(err)
		got, err := c.Rewrap(s.Context(), "", 0)
		s.must(err)
		equal(s.fixture, "rewrapped", got.Values, 0)
		s.runConfig(s.store, s.config(aesCodec(s, k...), handler))
		out, err := typ.Wait(s.Context(), c, h.ID())
		s.must(err)
		equal(s.fixture, "output", out, "y")
	})
	sealedTest(t, "a blob that is collected meanwhile leaves no bytes", func(s *sealedFixture) {
		k := aesKeys(s, "k1", "k2")
		h, err := typ.Enqueue(s.Context(), s.with(aesCodec(s, k[0])), large("input"))
		s.must(err)
		s.must(s.client.Cancel(s.Context(), h.ID()))
		bucket := &collected{Bucket: s.bucket, before: func() {
			s.must(s.client.Delete(s.Context(), h.ID()))
			_, err := s.client.CollectArtifacts(s.Context())
			s.must(err)
		}}
		c, err := weaver.NewClient(s.store, weaver.ClientConfig{Codec: aesCodec(s, k...), Bucket: bucket})
		s.must(err)
		rewrap(s.fixture, c, 0)
		if bucket.before != nil {
			s.Error("nothing was put")
		}
		s.must(s.bucket.List(s.Context(), "", func(i blob.Info) bool { s.Errorf("%s is left", i.Key); return true }))
	})
	sealedTest(t, "without a codec, or a store that can", func(s *sealedFixture) {
		_, err := s.with(nil).Rewrap(s.Context(), "", 0)
		wantError(s.fixture, err, errors.ErrUnsupported)
		c, err := weaver.NewClient(storehook.New(s.store, &storehook.Hooks{Hide: store.CanRewriteValues}), weaver.ClientConfig{Codec: s.codec})
		s.must(err)
		_, err = c.Rewrap(s.Context(), "", 0)
		wantError(s.fixture, err, errors.ErrUnsupported)
		_, err = s.client.Rewrap(s.Context(), "x", 0)
		if !errors.Is(err, store.ErrBadCursor) {
			s.Errorf("a cursor that came from nowhere: %v", err)
		}
	})
}

// swapping is a store with a hook before values are replaced.
type swapping struct {
	store.Store
	before func()
}

func (s swapping) RewriteValues(ctx context.Context, ns, after string, limit int, fn store.RewriteFunc) (int, string, error) {
	return s.Store.RewriteValues(ctx, ns, after, limit, func(values []store.StoredValue) ([]store.ValueSwap, error) {
		swaps, err := fn(values)
		s.before()
		return swaps, err
	})
}

// collected is a bucket with a hook before the first put.
type collected struct {
	blob.Bucket
	before func()
}

// Put implements blob.Bucket.
func (c *collected) Put(ctx context.Context, key string, r io.Reader) error {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	return c.Bucket.Put(ctx, key, r)
}
