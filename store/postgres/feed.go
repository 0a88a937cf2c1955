package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

//go:embed feed.sql
var feedSQL string

const (
	sqlFeedTrigger = `
SELECT 1 FROM pg_trigger WHERE tgname = ?1 AND tgfoid IN (
  SELECT oid FROM pg_proc WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = CAST('weaver_feed' AS regclass)))`
	sqlFeedWait = `SELECT set_config('lock_timeout', ?1, true)`
	sqlSkipFeed = `SELECT weaver_feed_skip()`
	sqlFeedLast = `SELECT weaver_feed_last()`
	sqlFeedNow  = `SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)`
	sqlSnapshot = `SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)`
)

// MakeFeed implements sqlstore.Feeds. It needs the rights of the tables' owner, as migrations do.
// Each trigger has its own transaction, which waits for the writers of its table. One transaction
// for all triggers would hold one table while it waits for the next, and deadlock with the writers.
// Crash here: the existing triggers do nothing, and the next call creates the rest.
func (d database) MakeFeed(ctx context.Context, _ string) error {
	for _, sql := range strings.Split(feedSQL, "\n---\n")[1:] {
		err := d.db.pool.Tx(ctx, false, func(c *conn.Conn) error { return makeTrigger(c, sql) })
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == "42501" { // insufficient_privilege
			return &refusal{kind: store.ErrReadOnly, cause: err, text: fmt.Sprintf(
				"%s: user %q may not make the triggers that write it (%s): begin it once as the owner of the tables, who ran `weaver migrate up`; then this user may change it",
				d.db.src.shown, d.db.src.config.User, refused.Message)}
		}
		if err != nil {
			return d.db.translate(err)
		}
	}
	return nil
}

// makeTrigger creates a trigger if it does not exist.
func makeTrigger(c *conn.Conn, sql string) error {
	if err := lockAdvisory(c, "feed triggers", ""); err != nil {
		return err
	}
	name := strings.Fields(sql)[2] // CREATE TRIGGER name
	st := c.Stmt(sqlFeedTrigger).Text(1, name)
	made := st.One()
	if err := st.Done(); err != nil || made {
		return err
	}
	if err := c.Stmt(sqlFeedWait).Text(1, fmt.Sprint(ddlWait.Milliseconds())).Done(); err != nil {
		return err
	}
	return c.Stmt(sql).Run()
}

// SkipFeed implements sqlstore.Feeds.
func (database) SkipFeed(t *sqlstore.Tx) (pos int64, err error) {
	st := t.Conn().Stmt(sqlSkipFeed)
	if st.One() {
		pos = st.ColInt(0)
	}
	return pos, st.Done()
}

// feedHorizon determines the position of the feeds below which all transactions have ended.
//
// A transaction draws positions from a sequence while it runs, so a lower position may be committed
// after a higher one. The transaction gets its ID before its first position. All transactions that
// have drawn positions so far therefore have lower IDs than an ID drawn now. (xmax of a snapshot
// may be lower: it follows the last transaction that ended, not the last that began.) Once all
// transactions below that ID have ended, every position drawn so far is decided.
type feedHorizon struct {
	begun atomic.Int64  // number of reads begun
	turn  chan struct{} // holds one token, of the caller that reads; the caller owns the fields below

	ended   int64      // the last read that succeeded
	waiting []feedMark // positions whose transactions have not all ended, in order
	all     int64
	last    int64
}

type feedMark struct{ last, before int64 }

// maxFeedMarks bounds the number of marks kept during a long transaction.
const maxFeedMarks = 64

// FeedHorizon implements sqlstore.Feeds. Concurrent callers share one read, which begins after all
// of them called.
func (d database) FeedHorizon(ctx context.Context) (all, last int64, ok bool, err error) {
	h := &d.db.feed
	asked := h.begun.Load()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return 0, 0, false, context.Cause(ctx)
	}
	if h.ended <= asked {
		look := h.begun.Add(1)
		if err := h.look(func(sql string) (n int64, err error) {
			err = d.db.pool.Tx(ctx, sql != sqlFeedNow, func(c *conn.Conn) error {
				st := c.Stmt(sql)
				if st.One() {
					n = st.ColInt(0)
				}
				return st.Done()
			})
			return n, err
		}); err != nil {
			return 0, 0, false, d.db.translate(err)
		}
		h.ended = look
	}
	return min(h.all, h.last), h.last, true, nil
}

// look reads the horizon again. Each read is a transaction of its own, after the one before.
func (h *feedHorizon) look(read func(sql string) (int64, error)) error {
	last, err := read(sqlFeedLast)
	if err != nil {
		return err
	}
	if last < h.last { // failover to another server, or a restored backup
		h.all, h.waiting = 0, nil
	}
	if h.last = last; last <= h.all {
		return nil
	}
	if n := len(h.waiting); n < maxFeedMarks && (n == 0 || last > h.waiting[n-1].last) {
		now, err := read(sqlFeedNow)
		if err != nil {
			return err
		}
		h.waiting = append(h.waiting, feedMark{last, now})
	}
	oldest, err := read(sqlSnapshot)
	if err != nil {
		return err
	}
	for len(h.waiting) > 0 && h.waiting[0].before <= oldest {
		h.all = h.waiting[0].last
		h.waiting = h.waiting[1:]
	}
	return nil
}
