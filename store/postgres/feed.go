package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

//go:embed feed.sql
var feedSQL string

const (
	sqlFeedTriggers = `
SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'weaver\_feed\_%' AND tgfoid IN (
  SELECT oid FROM pg_proc WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = CAST('weaver_feed' AS regclass)))`
	sqlFeedWait = `SELECT set_config('lock_timeout', ?1, true)`
	sqlSkipFeed = `SELECT nextval('weaver_feed_pos')`
	sqlFeedLast = `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM weaver_feed_pos`
	sqlSnapshot = `
SELECT CAST(CAST(pg_snapshot_xmin(s) AS text) AS bigint), CAST(CAST(pg_snapshot_xmax(s) AS text) AS bigint)
FROM (SELECT pg_current_snapshot() AS s) AS now`
)

// MakeFeed implements sqlstore.Feeds. It needs the rights of the tables' owner, as
// migrations do, and waits for the transactions that write to them.
func (d database) MakeFeed(t *sqlstore.Tx) error {
	if err := lockAdvisory(d.c, "feed triggers", ""); err != nil {
		return err
	}
	want := strings.Split(feedSQL, "\n---\n")[1:]
	st := t.Conn().Stmt(sqlFeedTriggers)
	made := st.One() && st.ColInt(0) == int64(len(want))
	if err := st.Done(); err != nil || made {
		return err
	}
	if err := t.Conn().Stmt(sqlFeedWait).Text(1, fmt.Sprint(ddlWait.Milliseconds())).Done(); err != nil {
		return err
	}
	for _, sql := range want {
		if err := t.Conn().Stmt(sql).Run(); err != nil {
			return err
		}
	}
	return nil
}

// SkipFeed implements sqlstore.Feeds.
func (database) SkipFeed(t *sqlstore.Tx) (pos int64, err error) {
	st := t.Conn().Stmt(sqlSkipFeed)
	if st.One() {
		pos = st.ColInt(0)
	}
	return pos, st.Done()
}

// feedHorizon is up to which position of the feeds all transactions have ended.
//
// Positions are drawn from a sequence in the middle of transactions, so one may be
// committed after a higher one. A transaction that drew a position had an ID
// before. So those that drew what was given away up to now have IDs below the end of
// a snapshot that is taken later; and once all transactions below that have ended, all
// positions up to it are decided.
type feedHorizon struct {
	mu      sync.Mutex
	waiting []feedMark // for transactions to end, by position
	all     int64
}

type feedMark struct{ last, before int64 }

// maxFeedMarks bounds what is remembered while a transaction goes on for long.
const maxFeedMarks = 64

// FeedHorizon implements sqlstore.Feeds. The two reads are transactions of their own,
// so that the snapshot is younger than the position.
func (d database) FeedHorizon(ctx context.Context) (all, last int64, ok bool, err error) {
	var oldest, end int64
	err = d.db.pool.Tx(ctx, true, func(c *conn.Conn) error {
		st := c.Stmt(sqlFeedLast)
		if st.One() {
			last = st.ColInt(0)
		}
		return st.Done()
	})
	if err == nil {
		err = d.db.pool.Tx(ctx, true, func(c *conn.Conn) error {
			st := c.Stmt(sqlSnapshot)
			if st.One() {
				oldest, end = st.ColInt(0), st.ColInt(1)
			}
			return st.Done()
		})
	}
	if err != nil {
		return 0, 0, false, d.db.translate(err)
	}
	return d.db.feed.seen(last, oldest, end), last, true, nil
}

// seen takes what was read, and returns up to where all is decided.
func (h *feedHorizon) seen(last, oldest, end int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.waiting); last > h.all && n < maxFeedMarks && (n == 0 || last > h.waiting[n-1].last) {
		h.waiting = append(h.waiting, feedMark{last, end})
	}
	for len(h.waiting) > 0 && h.waiting[0].before <= oldest {
		h.all = h.waiting[0].last
		h.waiting = h.waiting[1:]
	}
	return min(h.all, last)
}
