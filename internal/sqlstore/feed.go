package sqlstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Feeds is the database's part of a namespace's feed. Triggers of the database write its rows.
type Feeds interface {
	// MakeFeed creates the missing triggers, for all namespaces, in its own transactions. They
	// ignore namespaces without a row of weaver_feeds. Errors are those of the port.
	MakeFeed(ctx context.Context, ns string) error
	// FeedHorizon returns the position up to which every row is committed or never will be,
	// and the highest position assigned. ok is false if positions are assigned in commit
	// order: then both are the position of the newest row.
	FeedHorizon(ctx context.Context) (all, last int64, ok bool, err error)
	// SkipFeed assigns a position to no row.
	SkipFeed(t *Tx) (int64, error)
}

const (
	sqlFeedOf = `
SELECT keep, pruned, (SELECT pos FROM weaver_feed WHERE namespace = ?1 ORDER BY pos DESC LIMIT 1)
FROM weaver_feeds WHERE namespace = ?1`
	sqlPutFeed = `
INSERT INTO weaver_feeds (namespace, keep, pruned) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace) DO UPDATE SET keep = excluded.keep,
  pruned = CASE WHEN excluded.pruned > weaver_feeds.pruned THEN excluded.pruned ELSE weaver_feeds.pruned END`
)

// feed is a row of weaver_feeds with the end of the feed.
type feed struct {
	exists bool
	keep   int64
	pruned int64
	newest int64
}

// feed reads the extent of the feed. In a write transaction it stays valid until the commit.
func (v *View) feed() (f feed, err error) {
	st := v.stmt(sqlFeedOf).Text(1, v.ns)
	if f.exists = st.One(); f.exists {
		f.keep, f.pruned = st.ColInt(0), st.ColInt(1)
		f.newest = max(f.pruned, st.ColInt(2))
	}
	return f, st.Done()
}

// state returns the positions that readers may read.
func (f *feed) state(h horizon) store.FeedState {
	s := store.FeedState{On: f.keep > 0, Kept: f.pruned, Newest: f.newest, Last: f.newest}
	if h.ok {
		s.Newest, s.Last = max(f.pruned, h.all), max(f.pruned, h.last)
	}
	return s
}

// horizon is the result of FeedHorizon.
type horizon struct {
	all, last int64
	ok        bool
}

// readFeed runs fn with the state of the feed, unless the namespace never had a feed.
func (s *Store) readFeed(ctx context.Context, ns string, fn func(v *View, state store.FeedState) error) error {
	var h horizon
	var err error
	if h.all, h.last, h.ok, err = s.db.FeedHorizon(ctx); err != nil { // before the rows are read
		return err
	}
	return s.read(ctx, ns, func(v *View) error {
		f, err := v.feed()
		if err != nil || !f.exists {
			return err
		}
		return fn(v, f.state(h))
	})
}

// keepFeed is the command KeepFeed, which was checked.
func (s *Store) keepFeed(ctx context.Context, ns string, keep time.Duration) error {
	var was feed
	err := s.read(ctx, ns, func(v *View) (err error) {
		was, err = v.feed()
		return err
	})
	if err != nil || was.keep == keep.Microseconds() {
		return err
	}
	if was.keep == 0 {
		if err := s.db.MakeFeed(ctx, ns); err != nil { // before the row, which enables them
			return fmt.Errorf("begin the feed of events: %w", err)
		}
	}
	return s.write(ctx, ns, Heavy, func(t *Tx) error {
		f, err := t.feed()
		if err != nil {
			return err
		}
		if keep > 0 && f.keep == 0 && f.exists { // events since then are missing: readers see the gap
			if f.pruned, err = t.db.SkipFeed(t); err != nil {
				return err
			}
		}
		return t.stmt(sqlPutFeed).Text(1, t.ns).Int(2, keep.Microseconds()).Int(3, f.pruned).Run()
	})
}

