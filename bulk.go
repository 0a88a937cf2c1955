package weaver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var bulkVerbs = map[ops.BulkVerb]func() *manyVerb{
	ops.BulkRetry: retryVerb, ops.BulkCancel: cancelVerb, ops.BulkDelete: deleteVerb, ops.BulkUnblock: unblockVerb,
}

const (
	bulkBatch   = 100 // maximum number of tasks that Bulk changes at once
	bulkTries   = 3   // for a task that changes concurrently
	bulkSamples = 20
)

// Bulk changes, or with DryRun examines, up to 1,000 tasks within about two seconds: repeat it with
// Next until Next is "". Each task is changed and audited individually; a task that changed since it
// was selected is changed only if it still matches. A later call may reach the needs of a task first
// refused. Such a task is then revived with its needs, or must be tried again by IDs.
//
// After an error, completed changes stay, and the result has the cursor. Errors: ErrInvalidOption,
// ErrBadCursor, ErrNestedTx and those of the store.
func (c *Client) Bulk(ctx context.Context, req ops.BulkRequest) (ops.BulkResult, error) {
	b := bulk{c: c, req: &req}
	err := b.check(ctx)
	if err == nil {
		err = b.run(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s tasks: %w", req.Verb, err)
	}
	return b.res, err
}

// bulk is one call of Bulk, RetryMany, CancelMany or DeleteMany.
type bulk struct {
	c      *Client
	req    *ops.BulkRequest
	res    ops.BulkResult
	verb   *manyVerb
	query  *ops.Query // nil for a request by IDs
	whole  bool       // process all matches without a time limit: RetryMany and the like
	last   string     // cursor of the last completed page that has a next one
	set    operateSettings
	sight  foresight
	looked int       // number of tasks that a dry run examined individually
	young  time.Time // OlderThan skips tasks that ended, or were enqueued, later
	until  time.Time // deadline of the call; zero: no deadline
	again  []TaskID  // tasks to retry, refused by the store
}

func (b *bulk) run(ctx context.Context) error {
	b.res.Next, b.res.Newest = b.req.After, b.req.Newest
	b.sight = foresight{client: b.c, selected: make(map[TaskID]bool), spent: make(map[JobID]error), keepSteps: b.set.keepSteps, cleanups: b.set.cleanups}
	b.young = time.Now().Add(-b.req.OlderThan)
	if b.query == nil {
		b.until = time.Now().Add(searchTime)
		return b.byID(ctx)
	}
	release, err := searchTurn(ctx, b.query)
	if err != nil {
		return err
	}
	defer release()
	if !b.whole {
		b.until = time.Now().Add(searchTime)
	}
	return b.byQuery(ctx)
}

// check validates a request and sets its defaults.
func (b *bulk) check(ctx context.Context) error {
	if engine.StepTxOf(ctx) != nil {
		return ErrNestedTx
	}
	verb, known := bulkVerbs[b.req.Verb]
	if !known {
		return fmt.Errorf("%w: the verb %q is unknown to Bulk: use one of %v", ErrInvalidOption, b.req.Verb, ops.BulkVerbs())
	}
	b.verb = verb()
	b.set.audit = store.Audit{By: b.req.By, Reason: b.req.Reason}
	b.set.force, b.set.keepSteps, b.set.cleanups = b.req.Force, b.req.KeepSteps, b.req.Cleanups
	if err := b.set.problem(verbOptions{force: b.verb.force, keep: b.verb.keep, cleanups: b.verb.keep}); err != nil {
		return err
	}
	b.verb.with(&b.set)
	if b.req.Limit == 0 {
		b.req.Limit = ops.MaxBulk
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalidOption}, args...)...)
	}
	switch byQuery := b.req.Query != nil; {
	case b.req.Limit < 0 || b.req.Limit > ops.MaxBulk:
		return wrong("Limit is %d: want 1 to %d, or 0 for that", b.req.Limit, ops.MaxBulk)
	case byQuery == (b.req.IDs != nil):
		return wrong("want either a Query or IDs")
	case !byQuery && len(b.req.IDs) > ops.MaxBulk:
		return wrong("%d IDs: at most %d", len(b.req.IDs), ops.MaxBulk)
	case !byQuery && (!b.req.Newest.IsZero() || b.req.OlderThan != 0):
		return wrong("Newest and OlderThan are for a Query")
	case b.req.OlderThan < 0:
		return wrong("OlderThan is %s: want 0 or more", b.req.OlderThan)
	case !byQuery:
		return nil
	}
	q := *b.req.Query
	if b.req.After != "" {
		q.Filter.After = b.req.After
	}
	b.query = &q
	return b.narrow()
}

