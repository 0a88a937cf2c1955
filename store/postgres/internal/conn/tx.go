package conn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/store"
)

// ErrEnded means that the transaction ended by something other than Commit or Rollback. Its
// changes may be stored.
var ErrEnded = errors.New("the transaction was ended by a statement inside it")

// endTimeout is the maximum time for ending a failed transaction.
const endTimeout = 5 * time.Second

// txState is a connection's state of its transaction.
type txState struct {
	tx       uint64 // number of transactions so far
	open     bool
	readOnly bool
	begun    int      // round trips before it
	joined   bool     // the transaction is a caller's
	saved    []string // the settings of a caller's transaction
	clock    *Stmt
	now      time.Time
	err      error        // the error with which the transaction failed
	after    func() error // called when the transaction is committed
}

const (
	sqlClock = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
	sqlIdle  = "SELECT set_config('idle_in_transaction_session_timeout', CAST(?1 AS text), true)"
)

// sqlSet sets a transaction's settings, and sqlSettings reads the previous values.
var sqlSet, sqlSettings = settings()

func settings() (set, read string) {
	names := []string{"search_path", "statement_timeout", "lock_timeout"}
	for _, p := range planner {
		names = append(names, p.name)
	}
	var sets, reads []string
	for i, name := range names {
		sets = append(sets, fmt.Sprintf("set_config('%s', CAST(?%d AS text), true)", name, i+1))
		reads = append(reads, fmt.Sprintf("current_setting('%s')", name))
	}
	return "SELECT " + strings.Join(sets, ", "), "SELECT " + strings.Join(reads, ", ")
}

// Use sets the context of statements outside of a transaction. Statements that are sent
// together then commit together.
func (c *Conn) Use(ctx context.Context) { c.ctx = ctx }

