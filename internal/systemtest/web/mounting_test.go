package web_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
)

// The same pages work under every path, behind proxies, and in a service with its own policy and sessions.
func TestMounting(t *testing.T) {
	t.Parallel()
	w := worldWith(t, func(cfg *httpapi.Config) {
		cfg.Authorize = func(r *http.Request) (httpapi.Principal, error) {
			if c, err := r.Cookie("session"); err == nil && c.Value == "none" {
				return httpapi.Principal{}, httpapi.ErrUnauthorized
			}
			return httpapi.Principal{Name: "ann", Access: httpapi.Full}, nil
		}
	})
	id := w.enqueue(work{Do: "fail"}).String()
	d := w.dashboard(dashboard.Config{})
	below := func(prefix string) http.Handler {
		mux := http.NewServeMux()
		mux.Handle(prefix+"/", http.StripPrefix(prefix, d))
		return mux
	}
	proxy := func(backend, prefix string) http.Handler {
		to, err := url.Parse(backend)
		w.must(err)
		return http.StripPrefix(prefix, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	}
	for name, c := range map[string]struct {
		handler http.Handler
		at      string
	}{
		"at the root":            {d, ""},
		"below a path":           {below("/a/b"), "a/b/"},
		"a proxy that strips":    {proxy(w.serve(d), "/tools/weaver"), "tools/weaver/"},
		"a proxy that preserves": {proxy(w.serve(below("/ops")), ""), "ops/"},
		"a host page":            {host(below("/ops")), "ops/"},
	} {
		t.Run(name, func(t *testing.T) {
			root := w.serve(c.handler) + c.at
			b := openTab(t)
			b.visit(root)
			b.ready()
			b.click("nav[aria-label=Pages] a", "Tasks")
			b.until(`document.querySelector('[data-id="` + id + `"]')`)
			b.click("main a", "acme.mail.send.v1")
			b.until(`location.pathname.endsWith("/tasks/` + id + `") && document.querySelector("main h1")`)
			b.reload()
			b.ready()
			if at := eval[string](b, "location.href"); at != root+"tasks/"+id {
				t.Errorf("the page is %s", at)
			}
			b.until(`document.querySelector("main").innerText.includes("acme.mail.send.v1")`)
			eval[bool](b, `history.back() ?? true`)
			b.until(`location.pathname.endsWith("/tasks") && document.querySelector('[data-id="` + id + `"]')`)
		})
	}
}

// host is the middleware of a service: a session, and a strict policy for all its pages.
func host(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "ann", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			if strings.Contains(r.URL.Path, "/v1/") || strings.Contains(r.URL.Path, "/assets/") {
				http.Error(w, "no session", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(&withPolicy{ResponseWriter: w}, r)
	})
}

// withPolicy adds a second policy: a browser obeys both.
type withPolicy struct {
	http.ResponseWriter
	done bool
}

func (w *withPolicy) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *withPolicy) WriteHeader(status int) {
	if !w.done {
		w.done = true
		w.Header().Add("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	}
	w.ResponseWriter.WriteHeader(status)
}

// FlushError sends the headers of a stream.
func (w *withPolicy) FlushError() error {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *withPolicy) Write(b []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}