// narrow restricts the query to tasks that the verb can change.
func (b *bulk) narrow() error {
	q := b.query
	if err := checkFilter(&q.Filter); err != nil {
		return err
	}
	if err := b.verb.narrow(&q.Filter); err != nil || q.MatchesNone() {
		return err
	}
	return b.upToNewest()
}

// upToNewest starts the query at Newest, unless its cursor is already past it.
func (b *bulk) upToNewest() error {
	if b.req.Newest.IsZero() {
		return nil
	}
	next := b.req.Newest // the cursor of a page is newer than the page
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			break
		}
	}
	f := &b.query.Filter
	if f.After != "" {
		after, err := task.ParseID(f.After)
		if err != nil {
			return fmt.Errorf("%w: %q did not come from a list", store.ErrBadCursor, f.After)
		}
		if after.Compare(next) <= 0 {
			return nil
		}
	}
	if !next.IsZero() {
		f.After = next.String()
	}
	return nil
}

func (b *bulk) byQuery(ctx context.Context) error {
	b.sight.also = b.selectsID
	q := *b.query
	for left := b.req.Limit; left > 0; {
		q.Filter.Limit = min(left, b.batch())
		page, err := b.c.search(ctx, &q, b.until)
		if err != nil {
			return err
		}
		b.res.Scanned, b.res.Unread = b.res.Scanned+page.Scanned, b.res.Unread+page.Unread
		if b.res.Newest.IsZero() && len(page.Items) > 0 {
			b.res.Newest = page.Items[0].ID
		}
		left -= len(page.Items)
		tasks := slices.DeleteFunc(page.Items, func(t TaskInfo) bool { return b.tooYoung(&t) })
		stopped, err := b.each(ctx, tasks)
		if err != nil {
			return err
		}
		if stopped != "" {
			b.res.Next = stopped
			break
		}
		b.res.Next, q.Filter.After = page.Next, page.Next
		b.last = cmp.Or(page.Next, b.last)
		if page.Next == "" || b.over() {
			break
		}
	}
	return b.twice(ctx)
}

func (b *bulk) byID(ctx context.Context) error {
	ids := make([]TaskID, 0, len(b.req.IDs))
	for _, id := range b.req.IDs {
		if _, twice := b.sight.selected[id]; !twice {
			b.sight.selected[id] = true
			ids = append(ids, id)
		}
	}
	if b.req.After != "" {
		i := slices.IndexFunc(ids, func(id TaskID) bool { return id.String() == b.req.After })
		if i < 0 {
			return fmt.Errorf("%w: %q is none of the IDs", store.ErrBadCursor, b.req.After)
		}
		ids = ids[i+1:]
	}
	for left := b.req.Limit; left > 0 && len(ids) > 0; {
		n := min(left, len(ids), bulkBatch)
		tasks, err := b.known(ctx, ids[:n])
		if err != nil {
			return err
		}
		b.res.Scanned += n
		stopped, err := b.each(ctx, tasks)
		if err != nil {
			return err
		}
		b.res.Next = ids[n-1].String()
		if stopped != "" {
			b.res.Next = stopped
			return nil
		}
		if ids, left = ids[n:], left-n; b.over() {
			break
		}
	}
	if len(ids) == 0 {
		b.res.Next = ""
	}
	return b.twice(ctx)
}

// batch returns the number of tasks to change at once.
func (b *bulk) batch() int {
	switch {
	case !b.whole:
		return bulkBatch
	case b.query.Filter.Limit <= 0:
		return store.MaxLimit
	}
	return store.PageLimit(b.query.Filter.Limit)
}

func (b *bulk) tooYoung(t *TaskInfo) bool { return b.req.OlderThan > 0 && lastOf(t).After(b.young) }

func (b *bulk) over() bool { return !b.until.IsZero() && !time.Now().Before(b.until) }
