package storehook

import (
	"context"
	"time"

	"github.com/goweaver/weaver/store"
)

// KeepFeed implements store.EventFeed, as the methods below do. A store below that is
// none says so.
func (s *hooked) KeepFeed(ctx context.Context, ns string, keep time.Duration) error {
	_, err := through(ctx, s, "KeepFeed", nil, ns, keep, func(below store.Store, ctx context.Context, ns string, keep time.Duration) (None, error) {
		feed, err := store.FeedOf(below)
		if err != nil {
			return None{}, err
		}
		return None{}, feed.KeepFeed(ctx, ns, keep)
	})
	return err
}

// Feed implements store.EventFeed.
func (s *hooked) Feed(ctx context.Context, ns string) (store.FeedState, error) {
	return through(ctx, s, "Feed", nil, ns, None{}, func(below store.Store, ctx context.Context, ns string, _ None) (store.FeedState, error) {
		feed, err := store.FeedOf(below)
		if err != nil {
			return store.FeedState{}, err
		}
		return feed.Feed(ctx, ns)
	})
}

// FeedPage implements store.EventFeed.
func (s *hooked) FeedPage(ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
	return through(ctx, s, "FeedPage", nil, ns, req, func(below store.Store, ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
		feed, err := store.FeedOf(below)
		if err != nil {
			return store.FeedPage{}, err
		}
		return feed.FeedPage(ctx, ns, req)
	})
}

// PruneFeed implements store.EventFeed.
func (s *hooked) PruneFeed(ctx context.Context, ns string) (bool, error) {
	return through(ctx, s, "PruneFeed", nil, ns, None{}, func(below store.Store, ctx context.Context, ns string, _ None) (bool, error) {
		feed, err := store.FeedOf(below)
		if err != nil {
			return false, err
		}
		return feed.PruneFeed(ctx, ns)
	})
}
