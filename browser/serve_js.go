package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"syscall/js"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/promise"
)

// window is the number of bytes of an answer that a page may have in its queue before the handler waits.
const window = 4 << 20

const inTab = true

// capsuleFile returns the capsule to open instead of the program's file, or "".
func capsuleFile() string { return os.Getenv("WEAVER_CAPSULE") }

// runs counts the calls of serve: each is a session of its own for the pages, which repeat the requests without an answer.
var runs int

// serve answers the requests of the pages until ctx ends.
//
// Pages send {kind: "request", client, id, method, path, headers, body}, {kind: "read", client, id, bytes} for parts
// that they have read, and {kind: "cancel", client, id} on the channel weaver:NAME. The answers go to the channel
// weaver:NAME:CLIENT: {kind: "head", id, status, headers}, {kind: "part", id, bytes}, {kind: "end", id}. What is sent
// on the first channel reaches all pages: {kind: "ready", session} announces a new worker.
func serve(ctx context.Context, _ Config, _ *weaver.Engine, h *http.ServeMux, streams func()) error {
	name := os.Getenv("WEAVER_TAB")
	if name == "" {
		return fmt.Errorf("%w: WEAVER_TAB is not set: start the program by weaver.js", weaver.ErrConfig)
	}
	runs++
	s := &pages{ctx: ctx, h: h, name: "weaver:" + name, session: fmt.Sprint(os.Getenv("WEAVER_SESSION"), "-", runs), calls: make(map[string]*call), clients: make(map[string]js.Value)}
	s.all = js.Global().Get("BroadcastChannel").New(s.name)
	s.group = group.New(ctx)
	heard := js.FuncOf(func(_ js.Value, args []js.Value) any {
		s.hear(args[0].Get("data"))
		return nil
	})
	defer heard.Release()
	s.all.Set("onmessage", heard)
	s.ready()
	js.Global().Call("postMessage", map[string]any{"kind": "ready"})
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), ErrGone) {
		js.Global().Call("postMessage", map[string]any{"kind": "gone", "text": ErrGone.Error() + ": load this page again to begin anew"})
	}
	streams()
	s.all.Call("close")
	return s.group.Wait()
}

// pages are the pages that this worker answers.
type pages struct {
	ctx     context.Context
	h       http.Handler
	name    string
	session string
	all     js.Value // the channel of all pages
	group   *group.Group

	mu      sync.Mutex
	calls   map[string]*call    // by client and id
	clients map[string]js.Value // the channels of the pages
}

func (s *pages) ready() {
	s.all.Call("postMessage", map[string]any{"kind": "ready", "session": s.session})
}

// hear handles a message. It must not block.
func (s *pages) hear(m js.Value) {
	client, id := m.Get("client").String(), m.Get("id").String()
	key := client + " " + id
	switch m.Get("kind").String() {
	case "hello":
		s.ready()
	case "bye":
		s.mu.Lock()
		if c, ok := s.clients[client]; ok {
			c.Call("close")
			delete(s.clients, client)
		}
		for _, c := range s.calls {
			if c.client == client {
				c.cancel()
			}
		}
		s.mu.Unlock()
	case "request":
		c := newCall(s, client, id)
		s.mu.Lock()
		s.calls[key] = c
		s.mu.Unlock()
		s.group.Go("answer a page", func(context.Context) error {
			c.serve(m)
			return nil
		})
	case "read", "cancel":
		s.mu.Lock()
		c := s.calls[key]
		s.mu.Unlock()
		switch {
		case c == nil:
		case m.Get("kind").String() == "cancel":
			c.cancel()
		default:
			c.credit(m.Get("bytes").Int())
		}
	}
}

// send sends a message to one page.
func (s *pages) send(client string, m map[string]any) {
	s.mu.Lock()
	channel, ok := s.clients[client]
	if !ok {
		channel = js.Global().Get("BroadcastChannel").New(s.name + ":" + client)
		s.clients[client] = channel
	}
	s.mu.Unlock()
	channel.Call("postMessage", m)
}

