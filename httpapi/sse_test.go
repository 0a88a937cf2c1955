package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// pipes is a server whose connections are pipes, for synctest bubbles.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	gone  chan struct{}
	srv   *http.Server
}

func servePipes(t *testing.T, h http.Handler) *pipes {
	p := &pipes{conns: make(chan net.Conn), gone: make(chan struct{})}
	p.srv = &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = p.srv.Serve(p) }()
	t.Cleanup(func() { _ = p.srv.Close() })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.gone) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

// client returns a client of the server that is closed at the end of the test.
func (p *pipes) client(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: p.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// ServePipes serves on pipes, and returns a client of the server.
func ServePipes(t *testing.T, h http.Handler) *http.Client { return servePipes(t, h).client(t) }

// sseFrame is one frame of a stream, or a comment.
type sseFrame struct {
	Event, ID, Data string
	Comment         bool
	Retry           int
}

// sseReader reads the frames of a response.
type sseReader struct {
	*http.Response
	scan *bufio.Scanner
}

// connect opens a stream.
func connect(t *testing.T, c *http.Client, path string) *sseReader {
	t.Helper()
	r := tryConnect(t, c, path)
	if r.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(r.Body)
		t.Fatalf("GET %s answered %s: %s", path, r.Status, body)
	}
	return r
}

func tryConnect(t *testing.T, c *http.Client, path string) *sseReader {
	t.Helper()
	res, err := c.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(nil, 1<<20)
	return &sseReader{res, scan}
}

// next returns the next frame, and false at the end.
func (r *sseReader) next() (f sseFrame, ok bool) {
	any := false
	for r.scan.Scan() {
		line := r.scan.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && any:
			return f, true
		case line == "":
			continue
		case name == "":
			f.Comment = true
		case name == "event":
			f.Event = value
		case name == "id":
			f.ID = value
		case name == "data":
			f.Data += value
		case name == "retry":
			f.Retry, _ = strconv.Atoi(value)
		}
		any = true
	}
	return f, false
}

// testAPI returns an API on a store; nil means memstore.New().
func testAPI(t *testing.T, s store.Store, change func(*Config)) *API {
	t.Helper()
	if s == nil {
		s = memstore.New()
	}
	c, err := weaver.NewClient(s, weaver.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Client: c, Authorize: Open(Principal{Name: "test", Access: Full}), Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return a
}

// streaming returns a handler that sends a stream.
func streaming(a *API, run func(*stream) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{api: a, w: w, r: r, route: &route{id: "test", stream: true}, who: Principal{Name: r.URL.Query().Get("who")}}
		if err := c.stream(run); err != nil {
			c.fail(err)
		}
	})
}

func untilDone(s *stream) error {
	<-s.ctx.Done()
	return context.Cause(s.ctx)
}

func TestStreamHeadersAndHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, streaming(a, func(s *stream) error {
			f, err := frame("hello", "7", map[string]string{"text": "<a>\nb"})
			if err == nil {
				err = s.send(f)
			}
			return errors.Join(err, untilDone(s))
		}))
		r := connect(t, srv.client(t), "/")
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("the header %s is %q, want %q", name, got, want)
			}
		}
		if f, _ := r.next(); f.Retry != 2000 {
			t.Errorf("the stream begins with %+v, want retry: 2000", f)
		}
		if f, _ := r.next(); f != (sseFrame{Event: "hello", ID: "7", Data: `{"text":"<a>\nb"}`}) {
			t.Errorf("the frame is %+v", f)
		}
		for range 3 {
			before := time.Now()
			if f, _ := r.next(); !f.Comment || time.Since(before) != heartbeat {
				t.Errorf("%+v came after %s, want a comment after %s", f, time.Since(before), heartbeat)
			}
		}
		before := time.Now()
		a.Stop()
		if f, more := r.next(); more || r.scan.Err() != nil || time.Since(before) != 0 {
			t.Errorf("after Stop came %+v after %s, want the end at once (%v)", f, time.Since(before), r.scan.Err())
		}
		res := tryConnect(t, srv.client(t), "/")
		if res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("after Stop a stream is answered with %s, want 503", res.Status)
		}
	})
}

func TestStreamOfSlowReaderIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		var took time.Duration
		var failure error
		done := make(chan struct{})
		srv := servePipes(t, streaming(a, func(s *stream) error {
			defer close(done)
			f, err := frame("large", "", strings.Repeat("x", 1<<20))
			if err != nil {
				return err
			}
			before := time.Now()
			failure = s.send(f)
			took = time.Since(before)
			if s.ctx.Err() == nil {
				t.Error("the stream goes on")
			}
			return failure
		}))
		connect(t, srv.client(t), "/").next() // and read nothing more
		<-done
		if failure == nil || took != 10*time.Second {
			t.Errorf("the write ended after %s with %v, want an error after 10s", took, failure)
		}
	})
}

// TestStreamStopsWhileWriting: Stop ends a stream whose write waits for the client.
func TestStreamStopsWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		done := make(chan struct{})
		srv := servePipes(t, streaming(a, func(s *stream) error {
			defer close(done)
			return s.send(appendFrame(nil, "large", "", make([]byte, 1<<20)))
		}))
		connect(t, srv.client(t), "/").next()
		synctest.Wait()
		before := time.Now()
		a.Stop()
		<-done
		if d := time.Since(before); d != 0 {
			t.Errorf("the stream ended %s after Stop, want at once", d)
		}
	})
}

func TestStreamOfClientThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		done := make(chan struct{})
		srv := servePipes(t, streaming(a, func(s *stream) error {
			defer close(done)
			return untilDone(s)
		}))
		r := connect(t, srv.client(t), "/")
		before := time.Now()
		_ = r.Body.Close()
		<-done
		if d := time.Since(before); d != 0 {
			t.Errorf("the stream ended %s after its client", d)
		}
		synctest.Wait()
		if a.streams.all != 0 || len(a.streams.byName) != 0 {
			t.Errorf("%d streams are counted, by name %v", a.streams.all, a.streams.byName)
		}
	})
}

func TestStreamEndsWithProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, streaming(a, func(*stream) error { return store.ErrUnavailable }))
		r := connect(t, srv.client(t), "/")
		r.next()
		f, _ := r.next()
		var p Problem
		if err := json.Unmarshal([]byte(f.Data), &p); err != nil || f.Event != "error" || p.Status != http.StatusServiceUnavailable {
			t.Errorf("the stream ends with %+v (%v), want an error frame with status 503", f, err)
		}
		if f, more := r.next(); more {
			t.Errorf("after that comes %+v", f)
		}
	})
}

// TestStreamPanic: a stream that panics is cut in a way that its client can detect.
func TestStreamPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, streaming(a, func(*stream) error { panic("oh") }))
		r := connect(t, srv.client(t), "/")
		r.next()
		if f, more := r.next(); more || r.scan.Err() == nil {
			t.Errorf("a stream that panicked went on with %+v (%v)", f, r.scan.Err())
		}
	})
}

func TestStreamLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := testAPI(t, nil, nil)
		srv := servePipes(t, streaming(a, untilDone))
		c := srv.client(t)
		var open []*sseReader
		for i := range 1000 {
			open = append(open, connect(t, c, "/?who="+strconv.Itoa(i%5)))
		}
		refused := func(who, want string) {
			t.Helper()
			r := tryConnect(t, c, "/?who="+who)
			body, _ := io.ReadAll(r.Body)
			if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" || !strings.Contains(string(body), want) {
				t.Errorf("one stream more is answered with %s, Retry-After %q: %s", r.Status, r.Header.Get("Retry-After"), body)
			}
		}
		refused("9", "1000 streams are open")
		_ = open[0].Body.Close()
		_ = open[1].Body.Close()
		synctest.Wait()
		refused("2", `\"2\" has 200 streams open`)
		connect(t, c, "/?who=9")
	})
}

// TestStreamNeedsFlush: a stream that would be buffered is rejected.
func TestStreamNeedsFlush(t *testing.T) {
	a := testAPI(t, nil, nil)
	rec := httptest.NewRecorder()
	h := streaming(a, func(*stream) error {
		t.Error("it was begun")
		return nil
	})
	h.ServeHTTP(struct{ http.ResponseWriter }{rec}, httptest.NewRequest(http.MethodGet, "/", nil))
	if rec.Code != http.StatusInternalServerError || rec.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("it is answered with %d, %v", rec.Code, rec.Header())
	}
}
