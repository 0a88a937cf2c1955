package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// short sets short time limits for responses.
func short(cfg *httpapi.Config) {
	cfg.BodyTimeout, cfg.Timeout = 100*time.Millisecond, 100*time.Millisecond
}

// flood sends a request repeatedly without reading responses, until the connection ends.
func flood(t *testing.T, address, request string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat(request, 1000)
	for err == nil {
		_, err = io.WriteString(conn, many)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.40q…: a client that reads nothing was not cut", request)
	}
}

// A client that reads no responses is cut, whatever they are.
func TestAnswersThatAreNotRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{config: short})
	guarded := httptest.NewServer(s.api.Guard("tools", httpapi.Read, func(w http.ResponseWriter, _ *http.Request, _ httpapi.Principal) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}))
	t.Cleanup(guarded.Close)
	for _, request := range []string{
		"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"PUT /v1/tasks HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /v1/me HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	} {
		t.Run(strings.Fields(request)[1]+" "+strings.Fields(request)[4], func(t *testing.T) {
			t.Parallel()
			flood(t, s.url, request)
		})
	}
	t.Run("guarded", func(t *testing.T) {
		t.Parallel()
		flood(t, guarded.URL, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	})
}

// A handler under Guard has the API's time limits, and its context ends after the API stops.
func TestGuardedContext(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: short})
	serve := func(at string) (err error) {
		s.api.Guard("tools", httpapi.Read, func(_ http.ResponseWriter, r *http.Request, _ httpapi.Principal) {
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-time.After(20 * time.Second):
			}
		}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://localhost/"+at, strings.NewReader("x")))
		return err
	}
	if err := serve("slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request ended with %v", err)
	}
	s.api.StopWithin(0)
	if err := serve("late"); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request after the stop ended with %v", err)
	}
}

// Requests in progress have some time to finish when the API stops; then the response says that the
// server stopped before they were done.
func TestStopEndsRequests(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, inner store.Store) {
		var called chan struct{} // nil: calls are not held
		hooks := &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			if called != nil && (c.Method == "Enqueue" || c.Method == "List") {
				called <- struct{}{}
				<-ctx.Done()
			}
			return next(ctx)
		}}
		s := newServer(t, serverOptions{store: storehook.New(inner, hooks), direct: true})
		held := make(chan struct{}, 10)
		called = held
		answers := make(chan *answer, 2)
		go func() {
			answers <- s.post("/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":{"order":"o-1","amount":5,"card":"4111"}}`)
		}()
		go func() { answers <- s.get("/v1/tasks") }()
		<-held
		<-held
		s.api.StopWithin(100 * time.Millisecond)
		for range 2 {
			a := <-answers
			a.problem(http.StatusServiceUnavailable, "stopping")
			if a.header.Get("Retry-After") != "1" {
				t.Errorf("%s: Retry-After is %q", a.asked, a.header.Get("Retry-After"))
			}
		}
		called = nil
		list, _, err := s.client.List(t.Context(), weaver.Filter{})
		if err != nil || len(list) != 0 {
			t.Errorf("%d tasks, %v", len(list), err)
		}
		if log := s.log.String(); log != "" {
			t.Errorf("the log says %s", log)
		}
	})
}

// A stop leaves requests time, and cuts no request that finishes within it.
func TestStopLeavesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := time.Duration(0)
		hooks := &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			if c.Method == "List" {
				select {
				case <-time.After(slow):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return next(ctx)
		}}
		s := newServer(t, serverOptions{store: storehook.New(memstore.New(), hooks), direct: true})
		s.api.Stop()
		slow = 4 * time.Second
		s.get("/v1/tasks").want(http.StatusOK)
		s.get("/v1/tasks").problem(http.StatusServiceUnavailable, "stopping") // the stop's five seconds end during it
	})
}
