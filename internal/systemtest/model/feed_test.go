package model_test

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// feedKeep is the retention of the feed in both stores.
const feedKeep = 1000 * time.Hour

// keepFeed begins the feeds of both stores.
func (p *pair) keepFeed() {
	p.Helper()
	for i, s := range p.stores() {
		if got, err := s.Operate(p.Context(), namespace, store.KeepFeed{Keep: feedKeep}); err != nil || got[0].Err != nil {
			p.Fatalf("KeepFeed of store %d: %v, %v", i, got, err)
		}
	}
}

// told is the feed of a store by task and job. Stores may choose the order of rows of different tasks.
type told map[task.ID][]store.FeedRow

// compareFeeds compares the feed rows of each task and job.
func (p *pair) compareFeeds() {
	p.Helper()
	var feeds [2]told
	for i, s := range p.stores() {
		feeds[i] = told{}
		for _, row := range p.feed(i, s) {
			row.Pos = 0
			of := row.Task
			if of.IsZero() {
				of = row.Job
			}
			feeds[i][of] = append(feeds[i][of], row)
		}
	}
	p.same("the feed", feeds[0], feeds[1])
}

// feed reads a whole feed.
func (p *pair) feed(i int, s store.Store) (rows []store.FeedRow) {
	p.Helper()
	for req := (store.FeedRequest{}); ; {
		page, err := s.Feed(p.Context(), namespace, req)
		if err != nil {
			p.Fatalf("Feed of store %d: %v", i, err)
		}
		rows = append(rows, page.Rows...)
		req.After = page.Next
		if !page.More && page.Newest == page.Last {
			return rows
		}
		time.Sleep(time.Millisecond) // a transaction of another test is open
	}
}
