package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed browser/durably
var durablyPage embed.FS

const esbuild = "github.com/evanw/esbuild/cmd/esbuild@v0.28.2"

// browserMost is the longest measurement in a tab.
const browserMost = 5 * time.Minute

// tabs measures pages in Chromium: Weaver's in /weaver/, and that of @coji/durably on SQLocal in /durably/.
type tabs struct {
	dir      string
	program  string // Chromium
	url      string
	profiles int
	results  chan tabResult
	close    func() error
}

type tabResult struct {
	Value float64 `json:"value"`
	Error string  `json:"error"`
}

// newTabs builds both pages and serves them. It needs chromium, node and npm.
func newTabs(ctx context.Context) (t *tabs, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weaver-bench-browser-")
	if err != nil {
		return nil, err
	}
	t = &tabs{dir: dir, program: program, results: make(chan tabResult, 1)}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir) // temporary
		}
	}()
	page, err := fs.Sub(durablyPage, "browser/durably")
	if err != nil {
		return nil, err
	}
	npm, site := filepath.Join(dir, "npm"), filepath.Join(dir, "site")
	if err := os.CopyFS(npm, page); err != nil {
		return nil, err
	}
	sqlite := filepath.Join(npm, "node_modules/@sqlite.org/sqlite-wasm/dist")
	for _, step := range [][]string{
		{".", "go", "build", "-C", "..", "-o", filepath.Join(dir, "weaver"), "./cmd/weaver"},
		{".", filepath.Join(dir, "weaver"), "browser", "build", "./browser", "--plain", "--out", filepath.Join(site, "weaver")},
		{npm, "npm", "ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"},
		{npm, "go", "run", esbuild, "--bundle", "--minify", "--format=esm", "--target=es2022", "--outfile=../site/durably/bench.js", "page.mjs"},
		{npm, "go", "run", esbuild, "--bundle", "--minify", "--format=esm", "--target=es2022", "--outfile=../site/durably/worker.js", "node_modules/sqlocal/dist/worker.js"},
		{npm, "cp", "index.html", filepath.Join(sqlite, "sqlite3.wasm"), filepath.Join(sqlite, "sqlite3-opfs-async-proxy.js"), "../site/durably/"},
	} {
		cmd := exec.CommandContext(ctx, step[1], step[2:]...)
		cmd.Dir = step[0]
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", cmd, err, out)
		}
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t.url = "http://" + listen.Addr().String()
	server := &http.Server{Handler: t.handler(site)}
	go func() { _ = server.Serve(listen) }() // closed by remove
	t.close = server.Close
	return t, nil
}

func (t *tabs) remove() error { return errors.Join(t.close(), os.RemoveAll(t.dir)) }

func (t *tabs) handler(site string) http.Handler {
	files := http.FileServer(http.Dir(site))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		var got tabResult
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			got.Error = err.Error()
		}
		select {
		case t.results <- got:
		default: // no measurement is running
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin") // SQLocal needs shared memory
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		if strings.HasSuffix(r.URL.Path, ".wasm") || strings.HasSuffix(r.URL.Path, ".js") {
			w.Header().Set("Cache-Control", "max-age=31536000, immutable")
		}
		files.ServeHTTP(w, r)
	})
	return mux
}

// profile returns a folder for a browser that has seen no page.
func (t *tabs) profile() string {
	t.profiles++
	return filepath.Join(t.dir, "profile"+strconv.Itoa(t.profiles))
}

// open opens a page in a new browser, and returns its measurement.
func (t *tabs) open(ctx context.Context, profile, side, what string, n int) (v float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, browserMost)
	defer cancel()
	args := []string{"--headless=new", "--disable-gpu", "--no-first-run", "--user-data-dir=" + profile, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(t.program, append(args, fmt.Sprintf("%s/%s/?what=%s&n=%d", t.url, side, what, n))...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is ended by the signal
	}()
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		<-ended
	}()
	select {
	case got := <-t.results:
		if got.Error != "" {
			return 0, fmt.Errorf("%s: %s", side, got.Error)
		}
		return got.Value, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%s %s: no result: %w", side, what, context.Cause(ctx))
	}
}

// browser compares Weaver in a tab with @coji/durably on SQLocal.
func (r *report) browser(ctx context.Context) (err error) {
	t, err := newTabs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.remove()) }()
	kept := map[string]string{"weaver": t.profile(), "durably": t.profile()} // warm: they have the files and the compiled code
	warm := func(side string) error {
		for range 2 {
			if _, err := t.open(ctx, kept[side], side, "cold", 0); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(warm("weaver"), warm("durably")); err != nil {
		return err
	}
	for _, b := range []struct {
		name, what string
		n          int
		warm       bool
	}{
		{"in a tab: one-step tasks/s", "step", max(r.n/50, 100), false},
		{"in a tab: sequential steps/s of one task", "seq", max(r.n/50, 100), false},
		{"in a tab: ms from opening to the end of the first task, first visit", "cold", 0, false},
		{"in a tab: ms from opening to the end of the first task, later", "cold", 0, true},
	} {
		side := func(name string) func() (float64, error) {
			return func() (float64, error) {
				if b.warm {
					return t.open(ctx, kept[name], name, b.what, b.n)
				}
				return t.open(ctx, t.profile(), name, b.what, b.n)
			}
		}
		f, err := r.measure(side("weaver"), side("durably"))
		if err != nil {
			return err
		}
		r.row(b.name, f[0].String(), "durably on SQLocal "+f[1].String(), ratio(f[0].median()/f[1].median()))
	}
	return nil
}
