package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Config configures an API. The zero value of each field works, except of the first two.
type Config struct {
	Client    *weaver.Client // required
	Authorize Authorizer     // authenticates requests: Tokens.Authorize, Passwords.Authorize, Open, or a function of the program; required

	// Login makes POST /login turn one of these tokens into a browser cookie. Default: nil, without
	// that path.
	Login *Tokens

	AllowedHosts   []string // additional values of Host that an Open API serves, without a port; "*" is any. Default: empty
	TrustedOrigins []string // origins, as "https://ops.example.com", whose pages may send requests that change something. Default: only the API's own

	// TrustedProxies are the addresses or networks, as "10.0.0.0/8", of proxies whose
	// X-Forwarded-For identifies the client. Limits by address need it: without it all clients
	// behind a proxy have one address. Default: empty.
	TrustedProxies []string

	MaxBody     int64         // limit of a request's body in bytes. Default 1 MiB
	MaxInput    int64         // limit of a body with task inputs in bytes. Default 8 MiB
	MaxValues   int           // limit of elements and members in the JSON of a body, and of all large bodies in progress. Default 250,000
	BodyTimeout time.Duration // limit for receiving a body. Default 30 s
	Timeout     time.Duration // limit for processing and writing a response. Default 30 s; ?wait= adds to it
	MaxWait     time.Duration // maximum of ?wait=. Default 60 s
	MaxQuery    int           // limit of q in bytes. Default 2 KiB

	// CommandLogs opens the output of one attempt of a command task; fs.ErrNotExist means that it
	// is not kept here. Default nil: /v1/tasks/{id}/logs has only the lines that engines store
	// (weaver.PersistLogs).
	CommandLogs func(t *task.Task, attempt int) (io.ReadCloser, error)

	MaxStreams                  int // limit of open streams. Default 1,000
	MaxStreamsPerPrincipal      int // of one principal's name. Default 200
	MaxLongRequests             int // limit of concurrent waits (?wait=) and downloads. Default 1,000
	MaxLongRequestsPerPrincipal int // of one principal's name. Default 200

	// MaxBodiesPerPrincipal limits the bodies in progress of one principal's name, or of one
	// address on public routes; further ones wait. Default 64.
	MaxBodiesPerPrincipal int

	MaxTopics     int           // topics of one stream. Default 20
	StreamTimeout time.Duration // limit for a client of a stream to read the sent data; then the stream is cut. Default 10 s

	// MaxStreamAge ends each stream at that age or up to a tenth earlier, so that a client without
	// permission does not stay: it reconnects and continues. Default 1 h.
	MaxStreamAge time.Duration

	// MaxSearchesPerPrincipal limits the different topics tasks:QUERY that the streams of one name
	// watch and that need more than an index. Default 20.
	MaxSearchesPerPrincipal int

	// Metrics gathers the response of GET /metrics: for example a registry with NewStoreMetrics,
	// NewMetrics and the collectors of the process. Default: NewStoreMetrics alone.
	Metrics Gatherer

	// ReadyChecks are additional conditions of GET /readyz, which always checks the store. Default: empty.
	ReadyChecks []ReadyCheck

	// Orders makes the API accept orders at /do/order and webhooks at /do/webhook. Default: nil, without
	// these paths.
	Orders *OrderConfig

	Logger *slog.Logger // failures of the server. Default slog.Default()
}

// withDefaults returns the configuration with its defaults, and an error for invalid values.
func (cfg Config) withDefaults() (Config, error) {
	var problems []error
	if cfg.Client == nil {
		problems = append(problems, errors.New("the Client is nil: give it the one of weaver.NewClient, or an engine's"))
	}
	if cfg.Authorize == nil {
		problems = append(problems, errors.New("Authorize is nil: use the Authorize of LoadTokens or LoadPasswords, or Open if your middleware already authenticates requests"))
	}
	orDefault(&problems, "MaxBody", &cfg.MaxBody, 1<<20)
	orDefault(&problems, "MaxInput", &cfg.MaxInput, 8<<20)
	orDefault(&problems, "MaxValues", &cfg.MaxValues, 250_000)
	orDefault(&problems, "MaxBodiesPerPrincipal", &cfg.MaxBodiesPerPrincipal, 64)
	orDefault(&problems, "BodyTimeout", &cfg.BodyTimeout, 30*time.Second)
	orDefault(&problems, "Timeout", &cfg.Timeout, 30*time.Second)
	orDefault(&problems, "MaxWait", &cfg.MaxWait, 60*time.Second)
	orDefault(&problems, "MaxQuery", &cfg.MaxQuery, 2<<10)
	orDefault(&problems, "MaxStreams", &cfg.MaxStreams, 1000)
	orDefault(&problems, "MaxStreamsPerPrincipal", &cfg.MaxStreamsPerPrincipal, 200)
	orDefault(&problems, "MaxLongRequests", &cfg.MaxLongRequests, 1000)
	orDefault(&problems, "MaxLongRequestsPerPrincipal", &cfg.MaxLongRequestsPerPrincipal, 200)
	orDefault(&problems, "MaxTopics", &cfg.MaxTopics, 20)
	orDefault(&problems, "MaxSearchesPerPrincipal", &cfg.MaxSearchesPerPrincipal, 20)
	orDefault(&problems, "MaxStreamAge", &cfg.MaxStreamAge, time.Hour)
	orDefault(&problems, "StreamTimeout", &cfg.StreamTimeout, 10*time.Second)
	for i := range cfg.ReadyChecks {
		if cfg.ReadyChecks[i].Name == "" || cfg.ReadyChecks[i].Check == nil {
			problems = append(problems, fmt.Errorf("ReadyChecks[%d] lacks its Name or Check", i))
		}
	}
	if cfg.Orders != nil {
		own := *cfg.Orders
		problems = append(problems, own.withDefaults(cfg.Client)...)
		cfg.Orders = &own
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = storeMetrics(&cfg)
	}
	if len(problems) > 0 {
		return cfg, fmt.Errorf("%w: %w", weaver.ErrConfig, errors.Join(problems...))
	}
	return cfg, nil
}

