package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/httpapi"
)

// caller sends requests with one kind of credentials.
type caller struct {
	name   string
	header []string
	has    httpapi.Access
	known  bool // the credentials are valid
}

// credentials starts a server with tokens, cookies and passwords, and returns its callers.
func credentials(t *testing.T, o serverOptions) (*server, []caller) {
	t.Helper()
	var lines []string
	accesses := []httpapi.Access{httpapi.Submit, httpapi.Read, httpapi.Read | httpapi.Payloads, httpapi.Read | httpapi.Operate, httpapi.Full}
	for _, a := range accesses {
		lines = append(lines, fmt.Sprintf("%s %s %s", a, a, hashOf("token of "+a.String())))
	}
	tokens := tokensOf(t, lines...)
	passwords, err := httpapi.ReadPasswords(strings.NewReader(passwordLine("bob", "read,operate", "bob's password")))
	if err != nil {
		t.Fatal(err)
	}
	o.config = func(cfg *httpapi.Config) {
		cfg.Authorize, cfg.Login = httpapi.AnyOf(tokens.Authorize, passwords.Authorize), tokens
	}
	s := newServer(t, o)
	callers := []caller{
		{name: "nobody"},
		{name: "a wrong token", header: []string{"Authorization", "Bearer wrong"}},
		{name: "a token of another scheme", header: []string{"Authorization", "Basic token of read"}},
		{name: "a wrong password", header: basic("eve", "wrong")},
		{name: "a password", header: basic("bob", "bob's password"), has: httpapi.Read | httpapi.Operate, known: true},
		{name: "a made-up cookie", header: []string{"Cookie", "weaver_login=99999999999.AAAA"}},
	}
	for _, a := range accesses {
		token := "token of " + a.String()
		cookie, _, _ := strings.Cut(s.post("/login", map[string]string{"token": token}).want(http.StatusOK).header.Get("Set-Cookie"), ";")
		callers = append(callers,
			caller{"a token for " + a.String(), []string{"Authorization", "Bearer " + token}, a, true},
			caller{"a cookie for " + a.String(), []string{"Cookie", cookie}, a, true})
	}
	return s, callers
}

func basic(name, password string) []string {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.SetBasicAuth(name, password)
	return []string{"Authorization", r.Header.Get("Authorization")}
}

// passwordLine returns a line with few rounds, to keep tests fast.
func passwordLine(name, access, password string) string {
	return httpapi.PasswordLine(name, access, password, 1000)
}

// probe returns a path of a route whose names do not exist.
func probe(r httpapi.RouteInfo) string {
	path := strings.NewReplacer("{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "{name}", "none", "{what}", "input").Replace(r.Pattern)
	if strings.Contains(path, "{") {
		return strings.NewReplacer("{", "", "}", "").Replace(path)
	}
	return path
}

// Each route accepts exactly the callers with its declared access.
func TestAccessOfEveryRoute(t *testing.T) {
	t.Parallel()
	s, callers := credentials(t, serverOptions{direct: true})
	open := newServer(t, serverOptions{direct: true})
	for _, at := range []*server{s, open} {
		s.no(at.client.KeepEvents(t.Context(), time.Hour))
	}
	for _, r := range s.api.Routes() {
		if r.ID == "login" {
			continue // TestLoginOperations, TestLogins
		}
		for _, c := range append(callers, caller{"anyone, of an Open API", nil, httpapi.Full, true}) {
			at := s
			if strings.HasPrefix(c.name, "anyone") {
				at = open
			}
			status, endless := at.knock(r, c)
			what := fmt.Sprintf("%s %s (%s) for %s: %d", r.Method, r.Pattern, r.Access, c.name, status)
			refused := status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
			switch {
			case endless && (r.Public || c.known && c.has.Has(r.Access)):
			case r.Public && refused, r.Public && status >= 500:
				t.Errorf("%s: it is public", what)
			case r.Public:
			case !c.known && len(c.header) > 0 && c.header[0] == "Authorization" && status == http.StatusTooManyRequests: // it has tried too often
			case !c.known && status != http.StatusUnauthorized:
				t.Errorf("%s, want 401", what)
			case c.known && !c.has.Has(r.Access) && status != http.StatusForbidden:
				t.Errorf("%s, want 403", what)
			case c.known && c.has.Has(r.Access) && (refused || status >= 500):
				t.Errorf("%s, want it to pass", what)
			}
		}
	}
}

// knock sends a caller's request with a body that the route rejects. endless means that the
// response is a stream.
func (s *server) knock(r httpapi.RouteInfo, c caller) (status int, endless bool) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var body any
	if r.Body {
		body = "[]"
	}
	if !r.Stream {
		return s.do(r.Method, probe(r), body, c.header...).status, false
	}
	in := httptest.NewRequestWithContext(ctx, r.Method, "http://127.0.0.1"+probe(r), http.NoBody)
	for i := 0; i+1 < len(c.header); i += 2 {
		in.Header.Set(c.header[i], c.header[i+1])
	}
	rec := &cutAtHeader{ResponseRecorder: httptest.NewRecorder(), cut: cancel}
	func() {
		defer func() {
			p := recover()
			if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
		}()
		s.api.ServeHTTP(rec, in)
	}()
	return rec.Code, rec.Header().Get("Content-Type") == "text/event-stream"
}

