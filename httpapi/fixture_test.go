package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/httpcontract"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// The task types of the test servers.
type (
	chargeIn struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
		Card   string `json:"card,omitempty" weaver:"redact"`
	}
	chargeOut struct {
		Receipt string `json:"receipt"`
	}
)

var charge = weaver.Define[chargeIn, chargeOut]("acme.billing.charge.v1", weaver.Queue("billing"), weaver.MaxAttempts(1))

// exercised records which operations succeeded in a test; TestMain checks it.
var exercised httpcontract.Record

// server is an API for a test; every response is checked against its document.
type server struct {
	*testing.T
	api      *httpapi.API
	client   *weaver.Client // of the same store
	store    store.Store
	url      string // the URL of the API, with its mount path
	http     *http.Client
	contract *httpcontract.Contract
	log      *lockedBuffer // the API's log
}

// serverOptions are the options of newServer. The zero value is an API over a new memstore that
// accepts every request as one of "ann" with full access.
type serverOptions struct {
	store  store.Store
	mount  string                // the mount path, as /weaver
	direct bool                  // no network, for synctest bubbles. Streams and connection deadlines do not work
	piped  bool                  // over pipes, for bubbles with connection deadlines
	config func(*httpapi.Config) // changes the configuration

	timeout time.Duration // of a request's body; 0: the default
}

// newServer starts an API, and announces the type charge.
func newServer(t *testing.T, o serverOptions) *server {
	t.Helper()
	if o.store == nil {
		o.store = memstore.New()
	}
	s := &server{T: t, store: o.store, log: new(lockedBuffer)}
	client, err := weaver.NewClient(o.store, weaver.ClientConfig{})
	s.no(err)
	s.client = client
	s.no(schema.Announce(t.Context(), client, charge))
	cfg := httpapi.Config{
		Client: client, Authorize: httpapi.Open(httpapi.Principal{Name: "ann", Access: httpapi.Full}),
		Login:  tokensOf(t, "ann full "+hashOf("ann's token")),
		Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	cfg.BodyTimeout = o.timeout
	if o.config != nil {
		o.config(&cfg)
	}
	s.api, err = httpapi.New(cfg)
	s.no(err)
	var handler http.Handler = s.api
	if o.mount != "" {
		handler = http.StripPrefix(o.mount, handler)
	}
	document := httptest.NewRecorder()
	s.api.ServeHTTP(document, httptest.NewRequest(http.MethodGet, "http://localhost/openapi.json", http.NoBody))
	s.contract = contractOf(t, document.Body.Bytes())
	exercised.Expect(s.contract)
	if o.direct {
		s.url = "http://127.0.0.1" + o.mount
		s.http = &http.Client{Transport: s.contract.Transport(t, handlerTransport{handler}, o.mount, &exercised), CheckRedirect: noRedirect}
		return s
	}
	var transport http.RoundTripper
	if o.piped {
		s.url, transport = "http://127.0.0.1", httpapi.ServePipes(t, handler).Transport
	} else {
		listening := httptest.NewServer(handler)
		t.Cleanup(listening.Close)
		s.url, transport = listening.URL, listening.Client().Transport
	}
	t.Cleanup(s.api.Stop)
	s.url += o.mount
	s.http = &http.Client{Transport: s.contract.Transport(t, transport, o.mount, &exercised), CheckRedirect: noRedirect}
	return s
}

// contracts caches parsed documents: parsing a document and its schemas takes as long as a small
// test.
var contracts sync.Map

func contractOf(t *testing.T, document []byte) *httpcontract.Contract {
	t.Helper()
	if c, found := contracts.Load(string(document)); found {
		return c.(*httpcontract.Contract)
	}
	c, err := httpcontract.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	contracts.Store(string(document), c)
	return c
}

// The document would have to declare a redirect.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// onStores runs a test on SQLite, and on PostgreSQL unless -short is set.
func onStores(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.Migrated(t, "httpapi", func(url string) error {
			ctx := withoutFsync(context.Background())
			db, err := postgres.Open(ctx, url)
			if err != nil {
				return err
			}
			return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
		})
		db, err := postgres.Open(withoutFsync(t.Context()), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(t, db)
	})
}

// withoutFsync returns a context that opens the databases of package pgtest.
func withoutFsync(ctx context.Context) context.Context {
	return pgharness.With(ctx, pgharness.Settings{FsyncOff: true})
}

