package builtin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
)

// The retried statuses; every other one fails at once.
var triedAgain = map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true}

func TestRequestStatuses(t *testing.T) {
	t.Parallel()
	webCase(t, "fail at once or are tried again", func(w *webFixture) {
		v := &visits{answer: func(rw http.ResponseWriter, r *http.Request) {
			var code int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
			rw.WriteHeader(code)
		}}
		w.serve("a.test", v.serve)
		for code := 300; code <= 599; code++ {
			if http.StatusText(code) == "" && code%50 != 49 {
				continue
			}
			before, attempts := len(v.all()), 1
			if triedAgain[code] {
				attempts = 3
			}
			w.fails(attempts, builtin.RequestInput{URL: fmt.Sprintf("http://a.test/%d", code)}, strings.TrimSpace(fmt.Sprintf("GET http://a.test/%d: %d %s", code, code, http.StatusText(code))))
			if n := len(v.all()) - before; n != attempts {
				w.Errorf("%d: %d requests, want %d", code, n, attempts)
			}
		}
	})
}

func TestRequestMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"an empty body":        {"", "GET http://a.test/: 400 Bad Request"},
		"a body of lines":      {"  two\r\n\tlines ", "GET http://a.test/: 400 Bad Request: two lines"},
		"what cannot be shown": {"\x00a\x1b[31m\xffb\u202e\u200b", "GET http://a.test/: 400 Bad Request: a[31mb"},
		"too much":             {strings.Repeat("é", 600), "GET http://a.test/: 400 Bad Request: " + strings.Repeat("é", 500) + "…"},
		"far too much":         {strings.Repeat("x", 1<<20), "GET http://a.test/: 400 Bad Request: " + strings.Repeat("x", 500) + "…"},
		"exactly enough":       {strings.Repeat("x", 500), "GET http://a.test/: 400 Bad Request: " + strings.Repeat("x", 500)},
	} {
		webCase(t, name, func(w *webFixture) {
			w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(rw, c.body)
			})
			if te := w.failure(1, builtin.RequestInput{URL: "http://a.test/"}); te.Message != c.says {
				w.Errorf("the message is\n%q, want\n%q", te.Message, c.says)
			}
		})
	}
}

func TestRequestRetryAfter(t *testing.T) {
	t.Parallel()
	// The worker's own pauses would be 2 and 4 seconds, ±10 %.
	for name, c := range map[string]struct {
		status int
		header func() string
		pause  time.Duration // ± 1 s; 0: the worker's own
	}{
		"seconds":                 {503, func() string { return "120" }, 2 * time.Minute},
		"a date":                  {429, func() string { return time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat) }, 10 * time.Minute},
		"more than an hour":       {429, func() string { return "86400" }, time.Hour},
		"a date next year":        {503, func() string { return time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat) }, time.Hour},
		"more than a number":      {503, func() string { return "99999999999999999999999" }, time.Hour},
		"a number that overflows": {503, func() string { return "18446744073709551615" }, time.Hour},
		"nothing":                 {503, func() string { return "" }, 0},
		"no pause":                {503, func() string { return "0" }, 0},
		"a date gone by":          {503, func() string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }, 0},
		"nonsense":                {503, func() string { return "-5 soon" }, 0},
	} {
		webCase(t, name, func(w *webFixture) {
			v := &visits{}
			v.answer = func(rw http.ResponseWriter, r *http.Request) {
				if len(v.all()) == 1 {
					rw.Header().Set("Retry-After", c.header())
					rw.WriteHeader(c.status)
				}
			}
			w.serve("a.test", v.serve)
			w.run(builtin.RequestInput{URL: "http://a.test/"})
			seen := v.all()
			if len(seen) != 2 {
				w.Fatalf("%d requests, want 2", len(seen))
			}
			pause, want, near := seen[1].at.Sub(seen[0].at), c.pause, time.Second
			if want == 0 {
				want, near = 2*time.Second, 300*time.Millisecond
			}
			if (pause - want).Abs() > near {
				w.Errorf("the pause was %s, want %s", pause, want)
			}
		})
	}
}

func TestRequestNetworkErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"refused":        {syscall.ECONNREFUSED, "connection refused"},
		"reset":          {syscall.ECONNRESET, "connection reset"},
		"unreachable":    {syscall.ENETUNREACH, "network is unreachable"},
		"no such host":   {&net.DNSError{Err: "no such host", Name: "a.test", IsNotFound: true}, "no such host"},
		"no name server": {&net.DNSError{Err: "server misbehaving", Name: "a.test", IsTemporary: true}, "server misbehaving"},
	} {
		webCase(t, name+" is tried again", func(w *webFixture) {
			w.fail("a.test:80", c.err)
			w.fails(3, builtin.RequestInput{URL: "http://a.test/x"}, "GET http://a.test/x: ", c.says)
			for _, err := range w.errs {
				if !errors.Is(err, c.err) {
					w.Errorf("%v does not wrap %v", err, c.err)
				}
			}
		})
	}
	for name, answer := range map[string]string{
		"no answer":      "",
		"half a head":    "HTTP/1.1 200 OK\r\nContent-",
		"half a body":    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"no HTTP":        "SSH-2.0-OpenSSH\r\n\r\n",
		"no gzip":        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf",
		"a broken chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		webCase(t, name+" is tried again", func(w *webFixture) {
			v := &visits{answer: hangUp(answer)}
			w.serve("a.test", v.serve)
			w.fails(3, builtin.RequestInput{URL: "http://a.test/x", Method: "POST", Headers: map[string]string{"Idempotency-Key": ""}}, "POST http://a.test/x: ")
		})
	}
	webCase(t, "half a refusal is a refusal", func(w *webFixture) {
		w.serve("a.test", hangUp("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such order"))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/x"}, "404 Not Found: no such order")
	})
	webCase(t, "a switched protocol has no body to wait for", func(w *webFixture) {
		begin := time.Now()
		w.serve("a.test", hangUp("HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade\r\n\r\n"))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/x"}, "101 Switching Protocols")
		if passed := time.Since(begin); passed > time.Second {
			w.Errorf("it took %s", passed)
		}
	})
	webCase(t, "a certificate that does not verify is not", func(w *webFixture) {
		w.serveTLS("other.test", saying("ok"))
		w.fails(1, builtin.RequestInput{URL: "https://other.test/"}, "GET https://other.test/: ", "certificate is valid for example.com")
	})
}

