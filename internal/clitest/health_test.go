package clitest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// healthURL returns the URL that a process with --health has printed, without readyz.
func healthURL(p *process) string {
	p.Helper()
	return strings.TrimSuffix(regexp.MustCompile(`http://\S+`).FindString(p.await("health at ")), "readyz")
}

// A worker with --health answers probes, also while it drains; a second SIGTERM ends it.
func TestWorkerHealth(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"worker": {"worker", "--handlers", "builtin"},
		"serve":  {"serve", "--roles", "worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := start(t, dir, "submit", "weaver.exec.run.v1", `{"shell": "trap '' TERM INT; echo up; while :; do sleep 1; done"}`)
			if code := p.end(); code != 0 {
				t.Fatalf("submit: exit code %d", code)
			}
			p = start(t, dir, append(args, "--health", "127.0.0.1:0", "--drain-timeout", "1h")...)
			url := healthURL(p)
			p.await("| up")
			for _, path := range []string{"healthz", "readyz"} {
				if status, body := request(t, url+path, ""); status != http.StatusOK {
					t.Errorf("%s: %d %s", path, status, body)
				}
			}
			if status, body := request(t, url+"readyz", ""); !strings.Contains(body, `"checks":[{"name":"store","status":"ok"},{"name":"process","status":"ok"},{"name":"engine","status":"ok"}]`) {
				t.Errorf("readyz: %d %s", status, body)
			}
			if _, body := request(t, url+"metrics", ""); !strings.Contains(body, "weaver_claim_latency_seconds_count 1\n") {
				t.Errorf("the metrics lack those of the engine:\n%s", body)
			}
			for _, path := range []string{"v1/tasks", "openapi.json", "login", ""} {
				if status, body := request(t, url+path, ""); status != http.StatusNotFound {
					t.Errorf("/%s: %d %s", path, status, body)
				}
			}
			probe(t, dir, 0, url+"readyz").says(url + "readyz: 200 OK")

			p.signal(syscall.SIGTERM)
			p.await("stopping: ")
			if status, _ := request(t, url+"healthz", ""); status != http.StatusOK {
				t.Errorf("healthz during the drain: %d", status)
			}
			if status, body := request(t, url+"readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "process: it is stopping") {
				t.Errorf("readyz during the drain: %d %s", status, body)
			}
			probe(t, dir, 1, url+"readyz").says("503 Service Unavailable: process: it is stopping")
			apart()
			p.signal(syscall.SIGTERM)
			if code := p.end(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			p.says("stopping now")
			probe(t, dir, 1, url+"healthz").says("connection refused")
		})
	}
}

// probe runs `weaver healthcheck`.
func probe(t *testing.T, dir string, want int, args ...string) *process {
	t.Helper()
	p := start(t, dir, append([]string{"healthcheck"}, args...)...)
	if code := p.end(); code != want {
		t.Errorf("healthcheck %q: exit code %d, want %d", args, code, want)
	}
	return p
}

// A store that is away makes a process unready, with the reason; it stays alive.
func TestReadyWithoutStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := serving(t, dir)
	probe(t, dir, 0, url+"readyz")
	probe(t, dir, 0, url+"readyz", "-o", "json").says(`{"name":"store","status":"ok"}`)
	if err := os.Rename(filepath.Join(dir, "weaver.db"), filepath.Join(dir, "away.db")); err != nil {
		t.Fatal(err)
	}
	probe(t, dir, 1, url+"readyz").says("503 Service Unavailable: store: The store ")
	probe(t, dir, 0, url+"healthz")
	if err := os.Rename(filepath.Join(dir, "away.db"), filepath.Join(dir, "weaver.db")); err != nil {
		t.Fatal(err)
	}
	for status := 0; status != http.StatusOK; { // the server looks at the file from time to time
		status, _ = request(t, url+"readyz", "")
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Wrong uses name the mistake and open nothing.
func TestHealthMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ args, says string }{
		{"serve --health 127.0.0.1:0", "--health is for processes without the role api"},
		{"worker --health 8080", `--health "8080": `},
		{"worker --health 127.0.0.1:99999", "want a number from 0 to 65535"},
		{"worker --health 192.0.2.1:0", "--health 192.0.2.1:0: "},
		{"healthcheck localhost:8080", "localhost:8080: not an HTTP URL"},
		{"healthcheck file:///etc/passwd", "not an HTTP URL"},
		{"healthcheck --timeout 0s", "--timeout 0s: want more than 0s"},
	} {
		p := start(t, dir, strings.Fields(c.args)...)
		if code := p.end(); code != 2 {
			t.Errorf("%s: exit code %d, want 2", c.args, code)
		}
		p.says(c.says)
	}
	if _, err := os.Stat(filepath.Join(dir, "weaver.db")); err == nil {
		t.Error("a store was made")
	}
}
