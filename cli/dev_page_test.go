package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The dev page and its files are served next to the API, which keeps all other paths.
func TestDevPage(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		method, path, says string
		status             int
	}{
		{http.MethodGet, "/", `src="/dev/page.js"`, http.StatusOK},
		{http.MethodGet, "/dev/page.js", "/v1/tasks", http.StatusOK},
		{http.MethodGet, "/dev/page.css", "table", http.StatusOK},
		{http.MethodPost, "/", "", http.StatusTeapot},
		{http.MethodGet, "/v1/tasks", "", http.StatusTeapot},
		{http.MethodGet, "/dev/../", "", http.StatusTeapot},
	} {
		w := httptest.NewRecorder()
		withPage(api).ServeHTTP(w, httptest.NewRequest(c.method, c.path, http.NoBody))
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || c.says != "" && !strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s %s: %d, policy %q, %.60s", c.method, c.path, w.Code, policy, w.Body)
		}
	}
}