// hangUp answers with a text and closes the connection. An answer with a protocol
// switch leaves it open.
func hangUp(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, answer)
		if strings.Contains(answer, "Upgrade") {
			_, _ = bufio.NewReader(rw).ReadByte() // until the client closes
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	silent := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	half := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		timeout time.Duration
		says    string
		want    time.Duration
	}{
		"without an answer":        {silent, 5 * time.Second, "within 5s", 5 * time.Second},
		"in the middle of a body":  {half, 5 * time.Second, "within 5s", 5 * time.Second},
		"by default after 30 s":    {silent, 0, "within 30s", 30 * time.Second},
		"as long as the user says": {silent, time.Hour, "within 1h0m0s", time.Hour},
	} {
		webCase(t, name, func(w *webFixture) {
			v := &visits{answer: c.answer}
			w.serve("a.test", v.serve)
			te := w.failure(3, builtin.RequestInput{URL: "http://a.test/", Timeout: builtin.Duration(c.timeout)}, "GET http://a.test/: no whole answer "+c.says)
			if te.Kind != "timeout" {
				w.Errorf("the error is a %s, want a timeout", te.Kind)
			}
			for _, err := range w.errs {
				if !errors.Is(err, weaver.ErrTimeout) {
					w.Errorf("%v is no weaver.ErrTimeout", err)
				}
			}
			seen := v.all()
			if pause := seen[1].at.Sub(seen[0].at) - 2*time.Second; (pause - c.want).Abs() > 300*time.Millisecond {
				w.Errorf("the attempt lasted %s, want %s", pause, c.want)
			}
		})
	}
	webCase(t, "while it connects", func(w *webFixture) {
		w.listen("a.test:80") // no connection is accepted
		te := w.failure(3, builtin.RequestInput{URL: "http://a.test/", Timeout: builtin.Duration(time.Second)}, "within 1s")
		if te.Kind != "timeout" {
			w.Errorf("the error is a %s, want a timeout", te.Kind)
		}
	})
}

func TestRequestEndsWithItsTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(ctx context.Context, e *weaver.Engine, id weaver.TaskID) error
		want error
	}{
		"cancel": {func(ctx context.Context, e *weaver.Engine, id weaver.TaskID) error { return e.Cancel(ctx, id) }, weaver.ErrCancelled},
		"drain":  {func(ctx context.Context, e *weaver.Engine, id weaver.TaskID) error { e.StopNow(); return nil }, weaver.ErrDraining},
	} {
		for when, head := range map[string]string{"before an answer": "", "in a body": "HTTP/1.1 200 OK\r\n\r\nhalf", "in a refusal": "HTTP/1.1 503 Service Unavailable\r\n\r\nhalf"} {
			webCase(t, name+" "+when, func(w *webFixture) {
				came := make(chan bool, 1)
				w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
					conn, buf, err := http.NewResponseController(rw).Hijack()
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, head)
					came <- true
					_, _ = buf.ReadByte() // until the client closes
					_ = conn.Close()
				})
				e, stop := w.engine()
				h, err := builtin.Request.Enqueue(w.Context(), e, builtin.RequestInput{URL: "http://a.test/", Timeout: builtin.Duration(24 * time.Hour)})
				if err != nil {
					w.Fatal(err)
				}
				<-came
				begin := time.Now()
				if err := c.end(w.Context(), e, h.ID()); err != nil {
					w.Fatal(err)
				}
				if name == "cancel" {
					_, err := h.Wait(w.Context())
					if te, ok := errors.AsType[*weaver.TaskError](err); !ok || te.State != weaver.StateCancelled {
						w.Errorf("Wait returned %v", err)
					}
				}
				stop()
				if passed := time.Since(begin); passed > time.Minute {
					w.Errorf("it took %s", passed)
				}
				if len(w.errs) != 1 || !errors.Is(w.errs[0], c.want) || w.errs[0].Error() != "GET http://a.test/: "+c.want.Error() {
					w.Errorf("the handler returned %v, want one that is %v", w.errs, c.want)
				}
			})
		}
	}
}

// A connection that this worker cannot open for lack of descriptors is the
// worker's error; errors of the network or the other side are not.
func TestRequestNotSent(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}:                         true,
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "dial udp: " + syscall.EMFILE.Error(), Name: "a"}}: true,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}:                  false,
		&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}}:      false,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ENOMEM)}:                           false,
	} {
		if got := builtin.NotSent(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