func orDefault[N int | int64 | time.Duration](problems *[]error, name string, v *N, otherwise N) {
	switch {
	case *v < 0:
		*problems = append(*problems, fmt.Errorf("%s is %v: want more than 0, or 0 for the default, %v", name, *v, otherwise))
	case *v == 0:
		*v = otherwise
	}
}

// API is the handler. It can be mounted under any path with http.StripPrefix; all its links are
// relative.
type API struct {
	cfg    Config
	log    *slog.Logger
	client *weaver.Client
	mux    *http.ServeMux
	origin *http.CrossOriginProtection
	paths  map[string]map[string]*route // by pattern, by method
	fails  *failures                    // wrong tokens, by address. A correct token is never rejected: it cannot be guessed

	told *failures // log lines about wrong credentials

	proxies []netip.Prefix
	quiet   quiet // limits log lines while a store is unavailable
	types   *types
	spec    func() ([]byte, error) // /openapi.json, built at the first request

	streams   opened
	long      opened // waits and downloads
	bodies    *bodies
	orders    *orderDesk
	searching searching
	hub       *hub

	ctx  context.Context // ends when the API stops
	stop context.CancelCauseFunc

	over  context.Context // ends a grace period later: it cuts unanswered requests
	grace time.Duration
}

// New returns an API. It opens no resources and starts no goroutines; Stop ends its streams.
func New(cfg Config) (*API, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &API{cfg: cfg, log: cfg.Logger, client: cfg.Client, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(), fails: newFailures(), told: newFailures(), types: &types{client: cfg.Client, turns: newCheckTurns(cfg.Client)}, hub: newHub(&cfg), bodies: newBodies(&cfg), orders: newOrderDesk(cfg.Orders)}
	for _, o := range cfg.TrustedOrigins {
		if err := a.origin.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("%w: TrustedOrigins: %w", weaver.ErrConfig, err)
		}
	}
	if a.proxies, err = parseProxies(cfg.TrustedProxies); err != nil {
		return nil, err
	}
	a.ctx, a.stop = context.WithCancelCause(context.Background())
	over, end := context.WithCancelCause(context.Background())
	a.over, a.grace = over, stopGrace
	context.AfterFunc(a.ctx, func() { time.AfterFunc(a.grace, func() { end(errStopping) }) })
	list := a.routes()
	a.paths = byPattern(list)
	for pattern, methods := range a.paths {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.dispatch(w, r, methods) })
	}
	a.spec = sync.OnceValues(func() ([]byte, error) { return document(list) })
	return a, nil
}

// errStopping is the cause that ends running requests when the API stops.
var errStopping = errors.New("the server stops")

// stopGrace is the time that running requests have to finish when the API stops.
const stopGrace = 5 * time.Second

// answerWithin is the time in which a request ended by the stop can write its response.
const answerWithin = time.Second

