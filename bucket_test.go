package weaver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/store"
)

func TestOtherBucket(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.files.copy.v1")
	copies := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })
	subtest(t, "is refused until it is accepted", func(fx *fixture) {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		with := func(folder string) *weaver.Client {
			c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: blob.Dir(folder)})
			fx.must(err)
			return c
		}
		h, err := typ.Enqueue(fx.Context(), with(one), large("input"))
		fx.must(err)
		_, err = typ.Enqueue(fx.Context(), with(two), large("more"))
		wantError(fx, err, store.ErrOtherBucket, one, two, "weaver artifact accept-bucket", "Client.AcceptBucket")
		_, err = with(two).CollectArtifacts(fx.Context())
		wantError(fx, err, store.ErrOtherBucket, one, two)
		err = fx.newEngine(fx.store, weaver.Config{Bucket: blob.Dir(two), Handlers: []weaver.Handler{copies}}).Run(fx.Context())
		wantError(fx, err, store.ErrOtherBucket, one, two)

		// A moved bucket keeps its identity, and a copy of its blobs alone is accepted.
		fx.must(os.RemoveAll(two))
		fx.must(os.Rename(one, two))
		_, err = typ.Enqueue(fx.Context(), with(two), large("more"))
		fx.must(err)
		fx.must(os.CopyFS(one, os.DirFS(two)))
		fx.must(os.RemoveAll(filepath.Join(one, "id.d")))
		_, err = with(one).CollectArtifacts(fx.Context())
		wantError(fx, err, store.ErrOtherBucket, "has no ID")
		id, place, err := with(one).AcceptBucket(fx.Context(), weaver.By("ops"))
		if err != nil || id == "" || place != one {
			fx.Errorf("AcceptBucket = %q, %q, %v", id, place, err)
		}
		fx.runConfig(fx.store, weaver.Config{Bucket: blob.Dir(one), Handlers: []weaver.Handler{copies}})
		out, err := typ.Wait(fx.Context(), with(one), h.ID())
		fx.must(err)
		equal(fx, "the output", out, large("input"))
		_, err = typ.Enqueue(fx.Context(), with(two), large("more still"))
		wantError(fx, err, store.ErrOtherBucket)
	})
	subtest(t, "without an ID cannot be accepted", func(fx *fixture) {
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: blob.NewMemory()})
		fx.must(err)
		_, _, err = c.AcceptBucket(fx.Context())
		wantError(fx, err, weaver.ErrInvalidOption, "has no ID that the store could remember")
		_, _, err = fx.client.AcceptBucket(fx.Context())
		wantError(fx, err, blob.ErrNoBucket)
	})
}

// lateID is a bucket whose ID another process makes while this one looks at it.
type lateID struct {
	blob.Bucket
	asked int
	race  func() // makes the ID
}

func (b *lateID) Identity(ctx context.Context, create bool) (id, place string, err error) {
	id, place, err = b.Bucket.(blob.Identified).Identity(ctx, create)
	if b.asked++; b.asked == 1 {
		b.race()
	}
	return id, place, err
}

// A program that starts while another one makes the bucket's ID is not refused.
func TestBucket_FirstUseElsewhere(t *testing.T) {
	t.Parallel()
	subtest(t, "is not refused", func(fx *fixture) {
		folder := blob.Dir(t.TempDir())
		first, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: folder})
		fx.must(err)
		b := &lateID{Bucket: folder, race: func() {
			_, _, err := first.AcceptBucket(fx.Context())
			fx.must(err)
		}}
		c, err := weaver.NewClient(fx.store, weaver.ClientConfig{Bucket: b})
		fx.must(err)
		if err := c.CheckBucket(fx.Context()); err != nil || b.asked != 2 {
			fx.Errorf("CheckBucket = %v after %d reads of the ID, want nil after 2", err, b.asked)
		}
	})
}