// cutAtHeader ends a request when its response begins.
type cutAtHeader struct {
	*httptest.ResponseRecorder
	cut func()
}

func (w *cutAtHeader) WriteHeader(status int) {
	w.ResponseRecorder.WriteHeader(status)
	w.cut()
}

func (w *cutAtHeader) Write(p []byte) (int, error) {
	w.cut()
	return w.ResponseRecorder.Write(p)
}

// A request from the page of another site is rejected, whatever credentials the browser adds.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	s, callers := credentials(t, serverOptions{direct: true})
	i := slices.IndexFunc(callers, func(c caller) bool { return c.name == "a cookie for submit,read,payloads,operate" })
	cookie := callers[i].header
	id := s.enqueueAs(cookie)
	for name, header := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"a sister site":  {"Sec-Fetch-Site", "same-site"},
		"another origin": {"Origin", "https://evil.example"},
		"no origin":      {"Origin", "null"},
	} {
		for _, r := range s.api.Routes() {
			if r.Method == http.MethodGet {
				continue
			}
			path := strings.Replace(r.Pattern, "{id}", id, 1)
			a := s.do(r.Method, strings.Replace(path, "{name}", "billing", 1), nil, append(header, cookie...)...)
			if a.status != http.StatusForbidden || !strings.Contains(string(a.body), "#cross-origin") {
				t.Errorf("%s: %s: %d %s", name, a.asked, a.status, a.body)
			}
		}
		s.get("/v1/tasks/"+id, append(header, cookie...)...).want(http.StatusOK)
	}
	s.post("/v1/tasks/"+id+"/cancel", nil, append(cookie, "Sec-Fetch-Site", "same-origin")...).want(http.StatusOK)
	for _, a := range []*answer{s.get("/v1/tasks", append(cookie, "Origin", "https://evil.example")...), s.do(http.MethodOptions, "/v1/tasks", nil, "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")} {
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: the header %s lets other sites read", a.asked, name)
			}
		}
	}
}

func (s *server) enqueueAs(header []string) string {
	s.Helper()
	a := s.post("/v1/tasks", `{"task_type":"acme.billing.charge.v1","input":{"order":"1","amount":1}}`, header...).want(http.StatusCreated)
	return strings.TrimPrefix(a.header.Get("Location"), "tasks/")
}

// Without credentials a server requires a Host that resolves only to itself.
func TestHostWithoutCredentials(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true})
	allowed := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) { cfg.AllowedHosts = []string{"ops.example"} }})
	closed, callers := credentials(t, serverOptions{direct: true})
	for _, r := range s.api.Routes() {
		if r.Public {
			s.do(r.Method, r.Pattern, nil, "Host", "evil.example").problem(http.StatusMisdirectedRequest, "misdirected")
			allowed.do(r.Method, r.Pattern, nil, "Host", "evil.example").problem(http.StatusMisdirectedRequest, "misdirected")
			if a := closed.do(r.Method, r.Pattern, nil, "Host", "evil.example"); a.status == http.StatusMisdirectedRequest {
				t.Errorf("%s: a server with credentials looks at the Host", a.asked)
			}
		}
	}
	s.get("/readyz", "Host", "localhost:80").want(http.StatusOK)
	allowed.get("/readyz", "Host", "ops.example").want(http.StatusOK)
	for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "[2001:db8::1]:80", "ops.example", "", "localhost:80:80"} {
		if a := s.get("/v1/tasks", "Host", host); host != "" {
			a.problem(http.StatusMisdirectedRequest, "misdirected")
		}
		s.post("/v1/tasks", "{}", "Host", "evil.example").problem(http.StatusMisdirectedRequest, "misdirected")
	}
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1", "127.8.8.8:1", "[::1]:8080", "[::1]"} {
		s.get("/v1/tasks", "Host", host).want(http.StatusOK)
	}
	allowed.get("/v1/tasks", "Host", "OPS.example:443").want(http.StatusOK)
	closed.get("/v1/tasks", append([]string{"Host", "evil.example"}, callers[len(callers)-2].header...)...).want(http.StatusOK)
}