// Stop ends the open streams and waits, for which an http.Server's Shutdown would wait, and refuses
// new ones. Five seconds later it ends all other requests, too.
func (a *API) Stop() { a.stop(errStopping) }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = a.from(r)
	out := a.begin(w, r)
	w = out
	defer out.forget()
	defer a.recovered(out, r)
	if p := a.admit(r); p != nil {
		writeProblem(w, p)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// begin sets the deadlines of the request's body and of the response, and the common headers. A
// slower response sets another deadline.
func (a *API) begin(w http.ResponseWriter, r *http.Request) *writer {
	out := &writer{ResponseWriter: w}
	rc, now := http.NewResponseController(out), time.Now() // a test's recorder has no deadlines
	_ = rc.SetWriteDeadline(now.Add(a.cfg.BodyTimeout + a.cfg.Timeout))
	if r.ContentLength != 0 { // also for an unread body: the server looks for the next request after it
		_ = rc.SetReadDeadline(now.Add(a.cfg.BodyTimeout))
	}
	out.forget = context.AfterFunc(a.over, func() { // a client that neither sends nor reads does not delay the stop
		_ = rc.SetReadDeadline(time.Now())
		_ = rc.SetWriteDeadline(time.Now().Add(answerWithin))
	})
	h := out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	return out
}

// recovered answers a request whose handler panicked.
func (a *API) recovered(w *writer, r *http.Request) {
	p := recover()
	err, _ := p.(error)
	switch {
	case p == nil:
	case errors.Is(err, http.ErrAbortHandler):
		panic(p)
	default:
		a.panicked(r, p)
		if w.begun {
			panic(http.ErrAbortHandler)
		}
		writeProblem(w, internal.of("The server's log says what happened."))
	}
}

// writer records whether the response has begun, so that no second one is written into it.
type writer struct {
	http.ResponseWriter
	begun  bool
	forget func() bool // called when the request ends
}

func (w *writer) WriteHeader(status int) {
	w.begun = w.begun || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap implements the interface that http.ResponseController uses.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// panicked logs a panic with the stack of the recovery.
func (a *API) panicked(r *http.Request, p any) {
	a.log.ErrorContext(r.Context(), "a request made its handler panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
}

// maxURL limits the path and query of a request.
const maxURL = 16 << 10

// admit rejects requests regardless of their route.
func (a *API) admit(r *http.Request) *Problem {
	if len(r.URL.RawQuery)+len(r.URL.Path) > maxURL {
		return urlTooLong.of("They have more than %d bytes.", maxURL)
	}
	if at := r.URL.EscapedPath(); path.Clean(at) != at {
		return noRoute.of("%q is not a path of this API: /openapi.json lists them. A path has no empty parts, no dots and no slash at its end.", at)
	}
	if _, pattern := a.mux.Handler(r); pattern == "" {
		return noRoute.of("%q is not a path of this API: /openapi.json lists them.", r.URL.Path)
	}
	return nil
}

// dispatch serves a path.
func (a *API) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*route) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rt := methods[method]
	if rt == nil || rt.stream && r.Method == http.MethodHead {
		p := wrongMethod.of("%s has no %s: it has %s.", r.URL.Path, r.Method, allowed(methods))
		p.Allow = allowed(methods)
		writeProblem(w, p)
		return
	}
	c := &call{api: a, w: w, r: r, route: rt}
	defer c.release()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// serve makes the checks that all routes share, then calls the route's handler.
func (c *call) serve() error {
	if err := c.guarded(); err != nil {
		return err
	}
	if c.route.body == nil && c.r.ContentLength != 0 {
		return badRequest.of("%s takes no body.", c.route.id)
	}
	if err := c.acceptable(); err != nil {
		return err
	}
	if err := c.checkTexts(); err != nil {
		return err
	}
	if err := c.checkQuery(); err != nil {
		return err
	}
	if err := c.checkHeaders(); err != nil {
		return err
	}
	if !c.route.stream {
		rc := http.NewResponseController(c.w)
		_ = rc.SetWriteDeadline(time.Now().Add(c.api.cfg.BodyTimeout + c.api.cfg.Timeout + c.api.cfg.MaxWait)) // a test's recorder has no deadline
	}
	return c.route.handle(c)
}

// hostAllowed reports whether the API serves the Host of a request.
func (a *API) hostAllowed(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	for _, h := range a.cfg.AllowedHosts {
		if h == "*" || strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// fail writes the response for an error.
func (c *call) fail(err error) {
	if _, made := errors.AsType[*Problem](err); !made && c.r.Context().Err() != nil { // a missing body also ends the context
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	p := c.problem(err, "a request failed")
	if p.Type == ProblemBase+tooManyFailures.Name {
		c.tellGuessing()
	}
	if p.Status == http.StatusConflict && c.conditional && errors.Is(err, store.ErrChanged) {
		p = preconditionBad.of("%s", err)
	}
	if w, is := c.w.(*writer); is && w.begun {
		panic(http.ErrAbortHandler) // the client sees that it was cut
	}
	writeProblem(c.w, p)
}

// maxTold limits the addresses with wrong credentials that are logged in a minute.
const maxTold = 20

// tellGuessing logs once a minute that an address sends wrong credentials.
func (c *call) tellGuessing() {
	addr := addressOf(c.r)
	if c.api.told.add(addr, 1) && c.api.told.add("", maxTold) {
		c.api.log.WarnContext(c.r.Context(), "an address sends wrong credentials, and is refused for a minute", "address", addr, "operation", c.route.id)
	}
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
