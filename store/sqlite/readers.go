package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goweaver/weaver/internal/batch"
)

// maxReaders is how many reads go on at once.
const maxReaders = 4

// readers is a small pool of connections that read beside the writer.
type readers struct {
	slots chan struct{} // one token per read that goes on

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

func (r *readers) init(n int) { r.slots = make(chan struct{}, n) }

// view is one read transaction: a consistent picture of a namespace.
type view struct {
	*conn
	db *DB
	ns string
}

// read runs fn in a read transaction of its own. Transactions are short: a
// snapshot held for long keeps the log from starting over, so whoever reads
// much pages through several.
func (db *DB) read(ctx context.Context, doing, ns string, fn func(*view) error) error {
	r := &db.readers
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	defer func() { <-r.slots }()
	c, err := r.get(ctx, db)
	if err != nil {
		return db.translate(doing, err)
	}
	err = c.readTx(ctx, func() error { return fn(&view{conn: c, db: db, ns: ns}) })
	r.put(c)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	return db.translate(doing, err)
}

const sqlBeginRead = "BEGIN"

func (c *conn) readTx(ctx context.Context, fn func() error) error {
	if err := c.stmt(sqlBeginRead).run(); err != nil {
		return err
	}
	undo := c.interruptible(ctx)
	err := fn()
	undo()
	if err != nil {
		c.reset()
	}
	return errors.Join(err, c.stmt(sqlRollback).run())
}

func (r *readers) get(ctx context.Context, db *DB) (*conn, error) {
	c, err := r.pop()
	if c != nil || err != nil {
		return c, err
	}
	// Not under the lock: SQLite may have to wait here, and others wait for
	// the lock without an end.
	return db.connect(ctx, true)
}

// pop returns an idle connection, or nil.
func (r *readers) pop() (*conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, batch.ErrClosed
	}
	n := len(r.idle)
	if n == 0 {
		return nil, nil
	}
	c := r.idle[n-1]
	r.idle = r.idle[:n-1]
	return c, nil
}

func (r *readers) put(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !c.raw.GetAutocommit() {
		_ = c.close() // it only read
		return
	}
	r.idle = append(r.idle, c)
}

// close closes the idle connections; those in use follow when they are put back.
func (r *readers) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.idle {
		_ = c.close()
	}
	r.idle = nil
}
