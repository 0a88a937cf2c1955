package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goweaver/weaver/httpapi"
)

// Guard passes exactly the callers with the access to its handler.
func TestGuard(t *testing.T) {
	t.Parallel()
	tokens := tokensOf(t, "writer submit "+hashOf("w"), "reader read "+hashOf("r"))
	var seen string
	handler := func(a *httpapi.API) http.Handler {
		return a.Guard("reports", httpapi.Read, func(w http.ResponseWriter, r *http.Request, who httpapi.Principal) {
			if seen = who.Name; r.URL.Path == "/panic" {
				panic("oops")
			}
			_, _ = io.WriteString(w, "for "+who.Name)
		})
	}
	withTokens := newServer(t, serverOptions{config: func(c *httpapi.Config) { c.Authorize = tokens.Authorize }})
	open := newServer(t, serverOptions{})
	for _, c := range []struct {
		of                          *server
		token, path, host, site, is string
		status                      int
	}{
		{withTokens, "", "/", "", "", "Credentials are needed", 401},
		{withTokens, "x", "/", "", "", "wrong or no longer good", 401},
		{withTokens, "w", "/", "", "", "reports needs the access read", 403},
		{withTokens, "r", "/", "", "", "for reader", 200},
		{withTokens, "r", "/", "any.example", "", "for reader", 200},
		{withTokens, "r", "/", "", "cross-site", "another site", 403},
		{withTokens, "r", "/panic", "", "", "The server failed", 500},
		{open, "", "/", "localhost", "", "for ann", 200},
		{open, "", "/", "evil.example", "", "evil.example", 421},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		if c.host != "" {
			r.Host = c.host
		}
		seen = ""
		w := httptest.NewRecorder()
		handler(c.of.api).ServeHTTP(w, r)
		said := fmt.Sprintf("%s by %q from %q at %q: %d %s", c.path, c.token, c.site, c.host, w.Code, w.Body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.is) {
			t.Errorf("%s, want %d and %q", said, c.status, c.is)
		}
		if let := c.status == 200 || c.path == "/panic"; let != (seen != "") {
			t.Errorf("%s: the handler saw %q", said, seen)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", said, w.Header())
		}
	}
}
