package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// transport responds without a network, and counts the requests.
type transport struct {
	sent   atomic.Int32
	answer func(n int32, r *http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.answer(t.sent.Add(1), r)
}

// answered returns a response; headers are names and values.
func answered(status int, body string, headers ...string) *http.Response {
	res := &http.Response{StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body))}
	res.Header.Set("Content-Type", "application/json")
	if status >= 400 {
		res.Header.Set("Content-Type", "application/problem+json")
	}
	for i := 0; i < len(headers); i += 2 {
		res.Header.Set(headers[i], headers[i+1])
	}
	return res
}

func problem(name string, status int, headers ...string) *http.Response {
	return answered(status, fmt.Sprintf(`{"type":%q,"title":"It is so.","status":%d}`, httpapi.ProblemBase+name, status), headers...)
}

const made = `{"id":"01M84912RYN7FWPZBKRWJ3SYEM","task_type":"acme.billing.charge.v1","disposition":"created"}`

// A safe request is retried, with a limit; other failures return an error.
func TestClientSendsAgainWhatIsSafe(t *testing.T) {
	t.Parallel()
	cut := func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	half := func() (*http.Response, error) {
		res := answered(http.StatusCreated, "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader(made[:9]), errorReader{}))
		return res, nil
	}
	says := func(name string, status int, headers ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return problem(name, status, headers...), nil }
	}
	proxy := func(status int, headers ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return answered(status, "<html>", append(headers, "Content-Type", "text/html")...), nil
		}
	}
	type outcome struct {
		sent int32
		err  error // nil for success
		not  error // the error must not match it
	}
	once := func(err error) outcome { return outcome{sent: 1, err: err} }
	twice := outcome{sent: 2}
	for name, c := range map[string]struct {
		first                func() (*http.Response, error)
		read, plain, withKey outcome
	}{
		"a lost answer":           {cut, twice, once(store.ErrUnknown), twice},
		"half an answer":          {half, twice, once(store.ErrUnknown), twice},
		"503 of a store":          {says("store-busy", 503, "Retry-After", "1"), twice, twice, twice},
		"503 without Retry-After": {says("store-unavailable", 503), twice, twice, twice},
		"503 for a long time":     {says("store-read-only", 503, "Retry-After", "60"), once(store.ErrReadOnly), once(store.ErrReadOnly), once(store.ErrReadOnly)},
		"503, outcome unknown":    {says("unknown-outcome", 503, "Retry-After", "1"), twice, once(store.ErrUnknown), twice},
		"503, timed out":          {says("timed-out", 503, "Retry-After", "1"), twice, once(store.ErrUnknown), twice},
		"503 of a proxy":          {proxy(503, "Retry-After", "2"), twice, twice, twice},
		"503 of a proxy, no hint": {proxy(503), twice, once(store.ErrUnknown), twice},
		"502 of a proxy":          {proxy(502), twice, once(store.ErrUnknown), twice},
		"429":                     {says("too-many-streams", 429, "Retry-After", "5"), twice, twice, twice},
		"500":                     {says("internal", 500), outcome{sent: 1, err: new(httpapi.Problem), not: store.ErrUnknown}, once(store.ErrUnknown), once(store.ErrUnknown)},
		"404":                     {says("not-found", 404), once(weaver.ErrNotFound), outcome{1, weaver.ErrNotFound, store.ErrUnknown}, outcome{1, weaver.ErrNotFound, store.ErrUnknown}},
	} {
		for kind, want := range map[string]outcome{"read": c.read, "enqueue": c.plain, "enqueue with a key": c.withKey} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tr := &transport{answer: func(n int32, r *http.Request) (*http.Response, error) {
						switch {
						case n == 1:
							return c.first()
						case r.Method == http.MethodGet:
							return answered(200, `{"items":[]}`), nil
						}
						return answered(201, made), nil
					}}
					client, err := httpapi.NewClient("http://weaver.test", httpapi.HTTPClient(&http.Client{Transport: tr}))
					if err != nil {
						t.Fatal(err)
					}
					switch kind {
					case "read":
						_, _, err = client.List(t.Context(), weaver.Filter{})
					case "enqueue":
						_, err = charge.Enqueue(t.Context(), client, chargeIn{})
					default:
						_, err = charge.Enqueue(t.Context(), client, chargeIn{}, weaver.IdempotencyKey("k"))
					}
					var p *httpapi.Problem
					isProblem := errors.As(want.err, &p)
					switch {
					case tr.sent.Load() != want.sent:
						t.Errorf("it was sent %d times, want %d: %v", tr.sent.Load(), want.sent, err)
					case want.err == nil && err != nil, want.err != nil && err == nil, !isProblem && !errors.Is(err, want.err):
						t.Errorf("the error is %v, want %v", err, want.err)
					case isProblem && !errors.As(err, &p):
						t.Errorf("the error is %v, and no Problem", err)
					case want.not != nil && errors.Is(err, want.not):
						t.Errorf("the error %v is %v", err, want.not)
					}
				})
			})
		}
	}
}

