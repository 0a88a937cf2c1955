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
	"time"

	"github.com/goweaver/weaver/httpapi"
)

// short makes answers have little time.
func short(cfg *httpapi.Config) {
	cfg.BodyTimeout, cfg.Timeout = 100*time.Millisecond, 100*time.Millisecond
}

// flood sends a request again and again and reads no answer, until the connection ends.
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

// A client that reads no answers is cut, whatever they are.
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

// What is served beside the API has as long as that, too, and ends when the API stops.
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
}
