package dashboard_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store/memstore"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func newClient(t *testing.T) *weaver.Client {
	t.Helper()
	c, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newDashboard(t *testing.T, cfg dashboard.Config) *dashboard.Dashboard {
	t.Helper()
	d, err := dashboard.New(newClient(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

// send sends a request with pairs of header names and values.
func send(h http.Handler, method, url string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, http.NoBody)
	r.Host = "localhost"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// fileOf returns the path of a file that the document at "/" names, as assets/app-HASH.js.
func fileOf(t *testing.T, h http.Handler, entry string) string {
	t.Helper()
	doc := send(h, http.MethodGet, "/").Body.String()
	found := regexp.MustCompile(`"\./(assets/` + entry + `-[A-Z0-9]+\.\w+)"`).FindStringSubmatch(doc)
	if found == nil {
		t.Fatalf("the document has no file of %s: %s", entry, doc)
	}
	return "/" + found[1]
}

func TestAnswers(t *testing.T) {
	d := newDashboard(t, dashboard.Config{})
	const shell, forever = "no-cache", "public, max-age=31536000, immutable"
	for path, want := range map[string]struct{ media, cache string }{
		"/":                        {"text/html; charset=utf-8", shell},
		"/tasks":                   {"text/html; charset=utf-8", shell},
		"/tasks/01ARZ?tab=steps":   {"text/html; charset=utf-8", shell},
		"/types/a%2Fb":             {"text/html; charset=utf-8", shell},
		"/dashboard.json":          {"application/json", "no-store"},
		"/assets/licenses.txt":     {"text/plain; charset=utf-8", "no-cache"},
		fileOf(t, d, "app"):        {"text/javascript; charset=utf-8", forever},
		fileOf(t, d, "theme"):      {"text/javascript; charset=utf-8", forever},
		fileOf(t, d, "style"):      {"text/css; charset=utf-8", forever},
		fileOf(t, d, "icon"):       {"image/svg+xml", forever},
		"/favicon.ico":             {"", "max-age=86400"},
		"/assets/app-OLD.js":       {"text/plain; charset=utf-8", ""},
		"/assets/../dashboard.go":  {"text/plain; charset=utf-8", ""},
		"/assets/":                 {"text/plain; charset=utf-8", ""},
		"/tasks/":                  {"", ""},
		"/assets/%2e%2e/assets.go": {"text/plain; charset=utf-8", ""},
	} {
		t.Run(path, func(t *testing.T) {
			w := send(d, http.MethodGet, path)
			h := w.Header()
			if h.Get("Content-Type") != want.media || h.Get("Cache-Control") != want.cache {
				t.Errorf("the type is %q, Cache-Control %q", h.Get("Content-Type"), h.Get("Cache-Control"))
			}
			if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("the headers are %v", h)
			}
			head := send(d, http.MethodHead, path)
			if head.Body.Len() > 0 && head.Code == http.StatusOK && path != "/dashboard.json" || head.Code != w.Code || head.Header().Get("ETag") != h.Get("ETag") {
				t.Errorf("HEAD answers %d %v and %d bytes", head.Code, head.Header(), head.Body.Len())
			}
			if tag := h.Get("ETag"); tag != "" {
				if again := send(d, http.MethodGet, path, "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
					t.Errorf("the tag %s answers %d", tag, again.Code)
				}
				zipped := send(d, http.MethodGet, path, "Accept-Encoding", "br, gzip")
				if zipped.Header().Get("Vary") != "Accept-Encoding" {
					t.Errorf("Vary is %q", zipped.Header().Get("Vary"))
				}
				if zipped.Header().Get("Content-Encoding") == "gzip" && unzip(t, zipped.Body) != w.Body.String() {
					t.Error("the compressed form differs")
				}
				if zipped.Header().Get("Content-Encoding") != "gzip" && len(w.Body.String()) > 1000 {
					t.Error("it is not compressed")
				}
			}
		})
	}
}

func unzip(t *testing.T, from io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// All URLs of the document are relative, and right for the depth of the page.
func TestDepths(t *testing.T) {
	d := newDashboard(t, dashboard.Config{})
	for path, root := range map[string]string{"/": "./", "/tasks": "./", "/tasks/01": "../", "/types/a%2Fb": "../"} {
		doc := send(d, http.MethodGet, path).Body.String()
		if strings.Count(doc, `"`+root+`assets/`) != 4 || !strings.Contains(doc, `data-root="`+root+`"`) {
			t.Errorf("%s: %s", path, doc)
		}
	}
	// A page whose path has further segments.
	if doc := send(d, http.MethodGet, "/tasks/01/steps").Body.String(); strings.Count(doc, `"../../assets/`) != 4 {
		t.Error(doc)
	}
}

func TestRedirects(t *testing.T) {
	d := newDashboard(t, dashboard.Config{})
	mux := http.NewServeMux()
	mux.Handle("/a/b/", http.StripPrefix("/a/b", d))
	mux.Handle("/c", http.StripPrefix("/c", d))
	for path, want := range map[string]string{
		"/a/b/tasks/":            "/a/b/tasks",
		"/a/b/tasks/01/?tab=x&y": "/a/b/tasks/01?tab=x&y",
		"/a/b/types/a%2Fb/":      "/a/b/types/a%2Fb",
		"/c?q=1":                 "/c/?q=1",
	} {
		w := send(mux, http.MethodGet, path)
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		to, err := r.URL.Parse(w.Header().Get("Location"))
		if w.Code != http.StatusTemporaryRedirect || err != nil || to.RequestURI() != want {
			t.Errorf("%s answers %d and leads to %s (%v)", path, w.Code, to, err)
		}
	}
	if w := send(d, http.MethodGet, "/tasks//"); w.Header().Get("Location") != "../../tasks" {
		t.Errorf("two slashes lead to %q", w.Header().Get("Location"))
	}
}

// The API gets every other request, also one for a page with another method.
func TestAPI(t *testing.T) {
	var seen []string
	d := newDashboard(t, dashboard.Config{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.Path)
	})})
	for _, request := range []string{"GET /v1/tasks", "POST /v1/tasks", "POST /tasks", "DELETE /", "GET /openapi.json", "POST /login", "GET /nothing"} {
		method, path, _ := strings.Cut(request, " ")
		send(d, method, path)
		if n := len(seen); n == 0 || seen[n-1] != request {
			t.Errorf("%s did not arrive: %v", request, seen)
		}
	}
	own := newDashboard(t, dashboard.Config{})
	if w := send(own, http.MethodGet, "/v1/me"); w.Code != http.StatusOK {
		t.Errorf("the default API answers %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/me", http.NoBody) // of example.com
	w := httptest.NewRecorder()
	if own.ServeHTTP(w, r); w.Code < 400 {
		t.Errorf("the default API answers another host with %d", w.Code)
	}
}

func TestReadOnly(t *testing.T) {
	client := newClient(t)
	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: httpapi.Open(httpapi.Principal{Name: "ann", Access: httpapi.Full})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Stop)
	d, err := dashboard.New(client, dashboard.Config{API: api, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"POST /v1/queues/a/pause", "PUT /v1/limits/queue:a", "DELETE /v1/limits/queue:a", "PATCH /v1/x"} {
		method, path, _ := strings.Cut(request, " ")
		w := send(d, method, path, "Content-Type", "application/json")
		if w.Code != http.StatusForbidden || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), "read-only") {
			t.Errorf("%s answers %d %s", request, w.Code, w.Body)
		}
	}
	if w := send(d, http.MethodGet, "/v1/tasks"); w.Code != http.StatusOK {
		t.Errorf("a read answers %d %s", w.Code, w.Body)
	}
	if w := send(d, http.MethodPost, "/login"); strings.Contains(w.Body.String(), "read-only") {
		t.Errorf("a login answers %d %s", w.Code, w.Body)
	}
	if doc := send(d, http.MethodGet, "/").Body.String(); !strings.Contains(doc, `&#34;read_only&#34;:true`) {
		t.Error(doc)
	}
}