// errorReader fails in the middle.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestClientErrors(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	quick := httpapi.Tries(1)
	t.Run("no server", func(t *testing.T) {
		c, err := httpapi.NewClient(gone.URL+"/weaver/", httpapi.Token("a-secret"), httpapi.Tries(2))
		if err != nil {
			t.Fatal(err)
		}
		_, err = charge.Enqueue(t.Context(), c, chargeIn{})
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "POST "+gone.URL+"/weaver/v1/tasks: no answer") || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("an untrusted certificate", func(t *testing.T) {
		secure := httptest.NewTLSServer(http.NotFoundHandler())
		defer secure.Close()
		secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		c, err := httpapi.NewClient(secure.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, err = charge.Enqueue(t.Context(), c, chargeIn{})
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("the error is %v", err)
		}
	})
	for name, c := range map[string]struct {
		answer *http.Response
		opts   []httpapi.ClientOption
		words  []string
	}{
		"a page":          {answered(200, "<html>", "Content-Type", "text/html"), nil, []string{"text/html", "address of a Weaver server"}},
		"no JSON":         {answered(200, "{"), nil, []string{"cannot be read"}},
		"a wrong answer":  {answered(200, `{"items":7}`), nil, []string{"cannot be read"}},
		"a large answer":  {answered(200, strings.Repeat(" ", 101)), []httpapi.ClientOption{httpapi.MaxAnswer(100)}, []string{"more than 100 bytes", "MaxAnswer"}},
		"a redirect":      {answered(307, "", "Location", "https://else.test/"), nil, []string{"307", "https://else.test/", "not followed"}},
		"another 404":     {answered(404, "404 page not found", "Content-Type", "text/plain"), nil, []string{"GET http://weaver.test/v1/tasks", "404 Not Found", "no problem of a Weaver server"}},
		"another problem": {answered(404, `{"type":"https://else.test/p","title":"No."}`), nil, []string{"no problem of a Weaver server"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &transport{answer: func(int32, *http.Request) (*http.Response, error) { return c.answer, nil }}
			client, err := httpapi.NewClient("http://weaver.test", append(c.opts, quick, httpapi.HTTPClient(&http.Client{Transport: tr}))...)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = client.List(t.Context(), weaver.Filter{})
			for _, w := range c.words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("the error %v does not have %q", err, w)
				}
			}
			if errors.Is(err, weaver.ErrNotFound) {
				t.Errorf("the error %v is ErrNotFound", err)
			}
		})
	}
	t.Run("an answer for fewer tasks", func(t *testing.T) {
		tr := &transport{answer: func(int32, *http.Request) (*http.Response, error) { return answered(201, `{"items":[`+made+`]}`), nil }}
		client, err := httpapi.NewClient("http://weaver.test", httpapi.HTTPClient(&http.Client{Transport: tr}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = charge.EnqueueMany(t.Context(), client, make([]chargeIn, 2)); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the caller gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := &transport{answer: func(_ int32, r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}}
			client, err := httpapi.NewClient("http://weaver.test", httpapi.HTTPClient(&http.Client{Transport: tr}))
			if err != nil {
				t.Fatal(err)
			}
			cause := errors.New("the caller went home")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			if _, err = charge.Enqueue(ctx, client, chargeIn{}); !errors.Is(err, cause) || !errors.Is(err, store.ErrUnknown) {
				t.Errorf("during an enqueue: %v", err)
			}
			if _, err = client.Get(ctx, task.ID{1}); !errors.Is(err, cause) || errors.Is(err, store.ErrUnknown) || tr.sent.Load() != 1 {
				t.Errorf("afterwards: %v, %d sent", err, tr.sent.Load())
			}
			busy := &transport{answer: func(int32, *http.Request) (*http.Response, error) {
				return problem("store-busy", 503, "Retry-After", "5"), nil
			}}
			between, err := httpapi.NewClient("http://weaver.test", httpapi.HTTPClient(&http.Client{Transport: busy}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, cause)
			defer cancel()
			if _, err = charge.Enqueue(ctx, between, chargeIn{}); !errors.Is(err, cause) || !errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnknown) {
				t.Errorf("between two tries: %v", err)
			}
			// A server that does not respond does not block a read forever.
			began := time.Now()
			if _, err = client.Get(t.Context(), task.ID{1}); !errors.Is(err, store.ErrUnavailable) || time.Since(began) > 6*time.Minute {
				t.Errorf("without a limit: %v after %s", err, time.Since(began))
			}
		})
	})
}

