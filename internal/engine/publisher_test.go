package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/store"
)

// publishes counts the calls of a publisher.
type publishes struct {
	store.Store
	n atomic.Int32
}

func (p *publishes) Publish(ctx context.Context, ns string, req store.PublishRequest) (store.PublishResult, error) {
	p.n.Add(1)
	return p.Store.Publish(ctx, ns, req)
}

// A publisher looks at once after a commit of its process, and later after a notification that all processes have.
func TestPublisherWaitsAfterANotificationForAll(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.env(false)
		s := &publishes{Store: f.Store}
		e.Store, e.Delivery, e.Poll, e.RedeliverAfter = s, delivery.NewMemory(), time.Hour, time.Minute
		p := newPublisher(e)
		ctx, cancel := context.WithCancel(f.Context())
		done := make(chan error, 1)
		go func() { done <- p.run(ctx) }()
		looks := func(after time.Duration) int32 {
			s.n.Store(0)
			time.Sleep(after)
			synctest.Wait()
			return s.n.Load()
		}
		looks(time.Second)
		p.notify(&store.Notice{Due: true})
		if n := looks(publishGap); n != 1 {
			f.Errorf("%d looks after a commit of this process, want 1", n)
		}
		looks(time.Second)
		remote := store.Notice{Due: true, Remote: true}
		p.notify(&remote) // it may come with that commit
		looks(time.Second)
		p.notify(&remote)
		if n := looks(publishGap); n != 0 {
			f.Errorf("%d looks at once after a notification that all processes have", n)
		}
		if n := looks(publishSpread); n != 1 {
			f.Errorf("%d looks soon after it, want 1", n)
		}
		cancel()
		if err := <-done; err != nil {
			f.Error(err)
		}
	})
}
