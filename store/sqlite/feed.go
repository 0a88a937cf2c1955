package sqlite

import (
	"context"
	_ "embed"
	"strings"

	"github.com/goweaver/weaver/internal/sqlstore"
)

//go:embed feed.sql
var feedSQL string

// MakeFeed implements sqlstore.Feeds. The triggers belong to the file, so they write the rows
// of every process.
func (d database) MakeFeed(ctx context.Context, ns string) error {
	return d.Write(ctx, ns, sqlstore.Op{Weight: sqlstore.Heavy, Run: func(t *sqlstore.Tx) error {
		for _, sql := range strings.Split(feedSQL, "\n---\n")[1:] {
			if err := t.Conn().Stmt(sql).Run(); err != nil {
				return err
			}
		}
		return nil
	}})
}

// FeedHorizon implements sqlstore.Feeds: one transaction writes at a time.
func (database) FeedHorizon(context.Context) (all, last int64, ok bool, err error) {
	return 0, 0, false, nil
}

const sqlLastInFeed = `
SELECT CASE WHEN f.pruned > l.pos THEN f.pruned ELSE l.pos END + 1
FROM weaver_feeds f, (SELECT coalesce(max(pos), 0) AS pos FROM weaver_feed WHERE namespace = ?1) l WHERE f.namespace = ?1`

// SkipFeed implements sqlstore.Feeds.
func (database) SkipFeed(t *sqlstore.Tx) (pos int64, err error) {
	st := t.Conn().Stmt(sqlLastInFeed).Text(1, t.Namespace())
	if st.One() {
		pos = st.ColInt(0)
	}
	return pos, st.Done()
}
