package clitest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// request sends an HTTP request, with an optional body, and returns the answer.
func request(t *testing.T, url, token string, body ...string) (status int, answer string) {
	t.Helper()
	method, text := http.MethodGet, io.Reader(nil)
	if len(body) > 0 {
		method, text = http.MethodPost, strings.NewReader(body[0])
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, text)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// serving starts `weaver serve` on a free port and returns its URL.
func serving(t *testing.T, dir string, args ...string) (p *process, url string) {
	t.Helper()
	p = start(t, dir, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	return p, regexp.MustCompile(`http://[^ "]+`).FindString(p.await("serving"))
}

// shellTask returns the body of a request that submits a shell command.
func shellTask(script string) string {
	return fmt.Sprintf(`{"task_type":"weaver.exec.run.v1","input":{"shell":%q},"max_attempts":3}`, script)
}

var anID = regexp.MustCompile(`"id":"(\w{26})"`)

// submitted submits a command and returns the task's ID.
func submitted(t *testing.T, url, token, script string) string {
	t.Helper()
	status, body := request(t, url+"v1/tasks", token, shellTask(script))
	id := anID.FindStringSubmatch(body)
	if status != http.StatusCreated || id == nil {
		t.Fatalf("submit: %d %s", status, body)
	}
	return id[1]
}

// A server is killed during its work; the next server has all tasks and continues.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := serving(t, dir, "--roles", "api,worker")
	id := submitted(t, url, "", "echo up; while ! test -f go; do sleep 0.05; done; echo done")
	p.await("| up")
	p.signal(syscall.SIGKILL)
	p.end()
	write(t, filepath.Join(dir, "go"), "")
	p, url = serving(t, dir, "--roles", "worker,api")
	status, body := request(t, url+"v1/tasks/"+id+"?wait=30s", "")
	if status != http.StatusOK || !strings.Contains(body, `"state":"succeeded"`) || !strings.Contains(body, `"attempt_no":2`) {
		t.Errorf("%d %s", status, body)
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.says("no credentials: every user of this machine has full access")
}

// A server enables event retention and streams the events.
func TestServeEvents(t *testing.T) {
	t.Parallel()
	p, url := serving(t, t.TempDir(), "--roles", "api,worker", "--keep-events", "1h")
	id := submitted(t, url, "", "true")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"v1/events?after=0&task="+id, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var names []string
	for scan := bufio.NewScanner(res.Body); len(names) < 3 && scan.Scan(); {
		if name := regexp.MustCompile(`^data: {"event":"(task\.\w+)"`).FindStringSubmatch(scan.Text()); name != nil {
			names = append(names, name[1])
		}
	}
	if fmt.Sprint(names) != "[task.enqueued task.started task.succeeded]" {
		t.Errorf("%s: the stream says %q", res.Status, names)
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// After one signal running requests and tasks may end, and no new ones are accepted.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := serving(t, dir, "--roles", "api,worker")
	id := submitted(t, url, "", "echo up; while ! test -f go; do sleep 0.05; done")
	p.await("| up")
	addr := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	waiting, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = fmt.Fprintf(waiting, "GET /v1/tasks/%s?wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n", id)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = waiting.Close() }()
	later, err := net.Dial("tcp", addr) // accepted after the other
	if err == nil {
		_, err = io.WriteString(later, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = later.Close() }()
	if answer, err := io.ReadAll(later); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Fatalf("ready: %s, %v", answer, err)
	}
	p.signal(syscall.SIGTERM)
	p.await("stopping: running work may end within 30s; interrupt again to stop it now")
	_ = waiting.SetDeadline(time.Now().Add(20 * time.Second))
	if body, err := io.ReadAll(waiting); err != nil || !strings.Contains(string(body), `"state":"running"`) {
		t.Errorf("the wait was answered with %s, %v", body, err)
	}
	for { // until it stops listening
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = c.Close()
	}
	write(t, filepath.Join(dir, "go"), "")
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	p.says(": succeeded in ", "server stopped")
}

// After the second signal the server does not wait: it releases the task.
func TestServeStopsNow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := serving(t, dir, "--roles", "api,worker", "--drain-timeout", "1h")
	submitted(t, url, "", "trap '' TERM INT; echo up; while :; do sleep 1; done")
	p.await("| up")
	p.signal(syscall.SIGTERM)
	p.await("stopping: ")
	apart()
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.says("stopping now", "server stopped")
	ls := start(t, dir, "task", "ls", "-o", "json")
	ls.end()
	if got := ls.stdout.String(); !strings.Contains(got, `"state": "ready"`) || !strings.Contains(got, `"attempt_count": 0,`) {
		t.Errorf("the task was not given back at no cost:\n%s", got)
	}
}

// Two servers of one store: the second address is in use, the next one is free.
func TestServeAddressInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := serving(t, dir, "-o", "json")
	if want := fmt.Sprintf("{\"serving\":%q}", url); !strings.Contains(p.stdout.String(), want) {
		t.Errorf("it printed %s, want %s", p.stdout.String(), want)
	}
	addr := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	for _, verb := range []string{"serve", "dev"} {
		second := start(t, dir, verb, "--addr", addr)
		if code := second.end(); code != 2 {
			t.Errorf("%s: exit code %d", verb, code)
		}
		second.says("--addr "+addr, "address already in use", "port 0 picks a free port")
	}
	_, other := serving(t, dir)
	submit := start(t, dir, "submit", "weaver.exec.run.v1", `{"shell": "true"}`)
	submit.end()
	for _, at := range []string{url, other} {
		if status, body := request(t, at+"v1/tasks", ""); status != http.StatusOK || strings.Count(body, `"id"`) != 1 {
			t.Errorf("%s: %d %s", at, status, body)
		}
	}
}

