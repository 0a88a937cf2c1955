package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/memstore"
)

// The session's user limits the API of the dashboard; without a session a page leads to the sign-in.
func TestSessions(t *testing.T) {
	t.Parallel()
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, stop, err := routes(client)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(stop)
	for name, want := range map[string]struct{ me, pause int }{"": {401, 401}, "bob": {200, 403}, "ann": {200, 204}} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := &http.Client{Jar: jar}
		if name != "" {
			res, err := browser.PostForm(server.URL+"/signin", url.Values{"name": {name}})
			if err != nil {
				t.Fatal(err)
			}
			page, err := io.ReadAll(res.Body)
			if err != nil || res.Body.Close() != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(res.Request.URL.Path, "/ops/") || !strings.Contains(string(page), "Mail · Weaver") {
				t.Errorf("%s arrives at %s: %s", name, res.Request.URL, page)
			}
			if policy := res.Header.Values("Content-Security-Policy"); len(policy) != 1 || !strings.Contains(policy[0], "script-src 'self'") {
				t.Errorf("the policy of the dashboard is %q", policy)
			}
		}
		status := func(method, path, mode string) int {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Sec-Fetch-Mode", mode)
			res, err := browser.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if mode == "navigate" && name == "" && res.Request.URL.Path != "/" {
				t.Errorf("without a session the page is %s", res.Request.URL)
			}
			return res.StatusCode
		}
		status(http.MethodGet, "/ops/tasks", "navigate")
		if got := status(http.MethodGet, "/ops/v1/me", "cors"); got != want.me {
			t.Errorf("%q: who it is answers %d", name, got)
		}
		if got := status(http.MethodPost, "/ops/v1/queues/default/pause", "cors"); got != want.pause {
			t.Errorf("%q: a pause answers %d", name, got)
		}
	}
}
