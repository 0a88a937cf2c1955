package clitest_test

import (
	"net"
	"net/http"
	"regexp"
	"strconv"
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
	const late = "no answer within" // of a machine with much else to do
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
			sender.says("warning", "workers find the tasks in the store") // without the reason if it came too late
			doctor := start(t, dir, "--delivery", c.url, "doctor")
			if code := doctor.end(); code != 0 {
				t.Errorf("doctor: exit code %d", code)
			}
			doctor.says("Warning: the transport of --delivery cannot be used")
			doctor.saysOne(c.says, late)
			worker := start(t, dir, "--delivery", c.url, "worker", "--handlers", "builtin")
			worker.await("| ran")
			worker.await("succeeded")
			for _, q := range []*process{worker, p} {
				q.signal(syscall.SIGTERM)
				if code := q.end(); code != 0 {
					t.Errorf("exit code %d", code)
				}
				q.saysOne(c.says, late)
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

// metric returns the value of a metric without labels, or with all of them.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	_, body := request(t, url+"metrics", "")
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no metric %s:\n%s", name, body)
	return 0
}

// The roles API, worker and publisher as three processes with one Redis: hints start tasks, and without the Redis they
// finish as well.
func TestDelivery_Roles(t *testing.T) {
	t.Parallel()
	dir, redis := t.TempDir(), redistest.Start(t)
	sender := start(t, dir, "submit", "weaver.exec.run.v1", `{"shell": "echo first"}`)
	if code := sender.end(); code != 0 {
		t.Fatalf("submit: exit code %d", code)
	}
	role := func(args ...string) *process {
		return start(t, dir, append([]string{"--delivery", redis.URL(), "serve"}, args...)...)
	}
	publisher := role("--roles", "publisher", "--health", "127.0.0.1:0")
	publishing := healthURL(publisher)
	for metric(t, publishing, `weaver_hints_pushed_total{result="taken"}`) == 0 { // the publisher sends the hint of a task that nobody claims
	}
	worker := role("--roles", "worker", "--handlers", "builtin", "--health", "127.0.0.1:0")
	working := healthURL(worker)
	worker.await("succeeded")
	api := role("--roles", "api", "--addr", "127.0.0.1:0")
	url := regexp.MustCompile(`http://[^ "]+`).FindString(api.await("serving"))
	run := func() {
		t.Helper()
		id := submitted(t, url, "", "echo again")
		if status, body := request(t, url+"v1/tasks/"+id+"?wait=60s", ""); status != http.StatusOK || !strings.Contains(body, `"state":"succeeded"`) {
			t.Fatalf("the task: %d %s", status, body)
		}
	}
	if _, body := request(t, url+"readyz", ""); !strings.Contains(body, `{"name":"delivery","status":"ok"}`) || strings.Contains(body, `"engine"`) {
		t.Errorf("readyz of the API alone: %s", body)
	}
	if n := metric(t, url, "weaver_hints_refused"); n != 0 {
		t.Errorf("%v refused hints", n)
	}
	useful := func() float64 {
		return metric(t, working, "weaver_hints_popped_total") - metric(t, working, "weaver_hints_useless_total")
	}
	before := useful()
	for tries := 0; useful() <= before; tries++ { // the worker may find a task before its hint arrives, which is then useless
		if run(); tries == 200 {
			t.Fatal("no hint started a task")
		}
	}
	if n := metric(t, working, `weaver_hints_pushed_total{result="taken"}`); n != 0 {
		t.Errorf("the worker without the role publisher sent %v hints", n)
	}

	redis.Kill()
	run()
	for _, p := range []*process{api, worker, publisher} {
		p.signal(syscall.SIGTERM)
		if code := p.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, p.stderr.String())
		}
	}
}