// newToken creates a token with a line in the file tokens.
func newToken(t *testing.T, dir, name, access string) string {
	t.Helper()
	p := start(t, dir, "token", "new", name, "--access", access, "--token-file", "tokens")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.stderr.String())
	}
	return strings.TrimSpace(p.stdout.String())
}

// With credentials the server listens on any address, and each principal has the access of its line, also for the
// tools at /mcp.
func TestServeCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reader, submitter, all := newToken(t, dir, "reader", "read"), newToken(t, dir, "submitter", "submit"), newToken(t, dir, "all", "full")
	made := startProgram(t, dir, "sh", "-c", "umask 077; echo correct horse | "+program(t)+" token password ann --access read >passwords")
	if code := made.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, made.stderr.String())
	}
	write(t, filepath.Join(dir, "key"), strings.Repeat("k", 32))
	args := []string{"--addr", "0.0.0.0:0", "--token-file", "tokens", "--password-file", "passwords", "--cookie-key-file", "key", "--roles", "api,worker"}
	p, url := serving(t, dir, args...)
	for _, c := range []struct {
		token, path string
		body        []string
		want        int
	}{
		{"", "v1/tasks", nil, 401},
		{"wv_wrong", "v1/tasks", nil, 401},
		{"", "healthz", nil, 200},
		{reader, "v1/tasks", nil, 200},
		{reader, "metrics", nil, 200},
		{reader, "v1/tasks", []string{shellTask("true")}, 403},
		{submitter, "v1/tasks", nil, 403},
		{submitter, "v1/tasks", []string{shellTask("true")}, 201},
		{"", "mcp", []string{"{}"}, 401},
		{submitter, "mcp", []string{"{}"}, 403},
		{all, "mcp/", nil, 404},
		{all, "//mcp", nil, 404},
	} {
		if status, body := request(t, url+c.path, c.token, c.body...); status != c.want {
			t.Errorf("%s with %.10q: %d %s, want %d", c.path, c.token, status, body, c.want)
		}
	}

	if _, body := request(t, url+"metrics", reader); !strings.Contains(body, "weaver_steps_total") || !strings.Contains(body, "weaver_workers") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics:\n%s", body)
	}

	// A browser authenticates with a name and a password, or with a login, which outlives the server.
	for password, want := range map[string]int{"correct horse": http.StatusOK, "wrong": http.StatusUnauthorized} {
		if status, body := request(t, strings.Replace(url, "http://", "http://ann:"+strings.ReplaceAll(password, " ", "%20")+"@", 1)+"v1/me", ""); status != want || want == 200 && !strings.Contains(body, `"ann"`) {
			t.Errorf("the password %q: %d %s", password, status, body)
		}
	}
	res, err := http.Post(url+"login", "application/json", strings.NewReader(fmt.Sprintf(`{"token":%q}`, reader)))
	if err != nil || len(res.Cookies()) != 1 {
		t.Fatalf("login: %v, %v", res, err)
	}
	_ = res.Body.Close()

	// The tools: a reader gets the reading tools, a token with more access gets all of them.
	if got := tools(t, url, reader); slices.Contains(got, "enqueue") || !slices.Contains(got, "list_tasks") {
		t.Errorf("tools of a reader: %q", got)
	}
	if got := tools(t, url, all); !slices.Contains(got, "enqueue") {
		t.Errorf("tools with full access: %q", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("it wrote %s", p.stderr.String())
	}

	_, url = serving(t, dir, args...)
	r, err := http.NewRequest(http.MethodGet, url+"v1/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(res.Cookies()[0])
	if res, err = http.DefaultClient.Do(r); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the login of before: %v, %v", res, err)
	}
	_ = res.Body.Close()
}

// tools lists the tools at /mcp for a token.
func tools(t *testing.T, url, token string) (names []string) {
	t.Helper()
	client := &http.Client{Transport: bearer(token)}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "mcp", HTTPClient: client}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cs.Close() }()
	got, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range got.Tools {
		names = append(names, tool.Name)
	}
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_tasks"})
	if err != nil || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "weaver.exec.run.v1") {
		t.Errorf("list_tasks: %v, %v", res, err)
	}
	return names
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// Connections without useful requests are closed: headers that do not end, and large ones. Without credentials only
// names of this machine are accepted.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	_, url := serving(t, t.TempDir(), "--allowed-host", "ops.example")
	addr := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	for name, c := range map[string]struct{ send, want string }{
		"headers without an end": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-", ""},
		"large headers":          {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"another host":           {"GET /v1/me HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 "},
		"tools, another host":    {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 421 "},
		"an allowed host":        {"GET /v1/me HTTP/1.1\r\nHost: ops.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
		"another site":           {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 "},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: other tests may take longer than the server lives
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(conn, c.send); err != nil && c.want == "" {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if !strings.HasPrefix(string(got), c.want) || errors.Is(err, os.ErrDeadlineExceeded) || c.want == "" && len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 4") {
				t.Errorf("answered %.200q, %v", got, err)
			}
		})
	}
}
