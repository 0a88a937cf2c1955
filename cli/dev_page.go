package cli

import (
	"embed"
	"net/http"
)

// devPages holds the web page of `weaver dev`: the newest tasks, each with its explanation.
// Its script reads the API with the token from the URL fragment.
//
//go:embed devpage
var devPages embed.FS

// withPage serves the page at / and passes all other requests to the API.
func withPage(api http.Handler) http.Handler {
	files := map[string]struct{ name, media string }{
		"/":             {"index.html", "text/html; charset=utf-8"},
		"/dev/page.css": {"page.css", "text/css; charset=utf-8"},
		"/dev/page.js":  {"page.js", "text/javascript; charset=utf-8"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := files[r.URL.EscapedPath()]
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			api.ServeHTTP(w, r)
			return
		}
		body, err := devPages.ReadFile("devpage/" + file.name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", file.media)
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
	})
}