// No form of a path bypasses the access check or reaches another route.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	s, _ := credentials(t, serverOptions{})
	open := newServer(t, serverOptions{})
	for _, path := range []string{
		"/v1/tasks/..%2fhealthz", "/v1/tasks/..%2f..%2fhealthz", "/v1/tasks/%2e%2e/%2e%2e/healthz", "/v1/tasks/%2e%2e%2fhealthz", "//healthz", "/./healthz",
		"/v1/./tasks", "/v1/../healthz", "/healthz/../v1/tasks", "/healthz/..%2fv1%2ftasks", "/v1//tasks", "/v1/tasks/", "/v1%2ftasks", "/v1/tasks%2f01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"/V1/tasks", "/v1/tasks;x=/healthz", `/v1\tasks`, "/v1/tasks%3Fq=", "/healthz%2f", "/healthz/", "/%2fhealthz", "/", "/openapi.json/",
	} {
		for _, at := range []*server{s, open} {
			a := at.raw("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
			if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusUnauthorized || a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d, Content-Type %q", path, a.StatusCode, a.Header.Get("Content-Type"))
			}
		}
	}
	for path, method := range map[string]string{"/v1/tasks": "PATCH", "/v1/me": "POST", "/healthz": "DELETE", "/v1/tasks/x/cancel": "GET", "/v1/jobs": "TRACE", "/login": "HEAD"} {
		if a := s.do(method, path, nil); a.status != http.StatusMethodNotAllowed || method != http.MethodHead && !strings.Contains(string(a.body), "#method-not-allowed") {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
	}
}

// The API behaves the same when it is mounted below a path.
func TestMounted(t *testing.T) {
	t.Parallel()
	s, callers := credentials(t, serverOptions{mount: "/weaver"})
	full := callers[len(callers)-1].header
	id := s.enqueueAs(full)
	s.get("/v1/tasks/"+id, full...).want(http.StatusOK)
	a := s.post("/v1/tasks/"+id+"/rerun", nil, full...).want(http.StatusCreated)
	var got httpapi.Enqueued
	a.into(&got)
	for relative, from := range map[string]string{a.header.Get("Location"): "/v1/tasks/" + id + "/rerun"} {
		if at := resolve(t, s.url+from, relative); at != s.url+"/v1/tasks/"+got.ID.String() {
			t.Errorf("the Location %q leads to %s", relative, at)
		}
	}
	for _, path := range []string{"/login", "/logout"} {
		cookie := s.post(path, map[string]any{"/login": map[string]string{"token": "token of read"}}[path]).header.Get("Set-Cookie")
		if !strings.Contains(cookie, "; Path=/weaver;") {
			t.Errorf("the cookie of %s is %q", path, cookie)
		}
	}
	for _, path := range []string{"", "/", "//healthz", "/v1/tasks/", "/../healthz"} {
		if a := s.raw("GET /weaver" + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); a.StatusCode != http.StatusNotFound {
			t.Errorf("/weaver%s: %d", path, a.StatusCode)
		}
	}
}

// If Authorize fails the request is rejected, without the reason.
func TestAuthorizeFails(t *testing.T) {
	t.Parallel()
	s := newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) {
		cfg.Authorize = func(*http.Request) (httpapi.Principal, error) {
			return httpapi.Principal{Name: "x", Access: httpapi.Full}, errors.New("ldap://secret@host is away")
		}
	}})
	a := s.get("/v1/tasks")
	a.problem(http.StatusServiceUnavailable, "access-undecided")
	if strings.Contains(string(a.body), "ldap") || !strings.Contains(s.log.String(), "ldap") {
		t.Errorf("the answer is %s, the log %s", a.body, s.log)
	}
}