// call is a request, and the http.ResponseWriter of its answer.
type call struct {
	pages      *pages
	client, id string
	ctx        context.Context
	cancel     context.CancelFunc
	header     http.Header
	begun      bool
	buffer     bytes.Buffer

	mu    sync.Mutex
	left  int           // bytes that the page may still get
	freed chan struct{} // has an element when left has grown
}

func newCall(s *pages, client, id string) *call {
	c := &call{pages: s, client: client, id: id, header: make(http.Header), left: window, freed: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	return c
}

func (c *call) credit(n int) {
	c.mu.Lock()
	c.left += n
	c.mu.Unlock()
	select {
	case c.freed <- struct{}{}:
	default:
	}
}

// serve answers a request.
func (c *call) serve(m js.Value) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			fmt.Fprintf(os.Stderr, "panic in the answer to a page: %v\n%s", p, debug.Stack())
			c.pages.send(c.client, map[string]any{"kind": "end", "id": c.id, "broken": true})
		}
		c.cancel()
		c.pages.mu.Lock()
		delete(c.pages.calls, c.client+" "+c.id)
		c.pages.mu.Unlock()
	}()
	r, err := c.request(m)
	if err != nil {
		http.Error(c, err.Error(), http.StatusBadRequest)
	} else {
		c.pages.h.ServeHTTP(c, r)
	}
	c.Flush()
	c.pages.send(c.client, map[string]any{"kind": "end", "id": c.id})
}

func (c *call) request(m js.Value) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if b := m.Get("body"); b.Truthy() {
		raw := make([]byte, b.Get("byteLength").Int())
		js.CopyBytesToGo(raw, b)
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(c.ctx, m.Get("method").String(), "http://localhost"+m.Get("path").String(), body)
	if err != nil {
		return nil, err
	}
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0"
	headers := m.Get("headers")
	for i := range headers.Length() {
		r.Header.Add(headers.Index(i).Index(0).String(), headers.Index(i).Index(1).String())
	}
	return r, nil
}

// Header implements http.ResponseWriter.
func (c *call) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *call) WriteHeader(status int) {
	if c.begun || status < 200 {
		return
	}
	c.begun = true
	headers := []any{}
	for name, values := range c.header {
		for _, v := range values {
			headers = append(headers, []any{name, v})
		}
	}
	c.pages.send(c.client, map[string]any{"kind": "head", "id": c.id, "status": status, "headers": headers})
}

// Write implements http.ResponseWriter. It waits while the page has many bytes to read.
func (c *call) Write(p []byte) (n int, err error) {
	if !c.begun {
		if c.header.Get("Content-Type") == "" {
			c.header.Set("Content-Type", http.DetectContentType(p))
		}
		c.WriteHeader(http.StatusOK)
	}
	const most = 256 << 10
	for n < len(p) {
		size := min(len(p)-n, most-c.buffer.Len())
		c.buffer.Write(p[n : n+size])
		n += size
		if c.buffer.Len() == most {
			if err := c.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Flush implements http.Flusher.
func (c *call) Flush() {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	_ = c.flush() // the page has gone
}

func (c *call) flush() error {
	if c.buffer.Len() == 0 {
		return nil
	}
	for {
		c.mu.Lock()
		ok := c.left > 0
		if ok {
			c.left -= c.buffer.Len()
		}
		c.mu.Unlock()
		if ok {
			break
		}
		select {
		case <-c.freed:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	part := js.Global().Get("Uint8Array").New(c.buffer.Len())
	js.CopyBytesToJS(part, c.buffer.Bytes())
	c.buffer.Reset()
	_, err := promise.Try(func() js.Value {
		c.pages.send(c.client, map[string]any{"kind": "part", "id": c.id, "bytes": part})
		return js.Undefined()
	})
	return err
}