// Begin queues the begin of a transaction, whose statements all end with ctx, and the query
// for the server's time. Isolation is READ COMMITTED; a read-only transaction sees one state
// of the database.
func (c *Conn) Begin(ctx context.Context, readOnly bool) error {
	if c.open {
		return errors.New("the connection has an open transaction: end it first")
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	c.readOnly = readOnly
	sql := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	if readOnly {
		sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	_, err := c.control(sql)
	if err == nil {
		err = c.replan()
	}
	if err == nil && !c.kept {
		if err = c.setOurs(); err == nil {
			err = c.exec(sqlIdle, millis(c.IdleTimeout))
		}
	}
	if err == nil {
		err = c.askTime()
	}
	if err != nil {
		c.Rollback()
	}
	return err
}

// Join makes a caller's open transaction on this connection the current one, with our
// search_path and timeouts, until Leave.
func (c *Conn) Join(ctx context.Context) error {
	switch {
	case c.open:
		return errors.New("the connection has an open transaction: end it first")
	case c.pg.TxStatus() == 'E':
		return fmt.Errorf("%w: a statement of it failed, so that it can only be rolled back", store.ErrRestartTx)
	case c.pg.TxStatus() != 'T':
		return errors.New("the transaction has ended: begin one and use it before it is committed or rolled back")
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	c.joined = true
	err := c.join()
	if err != nil {
		c.end()
	}
	return err
}

func (c *Conn) join() error {
	s, err := c.Statement(sqlSettings)
	if err == nil {
		err = s.Send()
	}
	if err == nil {
		err = c.setOurs()
	}
	if err == nil {
		err = c.askTime()
	}
	if err != nil {
		return err
	}
	if !s.Step() {
		return errors.Join(errors.New("the server has no settings"), s.Err())
	}
	for i := range 3 + len(planner) {
		c.saved = append(c.saved, string(s.Raw(i)))
	}
	return s.Reset()
}

// Leave ends the use of a caller's transaction and restores its settings. It returns the error
// with which the transaction failed: then it can only be rolled back.
func (c *Conn) Leave() error {
	if !c.open || !c.joined {
		return errors.New("no transaction was joined")
	}
	err := c.err
	if err == nil {
		if err = c.set(c.saved...); err == nil {
			err = c.Flush()
		}
	}
	_ = c.Flush() // a remaining error does not concern the caller
	c.end()
	return err
}

func (c *Conn) start(ctx context.Context) error {
	if err := c.Flush(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.pg.IsClosed() {
		return errBroken
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	c.txState = txState{tx: c.tx + 1, open: true, begun: c.rounds}
	c.ctx = ctx
	return nil
}

func (c *Conn) end() { c.txState = txState{tx: c.tx + 1} }

// set queues the change of the transaction's settings.
func (c *Conn) set(values ...string) error { return c.exec(sqlSet, values...) }

// setOurs queues the change to our settings.
func (c *Conn) setOurs() error {
	values := []string{c.path, millis(c.StatementTimeout), millis(c.LockTimeout)}
	for _, p := range planner {
		values = append(values, p.value)
	}
	return c.set(values...)
}

// exec queues a statement with text parameters.
func (c *Conn) exec(sql string, values ...string) error {
	s, err := c.Statement(sql)
	for i := 0; err == nil && i < len(values); i++ {
		err = s.BindText(i+1, values[i])
	}
	if err != nil {
		return err
	}
	return s.Exec()
}

func (c *Conn) askTime() error {
	if c.Clock != nil {
		c.now = c.Clock()
		return nil
	}
	s, err := c.Statement(sqlClock)
	if err != nil {
		return err
	}
	c.clock = s
	return s.Send()
}

// Now returns the start time of the transaction by the server's clock. It waits for the
// answers to the queued requests before it.
func (c *Conn) Now() (time.Time, error) {
	if !c.open {
		return time.Time{}, errors.New("no transaction is open")
	}
	if !c.now.IsZero() {
		return c.now, nil
	}
	if !c.clock.Step() {
		return time.Time{}, errors.Join(errors.New("the server has no time"), c.clock.Err())
	}
	c.now = time.UnixMicro(c.clock.Int(0)).UTC()
	return c.now, c.clock.Reset()
}

// Commit ends the transaction. The error wraps [store.ErrUnknown] if COMMIT was sent and its
// answer was lost. It is [ErrEnded] if the transaction has already ended.
func (c *Conn) Commit() error {
	switch {
	case !c.open || c.joined:
		return errors.New("no transaction of our own is open")
	case c.err != nil:
		err := c.err
		c.Rollback()
		return err
	case c.rounds > c.begun && c.pg.TxStatus() == 'I' && !c.pg.IsClosed():
		c.Rollback()
		return ErrEnded
	}
	r, err := c.control("COMMIT")
	if err != nil {
		c.Rollback()
		return err
	}
	err = c.Flush()
	switch {
	case r.err == nil && r.tag == "COMMIT": // regardless of later errors
		err = nil
	case err == nil:
		err = fmt.Errorf("the server answered %s to COMMIT: a statement of the transaction had failed", r.tag)
	case c.mayHaveCommitted(r, err):
		err = fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	if c.pg.TxStatus() != 'I' {
		c.Rollback()
	}
	if err == nil && c.after != nil {
		err = c.after()
	}
	c.end()
	return err
}

// alone commits the statements that queue sends without a BEGIN: the requests up to the end of
// a round trip are one transaction. The session has our settings.
func (c *Conn) alone(ctx context.Context, queue func(*Conn) error, read func() error) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	c.open = false // there is never anything to roll back
	err := c.replan()
	if err == nil {
		err = queue(c)
	}
	if err != nil || len(c.queue) == 0 {
		c.discard()
		return err
	}
	last := c.queue[len(c.queue)-1]
	if err = c.Flush(); err != nil && c.mayHaveCommitted(last, err) {
		err = fmt.Errorf("%w: %w", store.ErrUnknown, err)
	}
	if err == nil && read != nil {
		err = read()
	}
	c.end()
	return err
}

// discard drops queued statements. If statements are queued, it closes the connection.
func (c *Conn) discard() {
	if slices.ContainsFunc(c.queue, func(r *run) bool { return r.kind == runStatement }) {
		_ = c.Close() // the server never receives their end
		c.drop()
	}
	c.end()
}

// mayHaveCommitted reports whether a failed round trip may have committed in its last run.
func (c *Conn) mayHaveCommitted(commit *run, err error) bool {
	var pg *pgconn.PgError
	switch {
	case c.readOnly:
		return false
	case errors.As(err, &pg):
		// An error ends the transaction. The error of a lost session may come from a pooler,
		// which does not know the outcome. The server itself ends no session between the
		// commit and its answer.
		return c.pg.IsClosed() && (c.failed == nil || c.failed == commit) && pg.Routine != "ProcessInterrupts"
	}
	return !pgconn.SafeToRetry(err)
}

// Rollback ends the transaction without a trace, if there is one. If that is impossible, it
// closes the connection, which has the same effect.
func (c *Conn) Rollback() {
	if !c.open || c.joined {
		return
	}
	defer c.end()
	if c.pg.IsClosed() {
		c.drop()
		return
	}
	if c.pipe == nil && c.pg.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), endTimeout)
	defer cancel()
	c.ctx, c.err = ctx, nil
	_, err := c.control("ROLLBACK")
	if err == nil {
		err = c.Flush()
	}
	if err != nil && c.pg.TxStatus() != 'I' && !c.pg.IsClosed() {
		c.err = nil
		if _, err = c.control("ROLLBACK"); err == nil { // the first was skipped, after an error
			err = c.Flush()
		}
	}
	if err != nil && c.pg.TxStatus() != 'I' {
		_ = c.Close() // the transaction ends with it
	}
}

// drop clears the queue of a closed connection.
func (c *Conn) drop() {
	if c.pipe != nil {
		_ = c.Flush() // fails at once
	}
}

// Savepoint queues a savepoint.
func (c *Conn) Savepoint(name string) error { return c.savepoint("SAVEPOINT ", name) }

// Release queues the end of a savepoint and keeps its changes.
func (c *Conn) Release(name string) error { return c.savepoint("RELEASE SAVEPOINT ", name) }

// RollbackTo rolls back to a savepoint, also after an error.
func (c *Conn) RollbackTo(name string) error {
	_ = c.Flush() // the error is being rolled back
	if c.pg.IsClosed() {
		return errors.Join(c.err, errBroken)
	}
	before := c.err
	c.err = nil
	err := c.savepoint("ROLLBACK TO SAVEPOINT ", name)
	if err == nil {
		err = c.Flush()
	}
	if err != nil && before != nil {
		c.err = before
	}
	return err
}

func (c *Conn) savepoint(sql, name string) error {
	_, err := c.control(sql + `"` + name + `"`)
	return err
}
