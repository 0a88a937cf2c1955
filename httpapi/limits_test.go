package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// A body that does not arrive is not waited for, regardless of the sender and the response.
func TestBodyTimeout(t *testing.T) {
	t.Parallel()
	s, callers := credentials(t, serverOptions{timeout: 50 * time.Millisecond})
	full := "Authorization: " + callers[len(callers)-2].header[1] + "\r\n"
	for what, of := range map[string]struct {
		request string
		status  int
	}{
		"none of it":               {"POST /v1/tasks HTTP/1.1\r\n" + full + "Content-Length: 10\r\n", 408},
		"chunks without an end":    {"POST /v1/tasks HTTP/1.1\r\n" + full + "Transfer-Encoding: chunked\r\n", 408},
		"nobody's":                 {"POST /v1/tasks HTTP/1.1\r\nContent-Length: 10\r\n", 401},
		"one that no route has":    {"POST /v1/nothing HTTP/1.1\r\nContent-Length: 10\r\n", 404},
		"one that is not wanted":   {"GET /v1/me HTTP/1.1\r\n" + full + "Content-Length: 10\r\n", 400},
		"one of the wrong kind":    {"POST /v1/tasks HTTP/1.1\r\n" + full + "Content-Length: 10\r\nContent-Type: text/plain\r\n", 415},
		"one of the wrong method":  {"PUT /v1/tasks HTTP/1.1\r\n" + full + "Content-Length: 10\r\n", 405},
		"one of another site":      {"POST /v1/tasks HTTP/1.1\r\n" + full + "Content-Length: 10\r\nSec-Fetch-Site: cross-site\r\n", 403},
		"one that may be left out": {"POST /v1/queues/x/pause HTTP/1.1\r\n" + full + "Content-Length: 10\r\n", 408},
	} {
		head := of.request + "Host: 127.0.0.1\r\n"
		if !strings.Contains(head, "Content-Type") {
			head += "Content-Type: application/json\r\n"
		}
		chunk := map[bool]string{true: "3\r\n{\"a\r\n"}[strings.Contains(head, "chunked")]
		res := s.raw(head + "\r\n" + chunk)
		if res.StatusCode != of.status || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d, want %d", what, res.StatusCode, of.status)
		}
	}
}

// An endless body is cut at the limit.
func TestBodyWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	s.post("/v1/tasks", endless{}).problem(http.StatusRequestEntityTooLarge, "body-too-large")
}

// endless is an endless body.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A body's deadline ends with the body: a slower response is still sent.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hooks := &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
			if c.Method == "Operate" {
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return next(ctx)
		}}
		s := newServer(t, serverOptions{store: storehook.New(memstore.New(), hooks), piped: true, timeout: time.Second})
		for range 2 { // on the same connection
			s.post("/v1/queues/billing/pause", reasonGiven).want(http.StatusNoContent)
		}
	})
}

// The same applies to handlers under Guard, whose bodies are limited too.
func TestGuardedBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, guardedBody)
}

func guardedBody(t *testing.T) {
	s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) { cfg.BodyTimeout, cfg.MaxInput = time.Second, 100 }})
	ended := make(chan error, 1)
	client := httpapi.ServePipes(t, s.api.Guard("tools", httpapi.Read, func(_ http.ResponseWriter, r *http.Request, who httpapi.Principal) {
		_, err := io.ReadAll(r.Body)
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
			err = errors.Join(err, r.Context().Err())
		}
		if who.Name != "ann" {
			err = errors.Join(err, errors.New("it is not ann"))
		}
		ended <- err
	}))
	res, err := client.Post("http://127.0.0.1/", "application/json", strings.NewReader("short"))
	s.no(err)
	s.no(res.Body.Close())
	if err := <-ended; err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("a short body ended with %v, %s", err, res.Status)
	}
	endless, more := io.Pipe()
	t.Cleanup(func() { _ = more.Close() })
	for want, body := range map[int]io.Reader{http.StatusRequestEntityTooLarge: strings.NewReader(strings.Repeat("x", 101)), http.StatusRequestTimeout: endless} {
		res, err := client.Post("http://127.0.0.1/", "application/json", body)
		s.no(err)
		raw, err := io.ReadAll(res.Body)
		s.no(err)
		s.no(res.Body.Close())
		if res.StatusCode != want || res.Header.Get("Content-Type") != "application/problem+json" || len(ended) > 0 {
			t.Errorf("%s, %s; want %d and a problem", res.Status, raw, want)
		}
	}
}

