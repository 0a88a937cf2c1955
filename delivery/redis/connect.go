package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/goweaver/weaver/delivery"
)

// attempt is a call of rueidis.NewClient, which takes no context.
type attempt struct {
	ctx context.Context

	mu    sync.Mutex
	stops []func() bool
}

// watch closes a connection if the attempt's context ends before the attempt.
func (a *attempt) watch(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops = append(a.stops, context.AfterFunc(a.ctx, func() { _ = conn.Close() }))
}

func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, stop := range a.stops {
		stop()
	}
}

// dial connects for rueidis.
func (t *Transport) dial(call context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(call, dialTimeout)
	defer cancel()
	defer context.AfterFunc(t.group.Context(), cancel)()
	a := t.attempt.Load()
	if a != nil {
		defer context.AfterFunc(a.ctx, cancel)()
	}
	var conn net.Conn
	var err error
	if config != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, t.target.network, addr)
	} else {
		conn, err = d.DialContext(ctx, t.target.network, addr)
	}
	if err != nil {
		return nil, err
	}
	if a != nil {
		a.watch(conn)
	}
	// The handshake does not look at the end of the call either.
	context.AfterFunc(call, func() {
		if !errors.Is(context.Cause(call), errDone) {
			_ = conn.Close()
		}
	})
	return &ownedConn{conn, context.AfterFunc(t.group.Context(), func() { _ = conn.Close() })}, nil
}

// ownedConn is a connection that ends with Transport.Close, which so waits for no answer of Redis.
type ownedConn struct {
	net.Conn
	stop func() bool
}

func (c *ownedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// connect returns the client, which it creates at the first success. rueidis repairs its connections from then on.
func (t *Transport) connect(ctx context.Context) (rueidis.Client, error) {
	if c := t.client.Load(); c != nil {
		return *c, nil
	}
	select {
	case t.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.connecting }()
	if c := t.client.Load(); c != nil {
		return *c, nil
	}
	if t.group.Context().Err() != nil {
		return nil, delivery.ErrClosed
	}
	a := &attempt{ctx: ctx}
	t.attempt.Store(a)
	c, err := rueidis.NewClient(t.target.option)
	t.attempt.Store(nil)
	a.end()
	if err != nil {
		return nil, err
	}
	t.client.Store(&c)
	return c, nil
}

// drop closes a client that does not recover. The next call connects anew.
func (t *Transport) drop(c rueidis.Client) {
	if p := t.client.Load(); p != nil && *p == c && t.client.CompareAndSwap(p, nil) {
		t.group.Go("close a connection to Redis", func(context.Context) error {
			c.Close()
			return nil
		})
	}
}

var (
	// errSilent means that Redis did not answer in time.
	errSilent = errors.New("no answer within " + answerTimeout.String())
	// errDone ends the context of a call that has returned.
	errDone = errors.New("the call has returned")
)

// do calls f, which may block in Redis for a time, and calls it again if the connection broke: it may have been idle for
// long.
func (t *Transport) do(ctx context.Context, block time.Duration, f func(context.Context, rueidis.Client) error) error {
	err := t.try(ctx, block, f)
	if broken(err) {
		err = t.try(ctx, block, f)
	}
	return t.explain(ctx, err)
}

func (t *Transport) try(ctx context.Context, block time.Duration, f func(context.Context, rueidis.Client) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.group.Context().Err() != nil {
		return delivery.ErrClosed
	}
	// With a deadline rueidis would not see an earlier end of the context.
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errDone)
	defer context.AfterFunc(ctx, func() { cancel(ctx.Err()) })()
	defer context.AfterFunc(t.group.Context(), func() { cancel(delivery.ErrClosed) })()
	defer time.AfterFunc(block+answerTimeout, func() { cancel(errSilent) }).Stop()
	c, err := t.connect(call)
	if err == nil {
		if err = f(call, c); errors.Is(err, rueidis.ErrClosing) || redisError(err, "READONLY") {
			t.drop(c)
		}
	}
	if err != nil && call.Err() != nil {
		return context.Cause(call)
	}
	return err
}
