package seal

import (
	"context"
	"time"

	"github.com/goweaver/weaver/store"
)

// KeepFeed implements store.EventFeed.
func (c *sealed) KeepFeed(ctx context.Context, ns string, keep time.Duration) error {
	feed, err := store.FeedOf(c.Store)
	if err != nil {
		return err
	}
	return feed.KeepFeed(ctx, ns, keep)
}

// Feed implements store.EventFeed.
func (c *sealed) Feed(ctx context.Context, ns string) (store.FeedState, error) {
	feed, err := store.FeedOf(c.Store)
	if err != nil {
		return store.FeedState{}, err
	}
	return feed.Feed(ctx, ns)
}

// FeedPage implements store.EventFeed: it opens what rows quote.
func (c *sealed) FeedPage(ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
	feed, err := store.FeedOf(c.Store)
	if err != nil {
		return store.FeedPage{}, err
	}
	page, err := feed.FeedPage(ctx, ns, req)
	for i := range page.Rows {
		if row := &page.Rows[i]; len(row.Event.Body) > 0 {
			row.Event.Body = c.s.Open(rowOf(row.Task, &row.Event), row.Event.Body)
		}
	}
	return page, err
}

// PruneFeed implements store.EventFeed.
func (c *sealed) PruneFeed(ctx context.Context, ns string) (more bool, err error) {
	feed, err := store.FeedOf(c.Store)
	if err != nil {
		return false, err
	}
	return feed.PruneFeed(ctx, ns)
}
