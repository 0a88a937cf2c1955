package web_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/dashboard"
)

// wire is a proxy between the browser and the server, which can fail.
type wire struct {
	http.Handler

	mu     sync.Mutex
	change *sync.Cond
	broken string                     // "", "401", "503", "cut", "buffering", "data": no answer about tasks, "clock": ahead by an hour, or "upgraded": newer pages
	open   map[int]context.CancelFunc // open streams
	count  int                        // streams so far
}

func newWire(h http.Handler) *wire {
	n := &wire{Handler: h, open: map[int]context.CancelFunc{}}
	n.change = sync.NewCond(&n.mu)
	return n
}

func (n *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	broken := n.broken
	n.mu.Unlock()
	switch {
	case r.URL.Path == "/dashboard.json" && broken == "upgraded":
		_, _ = w.Write([]byte(`{"build": "another"}`)) // the client has disconnected
	case strings.HasPrefix(r.URL.Path, "/v1/") && broken == "data" && r.URL.Path != "/v1/me" && r.URL.Path != "/v1/features":
		http.Error(w, "out of order", http.StatusInternalServerError)
	case strings.HasPrefix(r.URL.Path, "/v1/") && broken == "401":
		http.Error(w, "the session has ended", http.StatusUnauthorized)
	case strings.HasPrefix(r.URL.Path, "/v1/") && broken == "503":
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
	case strings.HasPrefix(r.URL.Path, "/v1/") && broken == "cut":
		panic(http.ErrAbortHandler)
	case r.URL.Path != "/v1/watch":
		n.Handler.ServeHTTP(w, r)
	case broken == "buffering":
		all := &buffer{header: http.Header{}, status: http.StatusOK}
		n.Handler.ServeHTTP(all, r)
		for name, values := range all.header {
			w.Header()[name] = values
		}
		w.WriteHeader(all.status)
		_, _ = w.Write(all.Bytes()) // the client has disconnected
	default:
		if broken == "clock" {
			w = ahead{w}
		}
		ctx, cancel := context.WithCancel(r.Context())
		n.mu.Lock()
		n.count++
		no := n.count
		n.open[no] = cancel
		n.change.Broadcast()
		n.mu.Unlock()
		defer func() {
			cancel()
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.open, no)
			n.change.Broadcast()
		}()
		n.Handler.ServeHTTP(w, r.WithContext(ctx))
	}
}

// set changes what is broken, and ends the streams.
func (n *wire) set(broken string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = broken
	for _, cancel := range n.open {
		cancel()
	}
}

// await waits until so many streams are open.
func (n *wire) await(t *testing.T, open int) {
	t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		late = true
		n.change.Broadcast()
	})
	defer timer.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.open) != open {
		if late {
			t.Fatalf("%d streams are open, want %d", len(n.open), open)
		}
		n.change.Wait()
	}
}

// ahead is an answer of a server whose clock is an hour ahead.
type ahead struct{ http.ResponseWriter }

var frameTime = regexp.MustCompile(`{"at":(\d+)`)

func (a ahead) Write(p []byte) (int, error) {
	_, err := a.ResponseWriter.Write(frameTime.ReplaceAllFunc(p, func(at []byte) []byte {
		ms, _ := strconv.ParseInt(string(at[len(`{"at":`):]), 10, 64) // the expression has digits
		return fmt.Appendf(nil, `{"at":%d`, ms+time.Hour.Milliseconds())
	}))
	return len(p), err
}

func (a ahead) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// buffer is a proxy that sends an answer when it has all of it.
type buffer struct {
	bytes.Buffer
	header http.Header
	status int
}

func (b *buffer) Header() http.Header    { return b.header }
func (b *buffer) WriteHeader(status int) { b.status = status }
func (b *buffer) Flush()                 {}

// All tabs are live over one connection, also after the first is closed.
func TestTabs(t *testing.T) {
	t.Parallel()
	n := 12
	if testing.Short() {
		n = 3
	}
	w := newWorld(t)
	between := newWire(w.dashboard(dashboard.Config{}))
	root := w.serve(between)
	holder := openTab(t) // its storage is that of all tabs
	var tabs []*tab
	for range n {
		b := holder.beside()
		b.visit(root + "tasks")
		tabs = append(tabs, b)
	}
	for _, b := range tabs {
		b.ready()
	}
	between.await(t, 1)
	shows := func(id string) {
		t.Helper()
		for _, b := range tabs {
			b.until(`document.querySelector('[data-id="` + id + `"]')?.innerText.match(/succeeded/i)`)
		}
		between.await(t, 1)
	}
	shows(w.enqueue(work{Do: "ok"}).String())
	tabs[0].close()
	tabs = tabs[1:]
	shows(w.enqueue(work{Do: "ok"}).String())
}

// A lost connection is a banner that goes away by itself; the page shows what changed meanwhile, without a reload.
func TestReconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	between := newWire(w.dashboard(dashboard.Config{}))
	b := openTab(t)
	b.allow("503")
	b.allow("ERR_EMPTY_RESPONSE")
	b.allow("ERR_INCOMPLETE_CHUNKED_ENCODING")
	b.visit(w.serve(between) + "tasks")
	b.ready()
	eval[bool](b, "window.kept = true")
	for _, broken := range []string{"503", "cut"} {
		between.set(broken)
		b.until(`document.querySelector(".banner.bad")`)
		id := w.enqueue(work{Do: "ok"}).String()
		between.set("")
		b.until(`!document.querySelector(".banner.bad")`)
		b.until(`document.querySelector('[data-id="` + id + `"]')`)
		b.until(`document.querySelector(".link-state.live, .link-state.polling")`) // a refused stream is tried again after a while
		if !eval[bool](b, "window.kept === true") {
			t.Error("the page was loaded again")
		}
	}
}

// Behind a proxy that holds streams back the page polls.
func TestBufferingProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	between := newWire(w.dashboard(dashboard.Config{}))
	between.set("buffering")
	b := openTab(t)
	b.visit(w.serve(between) + "tasks")
	b.until(`document.querySelector(".link-state.polling")`)
	id := w.enqueue(work{Do: "ok"}).String()
	b.until(`document.querySelector('[data-id="` + id + `"]')`)
	if eval[bool](b, `!!document.querySelector(".banner.bad")`) {
		t.Error("polling is shown as a lost connection")
	}
}