// A wait continues while the server is unavailable, and ends with a failure that needs a person.
func TestClientWaitOutlivesTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, serverOptions{direct: true})
		h, err := charge.Enqueue(t.Context(), s.over(), chargeIn{Order: "x"})
		s.no(err)
		s.run()
		log := new(lockedBuffer)
		back := time.Now().Add(10 * time.Minute)
		tr := &transport{answer: func(n int32, r *http.Request) (*http.Response, error) {
			switch {
			case time.Now().After(back):
				return s.http.Transport.RoundTrip(r)
			case n%3 == 0:
				return problem("stopping", 503, "Retry-After", "1"), nil
			case n%3 == 1:
				return answered(502, "<html>", "Content-Type", "text/html"), nil
			}
			return nil, io.ErrUnexpectedEOF
		}}
		client := s.over(httpapi.HTTPClient(&http.Client{Transport: tr}), httpapi.Logger(slog.New(slog.NewTextHandler(log, nil))))
		out, err := charge.Wait(t.Context(), waits{client}, h.ID())
		s.no(err)
		if late := time.Since(back); out.Receipt != "r-x" || late > 30*time.Second {
			t.Errorf("%+v, %s late", out, late)
		}
		if n := strings.Count(log.String(), "the wait goes on"); n != 1 {
			t.Errorf("the log says it %d times: %s", n, log)
		}
		broken := &transport{answer: func(int32, *http.Request) (*http.Response, error) {
			return problem("store-not-migrated", 503, "Retry-After", "10"), nil
		}}
		_, err = s.over(httpapi.HTTPClient(&http.Client{Transport: broken})).Wait(t.Context(), h.ID())
		s.is(err, store.ErrNotMigrated)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		away := &transport{answer: func(int32, *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }}
		_, err = s.over(httpapi.HTTPClient(&http.Client{Transport: away})).Wait(ctx, h.ID())
		s.is(err, context.DeadlineExceeded, "the last look", io.ErrUnexpectedEOF.Error())
	})
}

// waits is a client without its Get, which tolerates fewer failures than its Wait.
type waits struct{ *httpapi.Client }

func (w waits) Get(_ context.Context, id weaver.TaskID) (weaver.TaskInfo, error) {
	return weaver.TaskInfo{ID: id, Type: charge.Name()}, nil
}

// A wait of a client with a request timeout asks for a shorter wait.
func TestClientWaitWithATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, clientWaitWithATimeout)
}

func clientWaitWithATimeout(t *testing.T) {
	s := newServer(t, serverOptions{piped: true}) // waits are those of the http.Client
	own := *s.http
	own.Timeout = time.Second
	log := new(lockedBuffer)
	c := s.over(httpapi.Tries(1), httpapi.HTTPClient(&own), httpapi.Logger(slog.New(slog.NewTextHandler(log, nil))))
	h, err := charge.Enqueue(t.Context(), c, chargeIn{Order: "x"})
	s.no(err)
	ran := s.later(1500*time.Millisecond, func() { s.run() })
	out, err := h.Wait(t.Context())
	ran()
	s.no(err)
	if out.Receipt != "r-x" || log.String() != "" {
		t.Errorf("%+v, the log: %s", out, log)
	}
}

func TestNewClientSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for url, word := range map[string]string{
		"": "http://", "localhost:8080": "http://", "ftp://x": "http://", "http://": "host", "/weaver": "http://", "http://a b": "cannot be read",
		"http://ann:hunter2@x": "Token or BasicAuth", "http://x/?a=b": "a ?", "http://x/#a": "a #", "http://ann:hunter2@[x": "cannot be read",
	} {
		_, err := httpapi.NewClient(url)
		if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	_, err := httpapi.NewClient("x", nil, httpapi.Token("a\n"), httpapi.Token(""), httpapi.TokenFunc(nil), httpapi.BasicAuth("a:b", ""), httpapi.HTTPClient(nil), httpapi.Tries(0), httpapi.MaxAnswer(0), httpapi.Logger(nil))
	for _, w := range []string{"an option is nil", "Token: ", "TokenFunc", "BasicAuth", "HTTPClient", "Tries(0)", "MaxAnswer(0)", "Logger"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not have %q: %v", w, err)
		}
	}
	if _, err = httpapi.NewClient("http://x", httpapi.Token("a"), httpapi.BasicAuth("a", "b")); err == nil || !strings.Contains(err.Error(), "several credentials") {
		t.Errorf("several credentials: %v", err)
	}
	given := new(http.Client)
	if _, err := httpapi.NewClient("https://x/y/", httpapi.HTTPClient(given)); err != nil || given.CheckRedirect != nil {
		t.Errorf("a good one: %v", err)
	}
}
