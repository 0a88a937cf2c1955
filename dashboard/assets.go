package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// files are the built scripts and styles. `make ui` makes them from dashboard/ui.
//
//go:embed assets
var files embed.FS

func embedded() fs.FS {
	sub, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // a constant name
	}
	return sub
}

// assets are the files of the pages. Their names contain a hash of their content.
type assets struct {
	content map[string]*content
	build   string // changes with any file
}

// content is a file with its compressed form.
type content struct {
	plain []byte
	etag  string
	zip   func() []byte // nil if it is not smaller
}

func newContent(b []byte) *content {
	sum := sha256.Sum256(b)
	return &content{plain: b, etag: hex.EncodeToString(sum[:8]), zip: sync.OnceValue(func() []byte {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return nil // not with a known level
		}
		_, _ = z.Write(b) // a buffer cannot fail
		_ = z.Close()
		if out.Len() >= len(b) {
			return nil
		}
		return out.Bytes()
	})}
}

// entries are the files that the document names.
var entries = [][2]string{{"app", ".js"}, {"theme", ".js"}, {"stream", ".js"}, {"style", ".css"}, {"icon", ".svg"}}

func loadAssets(from fs.FS) (*assets, error) {
	a := &assets{content: make(map[string]*content)}
	names, err := fs.Glob(from, "*.*")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := sha256.New()
	for _, name := range names {
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		a.content[name] = newContent(b)
		fmt.Fprintf(all, "%s %s\n", name, a.content[name].etag)
	}
	a.build = hex.EncodeToString(all.Sum(nil)[:6])
	var missing []error
	for _, e := range entries {
		if a.named(e[0], e[1]) == "" {
			missing = append(missing, fmt.Errorf("there is no %s-HASH%s: `make ui` builds it", e[0], e[1]))
		}
	}
	return a, errors.Join(missing...)
}

// named returns the file of an entry, as app-HASH.js, or "".
func (a *assets) named(entry, ext string) string {
	for name := range a.content {
		if strings.HasPrefix(name, entry+"-") && path.Ext(name) == ext {
			return name
		}
	}
	return ""
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	c := a.content[name]
	if c == nil {
		http.Error(w, "404: there is no such file: the dashboard may have been upgraded; reload the page", http.StatusNotFound)
		return
	}
	media := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the system's table may differ
	case ".js":
		media = "text/javascript; charset=utf-8"
	case ".css":
		media = "text/css; charset=utf-8"
	case ".svg":
		media = "image/svg+xml"
	case ".txt":
		media = "text/plain; charset=utf-8"
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if !strings.Contains(name, "-") { // no hash
		w.Header().Set("Cache-Control", "no-cache")
	}
	serve(w, r, media, c)
}

// serve writes a content, compressed if the client accepts it. Cache-Control is set by the caller.
func serve(w http.ResponseWriter, r *http.Request, media string, c *content) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Vary", "Accept-Encoding")
	body, etag := c.plain, `"`+c.etag+`"`
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if z := c.zip(); z != nil {
			body, etag = z, `"`+c.etag+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", etag)
	if match := r.Header.Get("If-None-Match"); match != "" && strings.Contains(match, c.etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // the client has disconnected
}
