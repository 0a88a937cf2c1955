package pgtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Truncate empties the tables of a store in a schema of a database, and drops tables of tests.
// Rows of the migrations stay.
func Truncate(url, schema string) (err error) {
	outside(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 2 { // a test may have ended the connection, or changed the tables
			var c *cleaner
			if c, err = cleanerOf(ctx, url, schema); err != nil {
				return
			}
			if err = c.clean(ctx); err == nil {
				cleaners.Lock()
				cleaners.of[url] = c
				cleaners.Unlock()
				return
			}
			err = errors.Join(fmt.Errorf("empty the tables of schema %s: %w", schema, err), c.conn.Close(ctx))
		}
	})
	return err
}

// cleaners holds connections that Truncate reuses, by URL: making one, and planning its query,
// takes most of the time.
var cleaners = struct {
	sync.Mutex
	of map[string]*cleaner
}{of: make(map[string]*cleaner)}

// cleaner empties the tables of a schema.
type cleaner struct {
	conn   *pgconn.PgConn
	schema string
}

// cleanerOf takes the cleaner of a database, or creates it.
func cleanerOf(ctx context.Context, url, schema string) (*cleaner, error) {
	cleaners.Lock()
	c := cleaners.of[url]
	delete(cleaners.of, url)
	cleaners.Unlock()
	if c != nil && c.schema == schema && !c.conn.IsClosed() {
		return c, nil
	}
	if c != nil {
		_ = c.conn.Close(ctx) // it is not used again
	}
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	c = &cleaner{conn, schema}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return c, nil
}

// release closes the reused connection to a database.
func release(url string) error {
	cleaners.Lock()
	c := cleaners.of[url]
	delete(cleaners.of, url)
	cleaners.Unlock()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := c.conn.Close(ctx)
	<-c.conn.CleanupDone()
	return err
}

// prepare prepares the query that finds the tables to clean: tables of the store that are not
// empty, and tables of tests.
func (c *cleaner) prepare(ctx context.Context) error {
	// Without triggers and foreign keys.
	from := " FROM pg_tables WHERE schemaname = " + literal(c.schema) + " AND tablename NOT IN ('weaver_store_meta', 'weaver_schema_versions')"
	tables, err := c.texts(c.conn.Exec(ctx, "SET session_replication_role = replica; SELECT format('%I.%I', schemaname, tablename)"+from))
	if err != nil {
		return err
	}
	sql := "SELECT 'drop', format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN (" + literal(c.schema) + ", 'pg_catalog', 'information_schema')"
	sql += fmt.Sprintf(" UNION ALL SELECT 'new', ''%s HAVING count(*) <> %d", from, len(tables))
	for _, t := range tables {
		name := literal(t[0])
		sql += " UNION ALL SELECT CASE WHEN pg_relation_size(" + name + ") <= 65536 THEN 'delete' ELSE 'truncate' END, " + name + " WHERE EXISTS (SELECT FROM " + t[0] + ")"
	}
	_, err = c.conn.Prepare(ctx, "filled", sql, nil)
	return err
}

// clean empties the tables. Truncating a table creates new files for it and its indexes, so it
// deletes the rows of small tables.
func (c *cleaner) clean(ctx context.Context) error {
	res := c.conn.ExecPrepared(ctx, "filled", nil, nil, nil).Read()
	if res.Err != nil {
		return res.Err
	}
	sql := []string{fmt.Sprintf(`DELETE FROM "%s".weaver_store_meta WHERE namespace <> ''`, strings.ReplaceAll(c.schema, `"`, `""`))}
	var long []string
	for _, r := range res.Rows {
		switch table := string(r[1]); string(r[0]) {
		case "delete":
			sql = append(sql, "DELETE FROM "+table)
		case "drop":
			sql = append(sql, "DROP TABLE "+table+" CASCADE")
		case "new":
			return errors.New("it has other tables than before")
		default:
			long = append(long, table)
		}
	}
	if len(long) > 0 {
		sql = append(sql, "TRUNCATE "+strings.Join(long, ", "))
	}
	_, err := c.texts(c.conn.Exec(ctx, strings.Join(sql, "; ")))
	return err
}

// texts returns the rows of all results.
func (*cleaner) texts(r *pgconn.MultiResultReader) (rows [][]string, err error) {
	all, err := r.ReadAll()
	for _, res := range all {
		for _, row := range res.Rows {
			var texts []string
			for _, v := range row {
				texts = append(texts, string(v))
			}
			rows = append(rows, texts)
		}
	}
	return rows, err
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
