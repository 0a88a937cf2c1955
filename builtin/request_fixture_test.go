package builtin_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/weavertest"
)

// lan is an in-memory network with its own names, for requests in a bubble, where
// hours pass at once.
type lan struct {
	t       testing.TB
	trusted *x509.CertPool

	mu    sync.Mutex
	hosts map[string]*lanListener // by "name:port"
	down  map[string]error        // error of dialling, by address
}

func (l *lan) dial(ctx context.Context, _, address string) (net.Conn, error) {
	l.mu.Lock()
	host, err := l.hosts[address], l.down[address]
	l.mu.Unlock()
	switch {
	case err != nil:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	case host == nil:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
	}
	here, there := net.Pipe()
	select {
	case host.conns <- there:
		return here, nil
	case <-host.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fail makes dialling an address fail, until err is nil.
func (l *lan) fail(address string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down[address] = err
}

func (l *lan) listen(address string) *lanListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	host := &lanListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.hosts[address] = host
	return host
}

// serve answers for http://name.
func (l *lan) serve(name string, h http.HandlerFunc) {
	l.t.Helper()
	srv := &httptest.Server{Listener: l.listen(name + ":80"), Config: &http.Server{Handler: h}}
	srv.Start()
	l.t.Cleanup(srv.Close)
}

// serveTLS answers for https://name. Certificates are trusted for example.com.
func (l *lan) serveTLS(name string, h http.HandlerFunc) {
	l.t.Helper()
	srv := &httptest.Server{Listener: l.listen(name + ":443"), Config: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}}
	srv.StartTLS()
	l.trusted.AddCert(srv.Certificate())
	l.t.Cleanup(srv.Close)
}

type lanListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *lanListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *lanListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *lanListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// webFixture is the environment of one case: a network, and a store with a worker
// that requests URLs of the network.
type webFixture struct {
	*testing.T
	*lan
	env *weavertest.Env
	cfg weaver.Config

	mu   sync.Mutex
	errs []error // errors of the handler, by attempt
}

func webCase(t *testing.T, name string, play func(w *webFixture)) {
	t.Helper()
	webCaseLimit(t, name, 0, play)
}

// webCaseLimit is webCase with an inline limit.
func webCaseLimit(t *testing.T, name string, inlineLimit int, play func(w *webFixture)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &webFixture{T: t, lan: &lan{t: t, trusted: x509.NewCertPool(), hosts: make(map[string]*lanListener), down: make(map[string]error)}}
			handler, closeIdle := builtin.RequestOver(w.dial, w.trusted)
			w.cfg = weaver.Config{InlineLimit: inlineLimit, Handlers: []weaver.Handler{handler}, Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{w.watch}}
			w.env = weavertest.NewConfig(t, w.cfg)
			play(w)
			closeIdle()
		})
	})
}

// watch is middleware that records the handler's errors.
func (w *webFixture) watch(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		out, err := next(ctx, input)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
		return out, err
	}
}

// engine starts a worker that runs until it is stopped.
func (w *webFixture) engine() (e *weaver.Engine, stop func()) {
	w.Helper()
	e, err := weaver.New(w.env.DB(), w.cfg)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return e, func() {
		w.Helper()
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run: %v", err)
		}
	}
}

// run sends a request that must succeed.
func (w *webFixture) run(in builtin.RequestInput, opts ...weaver.EnqueueOption) builtin.RequestOutput {
	w.Helper()
	return weavertest.Run(w.T, w.env, builtin.Request, in, opts...)
}

// fails sends a request that must fail after the given number of attempts, with
// all the given texts in the message.
func (w *webFixture) fails(attempts int, in builtin.RequestInput, says ...string) {
	w.Helper()
	_ = w.failure(attempts, in, says...)
}

// failure is fails, and returns the task.
func (w *webFixture) failure(attempts int, in builtin.RequestInput, says ...string) *weaver.TaskError {
	w.Helper()
	_, err := weavertest.RunErr(w.T, w.env, builtin.Request, in, weaver.MaxAttempts(3))
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok {
		w.Fatalf("the request of %s: %v, want a *weaver.TaskError", in.URL, err)
	}
	if te.Attempts != attempts {
		w.Errorf("%d attempts, want %d: %s", te.Attempts, attempts, te.Message)
	}
	for _, part := range says {
		if !strings.Contains(te.Message, part) {
			w.Errorf("the message does not say %q:\n%s", part, te.Message)
		}
	}
	return te
}

// visits is a handler that records its requests.
type visits struct {
	answer http.HandlerFunc // nil: 200 and nothing

	mu   sync.Mutex
	seen []visit
}

type visit struct {
	at     time.Time
	method string
	host   string
	path   string
	header http.Header
	body   string
}

func (v *visits) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	v.mu.Lock()
	v.seen = append(v.seen, visit{time.Now(), r.Method, r.Host, r.URL.String(), r.Header.Clone(), string(body)})
	v.mu.Unlock()
	if v.answer != nil {
		v.answer(w, r)
	}
}

func (v *visits) all() []visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

func (v *visits) last(t testing.TB) visit {
	t.Helper()
	all := v.all()
	if len(all) == 0 {
		t.Fatal("no request came")
	}
	return all[len(all)-1]
}

// to answers with a redirect.
func to(status int, where string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", where)
		w.WriteHeader(status)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

func saying(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text) }
}

func mustURL(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
