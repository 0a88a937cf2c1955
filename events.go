package weaver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// KeepEvents makes the store keep the events of the namespace from now on, each for the given time (at
// least a minute), so that Events and EventPage can read them. It covers all tasks and jobs in every
// process. It is a property of the store: one call serves all processes, and another call changes the
// time. 0 ends it: the kept events are deleted, and followers end with store.ErrNoFeed. Running
// engines remove expired events (once a minute, and starting within an hour).
//
// Steps, progress, output and logs are included if engines store them (PersistEvents, PersistLogs). A
// store that keeps events writes one more row per state change of a task; otherwise there is no cost.
// On PostgreSQL the first call needs the rights of the tables' owner, as migrations do (otherwise
// store.ErrReadOnly); other roles may change the time, end it and begin again. It waits up to 5 s for
// transactions that write to a table (store.ErrBusy: call it again).
//
// On PostgreSQL, events of transactions open at the first call may be missing. While older program
// versions run at the same time, the events that their attempts report with their end follow the event
// of that end. See docs/adr/0042.
func (c *Client) KeepEvents(ctx context.Context, keep time.Duration) error {
	err := store.Require(c.store, store.CanKeepFeed)
	if err == nil {
		if keep < 0 || keep > 0 && keep < store.MinFeedKeep {
			err = fmt.Errorf("%w: %v: want %v or more, or 0 to keep none", ErrInvalidOption, keep, store.MinFeedKeep)
		} else {
			var got []store.CommandResult
			if got, err = c.store.Operate(ctx, c.ns, store.KeepFeed{Keep: keep}); err == nil {
				err = got[0].Err
			}
		}
	}
	if err != nil {
		return fmt.Errorf("keep events: %w", err)
	}
	return nil
}

// Events follows the events of the namespace: each event once, those of a task in order. An
// interrupted reader resumes with the Cursor of the last event that it received. Events have the
// numbers that Subscribe gives them, but no values: inputs and outputs are not included.
//
// If events at the reader's position were removed, it receives a gap and continues after it. A slow
// reader delays no other, and holds at most one page of 500 events in memory. Events reads when the
// store reports a write (Notifier), otherwise four times a second; all followers of a client share
// that read. On PostgreSQL a long-running transaction in any database of the server holds events back
// until it ends.
//
// An error comes last: store.ErrNoFeed, ErrBadCursor, ErrInvalidOption, the cause of ctx, or a closed
// store. While the store is unreachable, Events waits.
func (c *Client) Events(ctx context.Context, req event.FeedRequest) iter.Seq2[event.FeedEvent, error] {
	return func(yield func(event.FeedEvent, error) bool) {
		defer c.tail.join()()
		warned := false
		for {
			page, err := c.eventPage(ctx, &req)
			if err == nil {
				for _, ev := range page.Events {
					if !yield(ev, nil) {
						return
					}
				}
				if req.After = page.Next; !page.More {
					err = c.tail.await(ctx, page.Next)
				}
			}
			switch away := errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy); {
			case ctx.Err() != nil:
				yield(event.FeedEvent{}, fmt.Errorf("events: %w", context.Cause(ctx)))
				return
			case away:
				if !warned {
					c.log.Warn("the store cannot be read; the events go on later", "error", err)
					warned = true
				}
				pauseFor(ctx, waitPoll)
			case err != nil:
				yield(event.FeedEvent{}, fmt.Errorf("events: %w", err))
				return
			}
		}
	}
}

// EventPage reads a page of events, for programs that pass them on: at once, or within Wait. The page
// is empty if no event matches; continue at Next in any case. Errors: those of Events, and an
// unreachable store.
func (c *Client) EventPage(ctx context.Context, req event.FeedRequest) (event.FeedPage, error) {
	page, err := c.eventsWithin(ctx, &req)
	if err != nil {
		return event.FeedPage{}, fmt.Errorf("read events: %w", err)
	}
	return page, nil
}