func TestConfig(t *testing.T) {
	_, err := dashboard.New(nil, dashboard.Config{
		Links:          []dashboard.Link{{Name: "logs", URL: "https://a.example/{id}"}, {Name: "x", URL: "javascript:alert(1)"}, {URL: "https://a.example"}},
		FrameAncestors: []string{"https://a.example; script-src *"},
		Assets:         fstest.MapFS{"app-A.js": {}},
	})
	if !errors.Is(err, weaver.ErrConfig) {
		t.Fatal(err)
	}
	for _, says := range []string{"the client is nil", "Links[1]", "Links[2]", "FrameAncestors", "no style-HASH.css", "make ui"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v says nothing of %s", err, says)
		}
	}
	if strings.Contains(err.Error(), "Links[0]") {
		t.Error(err)
	}
}

// Texts of the configuration are shown as text.
func TestTexts(t *testing.T) {
	d := newDashboard(t, dashboard.Config{
		Title:          `</title><script>"prod" & 'x'`,
		Links:          []dashboard.Link{{Name: `"><script>`, URL: `https://a.example/?q={id}&x="'<`}},
		FrameAncestors: []string{"https://a.example", "https://b.example"},
	})
	w := send(d, http.MethodGet, "/tasks")
	doc := w.Body.String()
	if strings.Count(doc, "<script") != 2 || strings.Count(doc, "</title>") != 1 || !strings.Contains(doc, "&lt;/title&gt;&lt;script&gt;&#34;prod&#34; &amp; &#39;x&#39; · Weaver") {
		t.Error(doc)
	}
	if strings.ContainsAny(doc[strings.Index(doc, "data-config"):strings.Index(doc, "data-root")], "<>'") {
		t.Error(doc)
	}
	if got := w.Header().Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors https://a.example https://b.example") {
		t.Error(got)
	}
}