// onSQLite returns a new SQLite store.
func onSQLite(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func (s *server) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// answer is a response with its body.
type answer struct {
	t      *testing.T
	asked  string
	status int
	header http.Header
	body   []byte
}

// do sends a request. A body that is a string or bytes is sent unchanged, with the Content-Type
// application/json; any other body is encoded as JSON. headers are names and values.
func (s *server) do(method, path string, body any, headers ...string) *answer {
	s.Helper()
	var sent io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		sent = strings.NewReader(b)
	case []byte:
		sent = bytes.NewReader(b)
	case io.Reader:
		sent = b
	default:
		raw, err := json.Marshal(b)
		s.no(err)
		sent = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, sent)
	s.no(err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		if headers[i] == "Content-Type" {
			r.Header.Del(headers[i])
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	return s.send(r)
}

func (s *server) send(r *http.Request) *answer {
	s.Helper()
	res, err := s.http.Do(r)
	s.no(err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	s.no(err)
	return &answer{s.T, r.Method + " " + r.URL.RequestURI(), res.StatusCode, res.Header, raw}
}

func (s *server) get(path string, headers ...string) *answer {
	s.Helper()
	return s.do(http.MethodGet, path, nil, headers...)
}

func (s *server) post(path string, body any, headers ...string) *answer {
	s.Helper()
	return s.do(http.MethodPost, path, body, headers...)
}

// want fails the test unless the response has the status.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.asked, a.status, status, a.body)
	}
	return a
}

// into decodes the body.
func (a *answer) into(v any) *answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%s: %v: %s", a.asked, err, a.body)
	}
	return a
}

// problem fails the test unless the response is this problem, and returns the problem.
func (a *answer) problem(status int, name string) *httpapi.Problem {
	a.t.Helper()
	a.want(status)
	p := new(httpapi.Problem)
	a.into(p)
	if p.Type != httpapi.ProblemBase+name {
		a.t.Fatalf("%s: the problem is %s, want %s: %s", a.asked, strings.TrimPrefix(p.Type, httpapi.ProblemBase), name, a.body)
	}
	return p
}

// enqueue stores a task of the type charge over HTTP.
func (s *server) enqueue(opts ...func(*httpapi.Draft)) weaver.TaskID {
	s.Helper()
	d := httpapi.Draft{Type: "acme.billing.charge.v1", Input: json.RawMessage(`{"order":"o-1","amount":5,"card":"4111"}`)}
	for _, o := range opts {
		o(&d)
	}
	var got httpapi.Enqueued
	s.post("/v1/tasks", d).want(http.StatusCreated).into(&got)
	return got.ID
}

// run runs all due tasks. Orders named "bad" fail, "refunded" fail after a cleanup, and "ask"
// block.
func (s *server) run(more ...weaver.Handler) {
	s.Helper()
	e, err := weaver.New(s.store, weaver.Config{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: append(more, charge.Handler(func(ctx context.Context, in chargeIn) (chargeOut, error) {
			receipt, err := weaver.Step(ctx, "pay", func(context.Context) (string, error) { return "r-" + in.Order, nil })
			switch {
			case err != nil:
				return chargeOut{}, err
			case in.Order == "bad":
				return chargeOut{}, errors.New("the card was refused")
			case in.Order == "refunded":
				return chargeOut{}, errors.Join(errors.New("no courier"), weaver.Cleanup(ctx, "refund", func(context.Context) error { return nil }))
			case in.Order == "ask":
				return chargeOut{}, weaver.Blocked("look at it")
			}
			return chargeOut{receipt}, nil
		})),
	})
	s.no(err)
	s.no(e.RunUntilIdle(s.Context()))
}

// order sets the order of a charge.
func order(name string) func(*httpapi.Draft) {
	return func(d *httpapi.Draft) { d.Input = json.RawMessage(`{"order":"` + name + `","amount":5,"card":"4111"}`) }
}

// stateOf reads the state of a task.
func (s *server) stateOf(id weaver.TaskID) weaver.State {
	s.Helper()
	t, err := s.client.Get(s.Context(), id)
	s.no(err)
	return t.State
}

// handlerTransport serves requests without a network.
type handlerTransport struct{ handler http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		p := recover()
		if err, _ = p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
	}()
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:1"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	t.handler.ServeHTTP(rec, in)
	res = rec.Result()
	res.Request = r
	return res, nil
}
