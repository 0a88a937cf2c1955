package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/httpapi/wire"
)

// Config configures a Dashboard. The zero value works.
type Config struct {
	// API serves the data below the dashboard's path: an *httpapi.API, or one behind a middleware.
	// Default: an API without credentials, which serves only the hosts localhost, 127.0.0.1 and [::1].
	API http.Handler

	Title string // the name of this installation, for example "production". Default: empty
	Links []Link // links of each task to other systems. Default: empty

	// ReadOnly refuses every request that changes something, and leaves its buttons out. The same API
	// mounted elsewhere is not restricted.
	ReadOnly bool

	// FrameAncestors are the origins whose pages may show the dashboard in a frame, as
	// "https://portal.example.com". Default: empty, so that no page may.
	FrameAncestors []string

	Assets fs.FS // the files of the pages, for development of the dashboard. Default: the embedded ones
}

// Link is a link from a task to another system, for example its traces or logs.
type Link struct {
	Name string `json:"name"` // the text of the link
	// URL has the placeholders {id}, {type}, {queue} and {job}, as "https://logs.example.com/?q={id}".
	// Its scheme is http or https.
	URL string `json:"url"`
}

// Dashboard is the handler. It is safe for concurrent use.
type Dashboard struct {
	api    http.Handler
	own    *httpapi.API // built for Config.API; nil: the program has one
	assets *assets
	config pageConfig
	policy string
	only   bool // read only
}

// pageConfig is the part of the configuration that the scripts read.
type pageConfig struct {
	Title    string `json:"title"`
	Links    []Link `json:"links"`
	ReadOnly bool   `json:"read_only"`
	Version  string `json:"version"` // of the program that serves the pages
	Build    string `json:"build"`   // changes with the assets
	Stream   string `json:"stream"`  // the file of the shared worker
}

// New returns a Dashboard of the client's namespace. It opens no resources. The error is weaver.ErrConfig.
func New(client *weaver.Client, cfg Config) (*Dashboard, error) {
	var problems []error
	if client == nil {
		problems = append(problems, errors.New("the client is nil: give it the one of weaver.NewClient, or an engine's"))
	}
	for i, l := range cfg.Links {
		if l.Name == "" || !strings.HasPrefix(l.URL, "https://") && !strings.HasPrefix(l.URL, "http://") {
			problems = append(problems, fmt.Errorf("the link Links[%d] is %q, %q: want a name and a URL that begins with https:// or http://", i, l.Name, l.URL))
		}
	}
	ancestors := "'none'"
	if len(cfg.FrameAncestors) > 0 {
		ancestors = strings.Join(cfg.FrameAncestors, " ")
	}
	if strings.ContainsAny(ancestors, ";,\r\n") {
		problems = append(problems, fmt.Errorf("the field FrameAncestors is %q: want origins, as https://portal.example.com", cfg.FrameAncestors))
	}
	if cfg.Assets == nil {
		cfg.Assets = embedded()
	}
	files, err := loadAssets(cfg.Assets)
	if err != nil {
		problems = append(problems, fmt.Errorf("the files of Assets: %w", err))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", weaver.ErrConfig, errors.Join(problems...))
	}
	d := &Dashboard{
		api: cfg.API, assets: files, only: cfg.ReadOnly,
		policy: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
			"base-uri 'none'; form-action 'self'; frame-ancestors " + ancestors,
		config: pageConfig{Title: cfg.Title, Links: append([]Link{}, cfg.Links...), ReadOnly: cfg.ReadOnly, Version: version(), Build: files.build, Stream: files.named("stream", ".js")},
	}
	if d.api == nil {
		d.own, err = httpapi.New(httpapi.Config{Client: client, Authorize: httpapi.Open(httpapi.Principal{Name: "local", Access: httpapi.Full})})
		if err != nil {
			return nil, err
		}
		d.api = d.own
	}
	return d, nil
}

// Stop ends the streams of the API that New built, for which an http.Server's Shutdown would wait. It does
// nothing if the program configured an API, which has its own Stop.
func (d *Dashboard) Stop() {
	if d.own != nil {
		d.own.Stop()
	}
}

// version returns the version of the module with this package, or of the program if that is the module.
func version() string {
	const module = "github.com/goweaver/weaver"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return info.Main.Version
}

// pages are the first segments of the paths of pages; the scripts know the rest.
var pages = map[string]bool{
	"tasks": true, "jobs": true, "queues": true, "workers": true, "schedules": true, "inbox": true, "events": true,
	"types": true, "audit": true, "limits": true, "orders": true, "about": true,
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	at := strings.TrimPrefix(r.URL.Path, "/")
	first, rest, deeper := strings.Cut(at, "/")
	switch {
	case reading && first == "assets" && deeper:
		d.headers(w)
		d.assets.serve(w, r, rest)
	case reading && at == "dashboard.json":
		d.headers(w)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(d.config) // the client has disconnected
	case reading && at == "favicon.ico":
		d.headers(w)
		w.Header().Set("Cache-Control", "max-age=86400")
		w.WriteHeader(http.StatusNoContent)
	case reading && (at == "" || pages[first]):
		d.headers(w)
		d.shell(w, r, strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")) // %2F separates no folders
	case d.only && !reading && first == "v1":
		d.headers(w)
		d.refuse(w)
	default:
		d.api.ServeHTTP(w, r)
	}
}

// headers sets the headers of every answer that is not the API's.
func (d *Dashboard) headers(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", d.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// refuse answers a change of a dashboard that is read-only.
func (d *Dashboard) refuse(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(wire.Problem{ // the client has disconnected
		Type: wire.ProblemBase + "forbidden", Title: "These credentials do not allow it.", Status: http.StatusForbidden,
		Detail: "This dashboard is read-only: its configuration refuses changes. Use a server that allows them, or the command weaver.",
	})
}

// moved returns the address of the page if the request has another one: a page ends without a slash, the
// root with one. It is relative, so that it is right under every prefix; "" means that there is none.
func moved(r *http.Request) string {
	at := r.URL.EscapedPath()
	trimmed := strings.TrimRight(at, "/")
	to := ""
	switch {
	case at == "": // http.StripPrefix removed all of it
		sent, _, _ := strings.Cut(r.RequestURI, "?")
		if strings.HasSuffix(sent, "/") || sent == "" {
			return ""
		}
		to = "./" + path.Base(sent) + "/"
	case trimmed == "" || trimmed == at:
		return ""
	default:
		to = strings.Repeat("../", len(at)-len(trimmed)) + path.Base(trimmed)
	}
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	return to
}

// shell writes the document for a path below so many folders.
func (d *Dashboard) shell(w http.ResponseWriter, r *http.Request, depth int) {
	if to := moved(r); to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	doc, err := document(d.config, d.assets, depth, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	serve(w, r, "text/html; charset=utf-8", newContent(doc))
}
