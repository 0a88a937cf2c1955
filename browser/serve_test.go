//go:build !js

package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A name that another site moved to this machine is not served: it could read a backup.
func TestLocal(t *testing.T) {
	t.Parallel()
	h := local(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "[::1]": 200,
		"evil.example": 421, "evil.example:8080": 421, "192.0.2.1:8080": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/browser/backup", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}
