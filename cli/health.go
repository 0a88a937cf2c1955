package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
)

// healthFlag is the flag of processes without the HTTP API.
type healthFlag struct {
	Health string `placeholder:"HOST:PORT" help:"Address of /healthz, /readyz, /metrics; default: none."`
}

// listen starts to listen on the address of --health; nil without the flag.
func (f healthFlag) listen() (*door, error) {
	if f.Health == "" {
		return nil, nil
	}
	return listenFor("--health", f.Health, credentials{
		authorize: httpapi.Open(httpapi.Principal{Name: "health", Access: httpapi.Read}),
		open:      true,
		hosts:     []string{"*"}, // probes use the address of a container
	})
}

// openHealth sets up /healthz, /readyz and /metrics of a process without the HTTP API.
func (d *door) openHealth(s *session, client *weaver.Client) error {
	if d == nil {
		return nil
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(d.collectors()...)
	api, err := httpapi.New(httpapi.Config{
		Client: client, Authorize: d.who.authorize, AllowedHosts: d.who.hosts,
		Metrics: metrics, ReadyChecks: d.health.checks(s), Logger: warnings(s.errs),
	})
	if err != nil {
		return badInput("", "%w", err)
	}
	d.handle(healthOnly(api), warnings(s.errs))
	return nil
}

// healthPaths are the paths that --health serves.
var healthPaths = []string{"/healthz", "/readyz", "/metrics"}

// healthOnly passes requests for the paths of --health to an API.
func healthOnly(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(healthPaths, r.URL.EscapedPath()) {
			http.NotFound(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// during serves while fn runs, until it returns: probes get answers during a drain, too. A nil door runs fn alone.
func (d *door) during(ctx context.Context, run func(name string, fn func(context.Context) error), fn func() error) error {
	if d == nil {
		return fn()
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	run("health", func(context.Context) error {
		defer close(done)
		return d.serve(serving, context.WithoutCancel(ctx), time.Second)
	})
	err := fn()
	stop()
	<-done
	return err
}

// greetHealth prints the address. The door may be nil.
func (d *door) greetHealth(say func(string, ...any)) {
	if d != nil {
		say("health at %sreadyz", d.url())
	}
}

// draining makes the process unready. The door may be nil.
func (d *door) draining() {
	if d != nil {
		d.health.stop()
	}
}

// processHealth holds the state of a process for its readiness checks. It is a plug-in of the process's engine.
type processHealth struct {
	mu       sync.Mutex
	stopping bool
	engine   *weaver.Engine // nil: the process has none
	joined   chan struct{}  // closed when the engine has joined as a worker
	failed   error          // of the engine's last join or heartbeat
}

func newProcessHealth() *processHealth { return &processHealth{joined: make(chan struct{})} }

// Install implements weaver.Plugin.
func (h *processHealth) Install(s *weaver.Setup) error {
	s.OnStoreCall(func(op string, _ time.Duration, err error) {
		if op != "join" && op != "heartbeat" {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.failed = err; err == nil && !h.hasJoined() {
			close(h.joined)
		}
	})
	return nil
}

func (h *processHealth) hasJoined() bool {
	select {
	case <-h.joined:
		return true
	default:
		return false
	}
}

// watch sets the engine of the process.
func (h *processHealth) watch(eng *weaver.Engine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engine = eng
}

// stop makes the process unready.
func (h *processHealth) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// checks returns the readiness checks of the process. The API checks the store itself.
func (h *processHealth) checks(s *session) []httpapi.ReadyCheck {
	checks := []httpapi.ReadyCheck{{Name: "process", Check: h.checkProcess}}
	if h.engine != nil {
		checks = append(checks, httpapi.ReadyCheck{Name: "engine", Check: h.checkEngine})
	}
	if s.hints != nil {
		checks = append(checks, httpapi.ReadyCheck{Name: "delivery", Check: s.hints.ready, Optional: true})
	}
	if s.remote != nil {
		checks = append(checks, httpapi.ReadyCheck{Name: "bucket", Check: s.remote.ready, Optional: true})
	}
	return checks
}

func (h *processHealth) checkProcess(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return errors.New("it is stopping")
	}
	return nil
}

// joinWait is the time that a readiness check waits for an engine that is starting.
const joinWait = 2 * time.Second

// checkEngine fails if the engine is not a live worker of the store, or can run no task type. The checks are shown to
// everybody, so the error of the store is not part of them; the engine logs it.
func (h *processHealth) checkEngine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	select {
	case <-h.joined:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return errors.New("its last heartbeat was not stored; the log of the process has the error")
	}
	if !h.hasJoined() {
		return errors.New("it has not joined the store yet")
	}
	types := make(map[string]bool)
	for _, handler := range h.engine.Handlers() {
		types[handler.Name()] = true
	}
	n := len(types)
	for _, tr := range h.engine.Troubles() {
		delete(types, tr.TaskType)
	}
	if n > 0 && len(types) == 0 {
		return fmt.Errorf("it can run no task type at the moment (%d of %d); worker ls has the reasons", n, n)
	}
	return nil
}
