package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The dashboard works in a tab without a server: what a person does there by keyboard, and axe finds nothing.
func TestE2EDashboardInTab(t *testing.T) {
	if os.Getenv("WEAVER_E2E") == "" {
		t.Skip("make e2e runs this")
	}
	site := filepath.Join(t.TempDir(), "site")
	var out bytes.Buffer
	if code := cli.Run(context.Background(), cli.App{}, []string{"browser", "build", "github.com/goweaver/weaver/internal/systemtest/webtasks/tab", "--out", site, "--plain"}, nil, &out, &out); code != 0 {
		t.Fatalf("weaver browser build: exit code %d\n%s", code, out.String())
	}
	url := serveSite(t, site)
	paths := []struct {
		name  string
		width int64
		run   func(*tab, *world, string)
	}{
		{"failure", 1280, failureToRerun}, {"inbox", 390, inboxToAnswer}, {"pause", 1280, pauseToWhy}, {"bulk", 390, bulkStoppedAndContinued},
	}
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			b := openTab(t)
			w := worldIn(b, url)
			b.screen(path.width, false)
			path.run(b, w, url+"dashboard/")
			if path.name == "failure" {
				b.screen(1280, false)
				b.visit(url + "dashboard/")
				b.ready()
				pages := b.navigation()
				for i, page := range pages {
					pages[i] = strings.TrimPrefix(page, "dashboard/")
				}
				b.examine(url+"dashboard/", pages)
			}
		})
	}
}

// serveSite serves a folder as `weaver browser serve` does.
func serveSite(t *testing.T, site string) (url string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = cli.Run(ctx, cli.App{}, []string{"browser", "serve", site, "--addr", "127.0.0.1:0"}, nil, w, w)
		_ = w.Close()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	line := make([]byte, 4096)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ = strings.Cut(strings.TrimSpace(string(line[:n])), " ")
	return url
}

// worldIn returns the world of the program in the browser of a tab. Another tab sends its requests.
func worldIn(b *tab, url string) *world {
	b.Helper()
	sender := b.beside()
	sender.allow("favicon.ico")
	sender.visit(url + "weaver.json") // a document without scripts
	client, err := httpapi.NewClient("http://tab", httpapi.HTTPClient(&http.Client{Transport: inTab{sender, url}}))
	w := &world{TB: b.TB, tasks: client}
	w.must(err)
	w.states = func() map[task.State]store.Count {
		c, err := client.Counts(w.Context())
		w.must(err)
		return c.States
	}
	return w
}

// inTab sends requests by weaver.js.
type inTab struct {
	b   *tab
	url string
}

func (i inTab) RoundTrip(r *http.Request) (*http.Response, error) {
	init := map[string]any{"method": r.Method, "headers": map[string]string{}}
	for name := range r.Header {
		init["headers"].(map[string]string)[name] = r.Header.Get(name)
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if len(body) > 0 {
			init["body"] = string(body)
		}
	}
	arg, err := json.Marshal(init)
	if err != nil {
		return nil, err
	}
	got := eval[struct {
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
		Body    string      `json:"body"`
	}](i.b, fmt.Sprintf(`import(%q).then(async (m) => {
		const res = await m.connect().fetch(%q, %s);
		return { status: res.status, headers: [...res.headers], body: await res.text() };
	})`, i.url+"weaver.js", strings.TrimPrefix(r.URL.RequestURI(), "/"), arg))
	res := &http.Response{StatusCode: got.Status, Status: http.StatusText(got.Status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(got.Body)), Request: r}
	for _, h := range got.Headers {
		res.Header.Add(h[0], h[1])
	}
	return res, nil
}