// feedColumns are the columns that select a row.
var feedColumns = sqlstmt.Columns[feedRow]{
	sqlstmt.Col("pos", func(f *feedRow, r *sqlstmt.Row, i int) { f.Pos = r.Int(i) }),
	sqlstmt.Col("kind", func(f *feedRow, r *sqlstmt.Row, i int) { f.Kind = store.FeedKind(r.Name(i)) }),
	sqlstmt.Col("at", func(f *feedRow, r *sqlstmt.Row, i int) { f.At = r.Time(i) }),
	sqlstmt.Col("size", func(f *feedRow, r *sqlstmt.Row, i int) { f.size = r.Int(i) }),
	sqlstmt.Col("task_id", func(f *feedRow, r *sqlstmt.Row, i int) { f.Task = r.ID(i) }),
	sqlstmt.Col("job_id", func(f *feedRow, r *sqlstmt.Row, i int) { f.Job = r.ID(i) }),
	sqlstmt.Col("task_type", func(f *feedRow, r *sqlstmt.Row, i int) { f.Type = r.Name(i) }),
	sqlstmt.Col("queue", func(f *feedRow, r *sqlstmt.Row, i int) { f.Queue = r.Name(i) }),
	sqlstmt.Col("attempt_no", func(f *feedRow, r *sqlstmt.Row, i int) { f.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("epoch", func(f *feedRow, r *sqlstmt.Row, i int) { f.Epoch = r.Int(i) }),
	sqlstmt.Col("seq", func(f *feedRow, r *sqlstmt.Row, i int) { f.Event.Seq = r.Int(i) }),
	sqlstmt.Col("state", func(f *feedRow, r *sqlstmt.Row, i int) { f.State = r.Name(i) }),
	sqlstmt.Col("waiting", func(f *feedRow, r *sqlstmt.Row, i int) { f.Waiting = task.Waiting(r.Name(i)) }),
	sqlstmt.Col("name", func(f *feedRow, r *sqlstmt.Row, i int) { f.named(r.Name(i)) }),
}

type feedRow struct {
	store.FeedRow
	size int64
}

// named sets the fields from the last column, the name of the event.
func (f *feedRow) named(name string) {
	switch f.Kind {
	case store.FeedEvent, store.FeedLog:
		f.Name, f.Event.Type, f.Event.At, f.Event.Log = name, name, f.At, f.Kind == store.FeedLog
		return
	case store.FeedEnded:
		f.Outcome = task.Outcome(name)
	}
	f.Name = store.FeedName(f.Kind, f.State, f.Waiting, f.Outcome)
}

var (
	sqlFeedRows = `
SELECT ` + feedColumns.List() + ` FROM weaver_feed WHERE namespace = ?1 AND pos > ?2 AND pos <= ?3 ORDER BY pos LIMIT ?4`

	// The quoted columns of a chunk of rows. Ends of tasks and jobs are quoted while they are
	// current.
	sqlFeedQuotes = newChunkSQL(func(n int) string {
		return `
SELECT f.pos, t.options_json, CASE WHEN t.task_id IS NOT NULL THEN coalesce(t.allow_failure, 0) END, coalesce(a.started_at, j.created_at),
  coalesce(a.error_json, CASE WHEN (f.kind = 'over' OR f.state = 'failed' OR f.state = 'cancelled') AND t.state = f.state AND t.updated_at = f.at THEN t.last_error_json END),
  d.next_ready_at, coalesce(e.body, l.body), j.name,
  CASE WHEN j.state = f.state AND j.updated_at = f.at THEN 1 ELSE 0 END, j.total, j.unfinished, j.movable, j.failed, j.allowed, j.succeeded
FROM weaver_feed f
LEFT JOIN weaver_tasks t ON t.namespace = f.namespace AND t.task_id = f.task_id
LEFT JOIN weaver_attempts a ON f.kind = 'ended' AND a.namespace = f.namespace AND a.task_id = f.task_id AND a.attempt_no = f.attempt_no
LEFT JOIN weaver_decisions d ON f.kind = 'ended' AND d.namespace = f.namespace AND d.task_id = f.task_id AND d.attempt_no = f.attempt_no
LEFT JOIN weaver_events e ON f.kind = 'event' AND e.namespace = f.namespace AND e.task_id = f.task_id AND e.seq = f.seq
LEFT JOIN weaver_logs l ON f.kind = 'log' AND l.namespace = f.namespace AND l.task_id = f.task_id AND l.seq = f.seq
LEFT JOIN weaver_jobs j ON f.kind = 'settled' AND j.namespace = f.namespace AND j.job_id = f.job_id
WHERE f.namespace = ?1 AND f.pos IN (` + params(2, n) + `)`
	})
)

// Feed implements store.Observe.
func (s *Store) Feed(ctx context.Context, ns string, req store.FeedRequest) (page store.FeedPage, err error) {
	err = s.readFeed(ctx, ns, func(v *View, state store.FeedState) (err error) {
		if req.StateOnly {
			page = store.FeedPage{FeedState: state}
			return nil
		}
		page, err = v.feedPage(&req, state)
		return err
	})
	if page.Next == 0 {
		page.Next = req.After
	}
	return page, err
}

func (v *View) feedPage(req *store.FeedRequest, state store.FeedState) (store.FeedPage, error) {
	from := max(req.After, state.Kept)
	page := store.FeedPage{FeedState: state, Next: from}
	looked, err := feedColumns.All(v.stmt(sqlFeedRows).Text(1, v.ns).Int(2, from).Int(3, state.Newest).Int(4, store.MaxFeedLooks))
	if err != nil {
		return page, err
	}
	page.More = len(looked) == store.MaxFeedLooks
	limit, bytes := rules.FeedLimit(req.Limit), int64(0)
	for i := range looked {
		row := &looked[i]
		if req.Passes(&row.FeedRow) {
			bytes += row.size
			if n := len(page.Rows); n == limit || n > 0 && bytes > store.MaxFeedBytes {
				page.More = true
				return page, v.quote(page.Rows)
			}
			page.Rows = append(page.Rows, row.FeedRow)
		}
		page.Next = row.Pos
	}
	if !page.More {
		page.Next = max(page.Next, min(state.Newest, math.MaxInt64-1))
	}
	return page, v.quote(page.Rows)
}

// quote reads the quoted columns of rows.
func (v *View) quote(rows []store.FeedRow) error {
	at := make(map[int64]*store.FeedRow, len(rows))
	for i := range rows {
		at[rows[i].Pos] = &rows[i]
	}
	return inChunks(rows, func(chunk []store.FeedRow) error {
		st := v.stmt(sqlFeedQuotes[len(chunk)]).Text(1, v.ns)
		for i := range chunk {
			st.Int(2+i, chunk[i].Pos)
		}
		for st.Next() {
			r := st.Row()
			row := at[r.Int(0)]
			row.Gone = row.Kind != store.FeedSettled && r.Null(2)
			var t task.Task
			if len(r.Raw(1)) > 0 {
				r.Options(1, &t)
			}
			row.Node, row.Redact, row.AllowFailure = t.Node, t.Redact, r.Bool(2)
			row.StartedAt, row.Error, row.NextReadyAt, row.Event.Body = r.Time(3), r.Error(4), r.Time(5), r.Bytes(6)
			row.JobName = r.Text(7)
			if r.Bool(8) {
				row.Counters = task.JobCounters{
					Total: int(r.Int(9)), Unfinished: int(r.Int(10)), Movable: int(r.Int(11)),
					Failed: int(r.Int(12)), Allowed: int(r.Int(13)), Succeeded: int(r.Int(14)),
				}
			}
		}
		return st.Done()
	})
}

const (
	sqlOldFeed   = `SELECT pos, at FROM weaver_feed WHERE namespace = ?1 ORDER BY pos LIMIT ?2`
	sqlPruned    = `UPDATE weaver_feeds SET pruned = ?2 WHERE namespace = ?1 AND pruned < ?2`
	sqlPruneFeed = `DELETE FROM weaver_feed WHERE namespace = ?1 AND pos <= ?2`
)

// pruneFeed is the Collect of the feed. A reader looks for what is old, so that the
// writer is asked only when there is something.
func (s *Store) pruneFeed(ctx context.Context, ns string) (more bool, err error) {
	var cut int64
	err = s.readFeed(ctx, ns, func(v *View, state store.FeedState) (err error) {
		cut, more, err = v.oldFeed(state)
		return err
	})
	if err != nil || cut == 0 {
		return false, err
	}
	return more, s.write(ctx, ns, rules.MaxMoves, func(t *Tx) error {
		if err := t.stmt(sqlPruned).Text(1, t.ns).Int(2, cut).Run(); err != nil {
			return err
		}
		return t.stmt(sqlPruneFeed).Text(1, t.ns).Int(2, cut).Run()
	})
}

// oldFeed returns the position up to which rows are past their retention. An old row behind a
// young row stays, whichever clock caused this.
func (v *View) oldFeed(state store.FeedState) (cut int64, more bool, err error) {
	f, err := v.feed()
	if err != nil {
		return 0, false, err
	}
	before := int64(math.MaxInt64) // of a feed that has ended
	if f.keep > 0 {
		before = v.now().UnixMicro() - f.keep
	}
	n := 0
	st := v.stmt(sqlOldFeed).Text(1, v.ns).Int(2, int64(rules.MaxMoves))
	for st.Next() {
		pos := st.ColInt(0)
		if pos > state.Newest || pos > f.pruned && st.ColInt(1) >= before {
			break
		}
		cut = pos
		n++
	}
	return cut, n == rules.MaxMoves, st.Done()
}
