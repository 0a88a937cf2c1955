package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// readyz has a line for each check; a failure is a problem with the first reason.
func TestReadyChecks(t *testing.T) {
	t.Parallel()
	var away, broken, slow error
	hooks := &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
		if c.Method == "Ready" && away != nil {
			return away
		}
		return next(ctx)
	}}
	s := newServer(t, serverOptions{store: storehook.New(memstore.New(), hooks), direct: true, config: func(cfg *httpapi.Config) {
		cfg.ReadyChecks = []httpapi.ReadyCheck{
			{Name: "engine", Check: func(context.Context) error { return broken }},
			{Name: "disk", Check: func(context.Context) error { return nil }},
			{Name: "cache", Optional: true, Check: func(context.Context) error { return slow }},
		}
	}})
	ok := func(name string) httpapi.HealthCheck { return httpapi.HealthCheck{Name: name, Status: "ok"} }
	var ready httpapi.Health
	s.get("/readyz").want(http.StatusOK).into(&ready)
	if want := []httpapi.HealthCheck{ok("store"), ok("engine"), ok("disk"), ok("cache")}; ready.Status != "ready" || !slices.Equal(ready.Checks, want) {
		t.Errorf("ready: %+v", ready)
	}

	slow = errors.New("it does not answer")
	cache := httpapi.HealthCheck{Name: "cache", Status: "degraded", Detail: "it does not answer"}
	s.get("/readyz").want(http.StatusOK).into(&ready)
	if want := []httpapi.HealthCheck{ok("store"), ok("engine"), ok("disk"), cache}; ready.Status != "ready" || !slices.Equal(ready.Checks, want) {
		t.Errorf("a failed optional check: %+v", ready)
	}

	broken = errors.New("it has no heartbeat")
	engine := httpapi.HealthCheck{Name: "engine", Status: "failed", Detail: "it has no heartbeat"}
	p := s.get("/readyz").problem(http.StatusServiceUnavailable, "not-ready")
	if want := []httpapi.HealthCheck{ok("store"), engine, ok("disk"), cache}; p.Detail != "engine: it has no heartbeat" || !slices.Equal(p.Checks, want) {
		t.Errorf("a failed check: %+v", p)
	}

	away = errors.Join(store.ErrNotMigrated, errors.New("postgres://weaver@db.secret/x"))
	a := s.get("/readyz")
	p = a.problem(http.StatusServiceUnavailable, "store-not-migrated")
	if want := []httpapi.HealthCheck{{Name: "store", Status: "failed", Detail: p.Title}, engine, ok("disk"), cache}; !slices.Equal(p.Checks, want) || strings.Contains(string(a.body), "secret") {
		t.Errorf("a store that is not migrated: %s", a.body)
	}
	s.get("/healthz").want(http.StatusOK)

	_, err := httpapi.New(httpapi.Config{ReadyChecks: []httpapi.ReadyCheck{{Name: "x"}}})
	if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), "ReadyChecks[0] lacks its Name or Check") {
		t.Errorf("a check without a function: %v", err)
	}
}
