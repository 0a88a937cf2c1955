package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Limits of a search for conditions without an index.
const (
	searchTime  = 2 * time.Second
	maxSearches = 4   // at a time in one process
	searchRows  = 200 // rows of one page to examine
)

// Search reads the tasks that match a query, newest first. If its Filter expresses the whole query,
// this is one List. Otherwise it examines the tasks that the Filter selects for at most two seconds: a
// page may hold fewer than Limit, even zero, and still have Next. Four such searches run at a time in
// a process; another one waits until ctx ends. It reads queried inputs and outputs as Get does.
// Errors: those of List.
func (c *Client) Search(ctx context.Context, q ops.Query) (ops.SearchPage, error) {
	page, err := c.searchOne(ctx, &q)
	switch {
	case err == nil:
		return page, nil
	case q.Exact():
		return ops.SearchPage{}, fmt.Errorf("list tasks: %w", err)
	}
	return ops.SearchPage{}, fmt.Errorf("search tasks: %w", err)
}

func (c *Client) searchOne(ctx context.Context, q *ops.Query) (ops.SearchPage, error) {
	if err := checkFilter(&q.Filter); err != nil {
		return ops.SearchPage{}, err
	}
	release, err := searchTurn(ctx, q)
	if err != nil {
		return ops.SearchPage{}, err
	}
	defer release()
	return c.search(ctx, q, time.Now().Add(searchTime))
}

// searches has a slot for each running search.
var searches = make(chan struct{}, maxSearches)

// searchTurn waits for a free slot.
func searchTurn(ctx context.Context, q *ops.Query) (release func(), err error) {
	if q.Exact() || q.MatchesNone() {
		return func() {}, nil
	}
	select {
	case searches <- struct{}{}:
		return func() { <-searches }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%d other searches run in this process: %w", maxSearches, context.Cause(ctx))
	}
}

// search reads one page. It ends soon after the given time, and examines at least one task.
func (c *Client) search(ctx context.Context, q *ops.Query, until time.Time) (page ops.SearchPage, err error) {
	f := q.Filter
	if q.MatchesNone() {
		return page, nil
	}
	if q.Exact() {
		page.Items, page.Next, err = c.store.List(ctx, c.ns, f)
		if page.Scanned = len(page.Items); page.Scanned > 0 {
			page.OldestSeen = page.Items[page.Scanned-1].ID
		}
		return page, errors.Join(err, noteSeen(&page))
	}
	want := store.PageLimit(f.Limit)
	f.Limit = searchRows
	for {
		rows, next, err := c.store.List(ctx, c.ns, f)
		if err != nil {
			return page, err
		}
		for i := range rows {
			t := &rows[i]
			end := until
			if page.Scanned == 0 {
				end = later(until, time.Now().Add(searchTime/2)) // so that the next call begins with another task
			}
			found, read := c.matches(ctx, q, t, end)
			if err := ctx.Err(); err != nil {
				return page, err
			}
			if !read && page.Scanned > 0 && !time.Now().Before(until) {
				page.Next = page.OldestSeen.String() // the next call reads it
				return page, nil
			}
			page.Scanned, page.OldestSeen = page.Scanned+1, t.ID
			if !read {
				page.Unread++
			}
			if found {
				page.Items = append(page.Items, *t)
			}
			if len(page.Items) == want && (next != "" || i < len(rows)-1) {
				page.Next = t.ID.String()
				return page, nil
			}
		}
		if page.Next = next; next == "" || len(page.Items) == want || !time.Now().Before(until) {
			return page, noteSeen(&page)
		}
		f.After = next
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// noteSeen records the position of a list that has more.
func noteSeen(p *ops.SearchPage) error {
	if p.Next == "" {
		return nil
	}
	id, err := task.ParseID(p.Next)
	if err != nil {
		return fmt.Errorf("the cursor of the store: %w", err)
	}
	p.OldestSeen = id
	return nil
}

// matches reports whether a task that the Filter selects matches the query. read is false if a queried
// value could not be read in time.
func (c *Client) matches(ctx context.Context, q *ops.Query, t *TaskInfo, until time.Time) (found, read bool) {
	if !q.MatchesRow(t) {
		return false, true
	}
	input, output := q.NeedsValues(t)
	if !input && !output {
		return true, true
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	whole := *t
	load := func(v *json.RawMessage) bool {
		loaded, err := c.values.Load(ctx, *v)
		*v = loaded
		return err == nil
	}
	if input && !load(&whole.Input) || output && !load(&whole.Output) || input && output && !load(&whole.UnblockInput) {
		return false, false
	}
	return q.MatchesValues(&whole), true
}
