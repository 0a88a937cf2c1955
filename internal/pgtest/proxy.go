package pgtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a network between a client and a server that a test can make fail.
type Proxy struct {
	url, target string
	listener    net.Listener
	ends        sync.WaitGroup
	swallowed   chan struct{} // receives a value after something was swallowed

	mu      sync.Mutex
	changed *sync.Cond
	held    Direction
	links   map[*link]bool
	closed  bool
}

// Direction is a direction of data.
type Direction uint8

// Directions of [Proxy.Swallow].
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// A link is a connection through the proxy.
type link struct {
	client, server net.Conn
	cut            bool
}

// NewProxy starts a proxy to the server of a URL, which may be PgBouncer. It ends at the end
// of the test.
func NewProxy(t testing.TB, of string) *Proxy {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		t.Fatalf("a proxy for the test: %q is not the URL of a server on a port", of)
	}
	p := &Proxy{target: u.Host, links: make(map[*link]bool), swallowed: make(chan struct{}, 1)}
	p.changed = sync.NewCond(&p.mu)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatalf("a proxy for the test: %v", err)
	}
	u.Host = p.listener.Addr().String()
	p.url = u.String()
	outside(func() { p.ends.Go(p.accept) })
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Errorf("close the proxy: %v", err)
		}
	})
	return p
}

// URL returns the URL of the same database through the proxy.
func (p *Proxy) URL() string { return p.url }

// Cut closes all connections on both sides. New connections are possible.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	p.changed.Broadcast()
}

// CutServer closes the server's side of all connections, like a server that gave its client
// up. While ToClient is swallowed the client does not see it.
func (p *Proxy) CutServer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		_ = l.server.Close() // it may be closed
	}
}

// Swallow makes the network lose data in a direction, in addition to directions swallowed
// before. Nothing arrives, and no connection ends or begins. After Resume the data arrives,
// because TCP sends lost data again.
func (p *Proxy) Swallow(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held |= d
}

// AwaitSwallowed waits until data, or a connection, was swallowed since the last call.
func (p *Proxy) AwaitSwallowed() { <-p.swallowed }

// Resume ends the swallowing.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = 0
	p.changed.Broadcast()
}

// arrives waits until data of a link may pass in a direction, and reports whether the link
// still exists.
func (p *Proxy) arrives(l *link, d Direction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held&d != 0 && !l.cut && !p.closed {
		select {
		case p.swallowed <- struct{}{}:
		default:
		}
		p.changed.Wait()
	}
	return !l.cut && !p.closed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it was closed
		}
		p.ends.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	l := &link{client: client}
	if !p.arrives(l, ToServer) {
		_ = client.Close()
		return
	}
	var err error
	if l.server, err = net.Dial("tcp", p.target); err != nil {
		_ = client.Close() // the client sees a refused server
		return
	}
	p.mu.Lock()
	if p.closed {
		l.close()
	}
	p.links[l] = true
	p.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { p.copy(l, l.client, l.server, ToClient) })
	p.copy(l, l.server, l.client, ToServer)
	back.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// copy forwards data from src to dst. The end of a side travels like data.
func (p *Proxy) copy(l *link, dst, src net.Conn, d Direction) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if !p.arrives(l, d) {
			return
		}
		if err != nil {
			_ = dst.Close() // both sides may close at once
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			if p.arrives(l, Both&^d) {
				_ = src.Close() // both sides may close at once
			}
			return
		}
	}
}

// close ends both sides; the proxy's mutex is held.
func (l *link) close() {
	l.cut = true
	_ = l.client.Close() // they may be closed
	_ = l.server.Close()
}

func (p *Proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.close()
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	outside(p.ends.Wait)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop to listen: %w", err)
	}
	return nil
}
