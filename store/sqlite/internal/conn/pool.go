package conn

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by a closed [Pool].
var ErrClosed = errors.New("no more operations are taken")

const (
	sqlBeginRead = "BEGIN"
	sqlRollback  = "ROLLBACK"
)

// Pool is a small pool of connections that read concurrently with the writer.
type Pool struct {
	open  func() (*Conn, error)
	slots chan struct{} // one token for each running read

	mu     sync.Mutex
	idle   []*Conn
	closed bool
}

// NewPool returns a pool of at most n connections, which open opens.
func NewPool(n int, open func() (*Conn, error)) *Pool {
	return &Pool{open: open, slots: make(chan struct{}, n)}
}

// Read runs fn in its own read transaction, whose statements end with ctx. It returns the
// cause of ctx if ctx ends first, and [ErrClosed] after Close.
//
// Transactions should be short. An old snapshot keeps the write-ahead log from starting over,
// so long reads page through several transactions.
func (p *Pool) Read(ctx context.Context, fn func(*Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.slots }()
	c, err := p.get()
	if err != nil {
		return err
	}
	err = c.readTx(ctx, fn)
	p.put(c)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *Conn) readTx(ctx context.Context, fn func(*Conn) error) error {
	if err := c.Stmt(sqlBeginRead).Run(); err != nil {
		return err
	}
	undo := c.Interruptible(ctx)
	err := fn(c)
	undo()
	if err != nil {
		c.Reset()
	}
	return errors.Join(err, c.Stmt(sqlRollback).Run())
}

func (p *Pool) get() (*Conn, error) {
	c, err := p.pop()
	if c != nil || err != nil {
		return c, err
	}
	// Outside the lock: SQLite may have to wait for a file lock here, and other readers wait
	// for the mutex without a limit.
	return p.open()
}

// pop returns an idle connection, or nil.
func (p *Pool) pop() (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c, nil
}

func (p *Pool) put(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !c.Autocommit() {
		_ = c.Close() // it only read
		return
	}
	p.idle = append(p.idle, c)
}

// Idle calls fn with each connection that is not in use.
func (p *Pool) Idle(fn func(*Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		fn(c)
	}
}

// Close closes the idle connections. Connections in use are closed when they are put back.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.idle = nil
}
