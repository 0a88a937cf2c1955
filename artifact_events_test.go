package weaver_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
)

func TestLargeValuesBesideEvents(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("acme.files.slow.v1", weaver.NoRetry())
	bucketTest(t, "that take long to put do not hold back events", func(b *bucketed) {
		put := make(chan struct{})
		slow := &slowBucket{Bucket: b.bucket, until: put}
		b.runConfig(b.store, weaver.Config{Bucket: slow, Plugins: persist, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				go func() {
					time.Sleep(time.Second)
					weaver.Log(ctx).Info("beside the step")
				}()
				return weaver.Step(ctx, "s", func(context.Context) (string, error) { return large("step"), nil })
			}),
		}})
		h := enqueue(b.fixture, typ, "x")
		for ev, err := range b.with.Subscribe(b.Context(), weaver.EventFilter{TaskID: h.ID()}) {
			b.must(err)
			if ev.Type() == "log.written" {
				break
			}
		}
		close(put)
		if out, err := typ.Wait(b.Context(), b.with, h.ID()); err != nil || out != large("step") {
			b.Errorf("Wait: %d bytes, %v", len(out), err)
		}
	})
}

// slowBucket blocks puts until a channel is closed.
type slowBucket struct {
	blob.Bucket
	until chan struct{}
}

func (b *slowBucket) Put(ctx context.Context, key string, r io.Reader) error {
	<-b.until
	return b.Bucket.Put(ctx, key, r)
}
