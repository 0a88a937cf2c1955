package postgres

import (
	"context"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// Translate returns a statement as PostgreSQL reads it.
func Translate(sql string) string { return conn.Translate(sql) }

// Prepare has the server read a statement.
func (db *DB) Prepare(ctx context.Context, sql string) error {
	return db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		_, err := c.Statement(sql)
		return err
	})
}

// Unsafe opens a store on a server that runs with fsync off.
func Unsafe() Option { return func(o *options) { o.unsafe = true } }

// BubbleClock has a store take the time of this process, which in a bubble of synctest
// is the bubble's.
func BubbleClock() Option { return func(o *options) { o.clock = store.Now } }

// OtherMachine opens a store as a process does that sees no lock of this machine.
func OtherMachine() Option { return func(o *options) { o.elsewhere = true } }

// Kill makes the process of a worker that joined through db look dead.
func (db *DB) Kill(id store.WorkerID) { db.proofs.workers.Load().Kill(id) }

// ScanPage sets how many tasks, jobs or keys one part of a scan has.
func ScanPage(n int) Option { return func(o *options) { o.scan = n } }

// PlansLast sets how long a connection keeps the plans of its statements.
func PlansLast(d time.Duration) Option { return func(o *options) { o.plansLast = d } }

// Later opens a store as a later program does, whose further migrations have these texts.
func Later(sql ...string) Option { return func(o *options) { o.later = sql } }

// RawURL returns the URL that the store was opened with.
func (db *DB) RawURL() string { return db.src.config.ConnString() }

// AlarmAt lowers the bounds of Health.
func AlarmAt(transaction, due time.Duration, dead int64) Option {
	return func(o *options) { o.bounds = bounds{transaction, dead, due} }
}