// No byte of a body is read before the sender, the origin and the route are checked.
func TestBodyIsReadLast(t *testing.T) {
	t.Parallel()
	s, callers := credentials(t, serverOptions{direct: true})
	full, read := callers[len(callers)-2].header, callers[8].header
	for what, header := range map[string][]string{
		"nobody":       nil,
		"a wrong one":  {"Authorization", "Bearer wrong"},
		"without it":   read,
		"another site": append([]string{"Origin", "https://evil.example"}, full...),
		"wrong type":   append([]string{"Content-Type", "text/plain"}, full...),
		"not for it":   append([]string{"Accept", "text/html"}, full...),
	} {
		body := &counted{}
		a := s.post("/v1/tasks", body, header...)
		if a.status < 400 || a.status == http.StatusBadRequest || body.n > 0 {
			t.Errorf("%s: %d, after %d reads of the body", what, a.status, body.n)
		}
	}
	body := &counted{}
	if s.post("/v1/tasks", body, full...).problem(http.StatusBadRequest, "bad-request"); body.n == 0 {
		t.Error("what may be sent is not read")
	}
}

// counted counts its reads.
type counted struct{ n int }

func (c *counted) Read([]byte) (int, error) {
	c.n++
	return 0, io.ErrUnexpectedEOF
}

// Accept headers are interpreted as HTTP specifies.
func TestAccept(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	for accept, status := range map[string]int{
		"": 200, "*/*": 200, "application/*": 200, "application/json": 200, "Application/JSON;charset=utf-8": 200, "text/html, application/xhtml+xml, */*;q=0.1": 200,
		"text/html": 406, "application/json;q=0": 406, "application/json;q=0.000, text/*": 406, "*/*, application/json;q=0": 406, "application/*;q=0, application/json": 200,
		"nonsense": 406, "*/*;q=0": 406, ";;,application/json": 200, "application/problem+json": 406,
	} {
		a := s.get("/v1/me", "Accept", accept)
		if a.status != status {
			t.Errorf("Accept: %s: %d, want %d", accept, a.status, status)
		}
	}
	s.post("/v1/queues/billing/pause", nil, "Accept", "text/html").want(http.StatusNoContent)
}

// A handler that panics is an internal error; in the middle of a response it cuts the connection.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) {
		cfg.Authorize = func(*http.Request) (httpapi.Principal, error) { panic("of the middleware") }
	}})
	s.get("/v1/me").problem(http.StatusInternalServerError, "internal")
	if log := s.log.String(); !strings.Contains(log, "of the middleware") || !strings.Contains(log, "/v1/me") {
		t.Errorf("the log is %s", log)
	}
	defer func() {
		p := recover()
		if err, _ := p.(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("the handler ended with %v", p)
		}
	}()
	s.api.ServeHTTP(unwritable{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "http://localhost/healthz", http.NoBody))
}

// unwritable is a response that cannot be written.
type unwritable struct{ *httptest.ResponseRecorder }

func (unwritable) Write([]byte) (int, error) { panic("while it is written") }

// An unavailable store is a problem with a retry, which then succeeds.
func TestStoreGone(t *testing.T) {
	t.Parallel()
	away := true
	hooks := &storehook.Hooks{Around: func(ctx context.Context, c *storehook.Call, next func(context.Context) error) error {
		if away && c.Method != "Types" && c.Method != "Operate" {
			return errors.Join(store.ErrUnavailable, errors.New("dial postgres://weaver@db.secret:5432/x: refused"))
		}
		return next(ctx)
	}}
	s := newServer(t, serverOptions{store: storehook.New(memstore.New(), hooks), direct: true})
	for _, path := range []string{"/readyz", "/v1/tasks", "/v1/jobs", "/v1/tasks/01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		a := s.get(path)
		p := a.problem(http.StatusServiceUnavailable, "store-unavailable")
		if p.Detail != "" || strings.Contains(string(a.body), "secret") || p.Title != "The store cannot be reached." {
			t.Errorf("%s: %s tells what the store is", path, a.body)
		}
		if a.header.Get("Retry-After") != "2" {
			t.Errorf("%s: Retry-After is %q", path, a.header.Get("Retry-After"))
		}
	}
	if n := strings.Count(s.log.String(), "db.secret"); n != 1 {
		t.Errorf("four failures in one second have %d lines in the log, want 1:\n%s", n, s.log)
	}
	s.get("/healthz").want(http.StatusOK)
	away = false
	s.get("/readyz").want(http.StatusOK)
	s.api.Stop()
	s.get("/readyz").problem(http.StatusServiceUnavailable, "stopping")
}

// New rejects an incomplete configuration.
func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := httpapi.New(httpapi.Config{MaxBody: -1, TrustedOrigins: []string{"x"}})
	for _, want := range []string{"the Client is nil", "Authorize is nil", "LoadTokens", "LoadPasswords", "Open", "MaxBody is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error %v does not say %q", err, want)
		}
	}
}
