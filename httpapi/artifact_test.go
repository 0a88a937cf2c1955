package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/task"
)

var report = weaver.Define[string, weaver.ArtifactRef]("acme.test.report.v1", weaver.NoRetry())

// artifacts starts a server with a bucket in a folder, and runs a task with two artifacts.
func artifacts(t *testing.T, content string) (s *server, of weaver.TaskID, folder string, list []task.Artifact) {
	t.Helper()
	folder = t.TempDir()
	bucket := blob.Dir(folder)
	s = newServer(t, serverOptions{config: func(c *httpapi.Config) {
		client, err := weaver.NewClient(c.Client.Store(), weaver.ClientConfig{Bucket: bucket})
		if err != nil {
			t.Fatal(err)
		}
		c.Client = client
	}})
	h, err := report.Enqueue(t.Context(), s.client, "")
	s.no(err)
	e, err := weaver.New(s.store, weaver.Config{Bucket: bucket, Handlers: []weaver.Handler{report.Handler(func(ctx context.Context, _ string) (weaver.ArtifactRef, error) {
		if _, err := weaver.LinkArtifact(ctx, "elsewhere", task.Link{URL: "https://example.com/secret?token=abc"}); err != nil {
			return weaver.ArtifactRef{}, err
		}
		return weaver.PutArtifact(ctx, "reports/Grüße \"a\".html", strings.NewReader(content), weaver.ContentType("text/html; charset=utf-8"))
	})}})
	s.no(err)
	s.no(e.RunUntilIdle(t.Context()))
	list, err = s.client.Artifacts(t.Context(), h.ID())
	s.no(err)
	if len(list) != 2 {
		t.Fatalf("artifacts: %+v", list)
	}
	return s, h.ID(), folder, list
}

// An artifact is sent completely, and never as a page of this server.
func TestArtifact(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("<script>alert(1)</script>\n", 20_000) // several reads
	s, of, _, list := artifacts(t, content)
	link, html := list[0].ID.String(), list[1].ID.String()
	at := "/v1/artifacts/" + html + "?task=" + of.String()
	a := s.get(at).want(http.StatusOK)
	if string(a.body) != content {
		t.Errorf("%d bytes came, want %d", len(a.body), len(content))
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Length": "520000",
		"Content-Disposition":     "attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe%20%22a%22.html",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if head := s.do(http.MethodHead, at, nil).want(http.StatusOK); len(head.body) > 0 || head.header.Get("Content-Length") != "520000" {
		t.Errorf("HEAD: %d bytes, %v", len(head.body), head.header)
	}
	a = s.get("/v1/artifacts/" + link + "?task=" + of.String())
	if a.problem(http.StatusNotFound, "not-found"); strings.Contains(string(a.body), "token") {
		t.Errorf("the link is shown: %s", a.body)
	}
	if a := s.get("/v1/artifacts/" + html).want(http.StatusOK); string(a.body) != string(s.get(at).want(http.StatusOK).body) || len(a.body) == 0 {
		t.Errorf("without its task the artifact is %.100s", a.body)
	}
	s.get("/v1/artifacts/"+of.String()).problem(http.StatusNotFound, "not-found")
	s.get("/v1/artifacts/"+of.String()+"?task="+of.String()).problem(http.StatusNotFound, "not-found")
	s.get("/v1/artifacts/"+html+"?task="+task.NewIDs(nil).New().String()).problem(http.StatusNotFound, "not-found")
	s.get("/v1/artifacts/x?task="+of.String()).problem(http.StatusNotFound, "not-found")
}

// Changed or missing bytes are not served as the artifact.
func TestArtifactTrouble(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 100, "large": 500_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, of, folder, list := artifacts(t, strings.Repeat("x", size))
			path := "/v1/artifacts/" + list[1].ID.String() + "?task=" + of.String()
			file := onlyFile(t, folder)
			raw, err := os.ReadFile(file)
			s.no(err)
			raw[len(raw)-20] ^= 1
			s.no(os.WriteFile(file, raw, 0o600))
			res, err := http.Get(s.url + path)
			if err == nil {
				var body []byte
				if body, err = io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK {
					t.Errorf("%d changed bytes came as the whole artifact", len(body))
				} else if err == nil && (res.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), "#bytes-changed")) {
					t.Errorf("changed bytes are answered with %d %s", res.StatusCode, body)
				}
				s.no(res.Body.Close())
			}
			s.no(os.Remove(file))
			if p := s.get(path).problem(http.StatusGone, "blob-gone"); strings.Contains(p.Detail, folder) {
				t.Errorf("the answer names a folder of the server: %s", p.Detail)
			}
		})
	}
}

// onlyFile returns the largest file below a folder.
func onlyFile(t *testing.T, folder string) (largest string) {
	t.Helper()
	size := int64(-1)
	if err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return largest
}

// A server without a bucket returns an error that says so.
func TestArtifactWithoutBucket(t *testing.T) {
	t.Parallel()
	s, of, _, list := artifacts(t, "x")
	bare := newServer(t, serverOptions{store: s.store})
	bare.get("/v1/artifacts/"+list[1].ID.String()+"?task="+of.String()).problem(http.StatusServiceUnavailable, "no-bucket")
}

// A client that reads nothing is cut after StreamTimeout, and a slow one when the API stops.
func TestArtifactIsCut(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", 4<<20) // more than the socket buffers hold
	for name, cut := range map[string]func(*server){
		"timeout": func(*server) {},
		"stop":    func(s *server) { s.api.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, of, folder, list := artifacts(t, content)
			bucket := closes{blob.Dir(folder), make(chan struct{}, 1)}
			client, err := weaver.NewClient(made.store, weaver.ClientConfig{Bucket: bucket})
			made.no(err)
			s := newServer(t, serverOptions{store: made.store, config: func(c *httpapi.Config) {
				c.Client = client
				c.StreamTimeout = map[string]time.Duration{"timeout": 50 * time.Millisecond, "stop": time.Hour}[name]
			}})
			res, err := http.Get(s.url + "/v1/artifacts/" + list[1].ID.String() + "?task=" + of.String())
			s.no(err)
			defer func() { _ = res.Body.Close() }()
			cut(s)
			<-bucket.closed
			if n, err := io.Copy(io.Discard, res.Body); err == nil {
				t.Errorf("all %d bytes came", n)
			}
		})
	}
}

// closes is a bucket that reports when a stream of it is closed.
type closes struct {
	blob.Bucket
	closed chan struct{}
}

func (c closes) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := c.Bucket.Get(ctx, key)
	return closesOf{r, c.closed}, err
}

type closesOf struct {
	io.ReadCloser
	closed chan struct{}
}

func (c closesOf) Close() error {
	c.closed <- struct{}{}
	return c.ReadCloser.Close()
}
