package clitest_test

import (
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/redistest"
)

// A Redis that is away, or does not accept the password, keeps nothing from running.
func TestDelivery_Unusable(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := "redis://:secret@" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, says string }{
		"away":     {away, "connection refused"},
		"password": {"redis://:secret@" + redistest.Start(t, "--requirepass", "other").Addr, "does not accept the user and password of the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := start(t, dir, "--delivery", c.url, "serve", "--addr", "127.0.0.1:0")
			url := regexp.MustCompile(`http://\S+`).FindString(p.await("api, publisher, reaper, collector"))
			if status, body := request(t, url+"readyz", ""); status != http.StatusOK || !strings.Contains(body, `{"name":"delivery","status":"degraded","detail":"the transport of --delivery cannot be used`) {
				t.Errorf("readyz: %d %s", status, body)
			}
			sender := start(t, dir, "--delivery", c.url, "submit", "weaver.exec.run.v1", `{"shell": "echo ran"}`)
			if code := sender.end(); code != 0 {
				t.Errorf("submit: exit code %d", code)
			}
			sender.says(c.says, "warning", "workers find the tasks in the store")
			doctor := start(t, dir, "--delivery", c.url, "doctor")
			if code := doctor.end(); code != 0 {
				t.Errorf("doctor: exit code %d", code)
			}
			doctor.says("Warning: the transport of --delivery cannot be used", c.says)
			worker := start(t, dir, "--delivery", c.url, "worker", "--handlers", "builtin")
			worker.await("| ran")
			worker.await("succeeded")
			for _, q := range []*process{worker, p} {
				q.signal(syscall.SIGTERM)
				if code := q.end(); code != 0 {
					t.Errorf("exit code %d", code)
				}
				q.says(c.says)
			}
			if n := strings.Count(p.stderr.String(), "the transport of --delivery cannot be used"); n != 1 {
				t.Errorf("the server warns %d times at its start:\n%s", n, p.stderr.String())
			}
			for _, q := range []*process{sender, doctor, worker, p} {
				if strings.Contains(q.stdout.String()+q.stderr.String(), "secret") {
					t.Errorf("a password is printed:\n%s%s", q.stdout.String(), q.stderr.String())
				}
			}
		})
	}
}
