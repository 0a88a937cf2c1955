package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/goweaver/weaver/dashboard"
)

type browserServeCmd struct {
	Dir  string `arg:"" name:"folder" default:"site" help:"A folder of weaver browser build; default ${default}."`
	Addr string `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on; default ${default}."`
}

// Help implements kong.HelpProvider.
func (browserServeCmd) Help() string {
	return "Another web server needs to do the same: the type application/wasm, the compressed copies, no caching of files without a hash in their name, " +
		"dashboard/index.html for the pages of the dashboard, and https for all but localhost. docs/browser.md lists the headers."
}

// Run implements the verb.
func (c *browserServeCmd) Run(ctx context.Context, s *session) error {
	raw, err := os.ReadFile(c.Dir + "/weaver.json")
	var made site
	if err == nil {
		err = json.Unmarshal(raw, &made)
	}
	if err != nil {
		return fmt.Errorf("the folder %s: %w: `%s browser build` writes such a folder", c.Dir, err, s.app.Name)
	}
	dash, err := dashboard.NewStatic(made.Name, "../dashboard.js")
	if err != nil {
		return err
	}
	listen, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose another address with --addr", c.Addr, err)
	}
	server := &http.Server{Handler: &siteServer{files: os.DirFS(c.Dir), dash: dash}, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(s.errs, "http://%s/ (dashboard: http://%[1]s/dashboard/)\n", listen.Addr())
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // files have no state
	defer stop()
	if err := server.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", c.Dir, err)
	}
	return nil
}

// sitePolicy allows the pages nothing of other hosts, and WebAssembly.
const sitePolicy = "default-src 'self'; img-src 'self' data: blob:; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// siteServer serves the folder of a build.
type siteServer struct {
	files fs.FS
	dash  *dashboard.Static
}

// hashed matches the names of files that never change.
var hashed = regexp.MustCompile(`-([0-9a-f]{12}|[0-9A-Z]{8})\.[a-z]+$`)

// ServeHTTP implements http.Handler.
func (s *siteServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", sitePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "This server has files only: the API is in the page.", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" || strings.HasSuffix(r.URL.Path, "/") && name != "dashboard" {
		name = path.Join(name, "index.html")
	}
	if hashed.MatchString(name) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if below, ok := strings.CutPrefix(r.URL.Path, "/dashboard/"); ok && dashboard.IsPage(below) {
		doc, err := s.dash.Page(strings.Count(below, "/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(doc) // the client has disconnected
		return
	}
	if name == "dashboard" {
		http.Redirect(w, r, "/dashboard/", http.StatusTemporaryRedirect)
		return
	}
	media := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the system's table may differ
	case ".wasm":
		media = "application/wasm"
	case ".js":
		media = "text/javascript; charset=utf-8"
	}
	if media != "" {
		h.Set("Content-Type", media)
	}
	for _, e := range [][2]string{{"br", ".br"}, {"gzip", ".gz"}} {
		if _, err := fs.Stat(s.files, name+e[1]); err == nil && accepts(r, e[0]) {
			h.Set("Content-Encoding", e[0])
			name += e[1]
			break
		}
	}
	h.Set("Vary", "Accept-Encoding")
	s.send(w, r, name)
}

func (s *siteServer) send(w http.ResponseWriter, r *http.Request, name string) {
	f, err := s.files.Open(name)
	if err == nil {
		defer func() { _ = f.Close() }() // it was only read
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	content, ok := f.(io.ReadSeeker)
	if err != nil || info.IsDir() || !ok {
		w.Header().Del("Content-Encoding")
		http.Error(w, "404: the build has no such file", http.StatusNotFound)
		return
	}
	http.ServeContent(w, r, name, info.ModTime(), content)
}

// accepts reports whether a client accepts an encoding.
func accepts(r *http.Request, encoding string) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == encoding && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