// eventsWithin reads until a page has events or the time is up.
func (c *Client) eventsWithin(ctx context.Context, req *event.FeedRequest) (event.FeedPage, error) {
	if req.Wait <= 0 {
		return c.eventPage(ctx, req)
	}
	defer c.tail.join()()
	limited, cancel := context.WithTimeoutCause(ctx, req.Wait, errWaited)
	defer cancel()
	for {
		page, err := c.eventPage(ctx, req)
		if err != nil || len(page.Events) > 0 {
			return page, err
		}
		if !page.More {
			err = c.tail.await(limited, page.Next)
		}
		switch {
		case ctx.Err() != nil:
			return page, context.Cause(ctx)
		case limited.Err() != nil:
			return page, nil
		case err != nil:
			return page, err
		}
		req.After = page.Next
	}
}

// errWaited: EventPage has waited for the maximum time.
var errWaited = errors.New("waited long enough")

func checkFeed(req *event.FeedRequest) error {
	switch {
	case req.Limit < 0 || req.Limit > store.MaxFeedRows:
		return fmt.Errorf("%w: Limit is %d: want 1 to %d, or 0 for %[3]d", ErrInvalidOption, req.Limit, store.MaxFeedRows)
	case slices.Contains(req.Types, "") || slices.Contains(req.Names, ""):
		return fmt.Errorf("%w: Types and Names must not have empty texts", ErrInvalidOption)
	}
	for _, name := range req.Names {
		types := event.FeedTypes()
		if !slices.ContainsFunc(types, func(known string) bool { return store.FeedMatches(name, known) }) {
			return fmt.Errorf("%w: Names: no event is named %q; there are %s", ErrInvalidOption, name, strings.Join(types, ", "))
		}
	}
	return nil
}

// eventPage reads a page without waiting.
func (c *Client) eventPage(ctx context.Context, req *event.FeedRequest) (event.FeedPage, error) {
	err := store.Require(c.store, store.CanKeepFeed)
	if err == nil {
		err = checkFeed(req)
	}
	if err != nil {
		return event.FeedPage{}, err
	}
	if req.After == "" {
		return c.newestEvent(ctx)
	}
	after, err := eventPosition(req.After)
	if err != nil {
		return event.FeedPage{}, err
	}
	got, err := c.store.Feed(ctx, c.ns, store.FeedRequest{
		After: after, Task: req.Task, Job: req.Job, Queue: req.Queue, Types: req.Types, Names: req.Names, Limit: req.Limit,
	})
	if err == nil && !got.On {
		err = noFeed(c.ns)
	}
	if err == nil && after > got.Last {
		err = fmt.Errorf("%w: %q of the events is from the future, the newest is %q: it is of another namespace or store, or of one that was restored from a backup; begin without a cursor", store.ErrBadCursor, req.After, eventCursor(got.Last))
	}
	if err == nil {
		err = c.maskFeed(ctx, got.Rows)
	}
	if err != nil {
		return event.FeedPage{}, err
	}
	page := event.FeedPage{Next: eventCursor(got.Next), Newest: eventCursor(got.Newest), More: got.More}
	if after < got.Kept {
		gap := &event.FeedGap{From: req.After, To: eventCursor(got.Kept)}
		page.Events = append(page.Events, event.FeedEvent{Cursor: gap.To, Gap: gap})
	}
	for i := range got.Rows {
		if ev, known := c.feedEvent(&got.Rows[i]); known {
			page.Events = append(page.Events, ev)
		}
	}
	return page, nil
}

// newestEvent returns the page of a reader that starts now.
func (c *Client) newestEvent(ctx context.Context) (event.FeedPage, error) {
	state, err := c.store.Feed(ctx, c.ns, store.FeedRequest{StateOnly: true})
	if err == nil && !state.On {
		err = noFeed(c.ns)
	}
	newest := eventCursor(state.Newest)
	return event.FeedPage{Next: newest, Newest: newest}, err
}

func noFeed(ns string) error {
	return fmt.Errorf("%w in the namespace %q: Client.KeepEvents begins it", store.ErrNoFeed, ns)
}

func eventCursor(pos int64) string { return strconv.FormatInt(pos, 10) }

// eventPosition reads a cursor.
func eventPosition(cursor string) (int64, error) {
	pos, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || pos < 0 || eventCursor(pos) != cursor {
		return 0, fmt.Errorf("%w: %.70q of the events: want the cursor of an event, %q for all that are kept, or none for what happens from now on", store.ErrBadCursor, cursor, event.FeedOldest)
	}
	return pos, nil
}
