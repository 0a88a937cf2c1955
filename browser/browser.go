// Package browser runs a program of Weaver in a tab of a browser, and the same program on a machine. Its tasks, their
// store and the HTTP API are the same:
//
//	func main() {
//		browser.Main(browser.Config{
//			File:   "letters.db",
//			Pages:  pages, // an embed.FS with index.html
//			Engine: weaver.Config{Handlers: []weaver.Handler{Send.Handler(send)}},
//		})
//	}
//
// On a machine, Main opens the file and serves on an address: the pages at /, the dashboard at /dashboard/, the API at
// /v1/. In a tab (GOOS=js, built by `weaver browser build`), it runs in a dedicated worker with the file in the
// browser's private file system (OPFS), and answers the requests that pages of the same origin send by weaver.js. One
// tab at a time runs the program; when it is closed, frozen or killed, another one goes on.
//
// docs/browser.md has the limits of a tab.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task/event"
)

// Config configures a program.
type Config struct {
	File   string        // the database; default weaver.db. The artifacts lie in the folder FILE.blobs
	Addr   string        // where a program on a machine listens; default 127.0.0.1:8080. It must be of this machine, because no login is asked for
	Pages  fs.FS         // files for the browser, with index.html, that load weaver.js; a program on a machine serves them at /; optional
	Engine weaver.Config // the handlers and all else. Default of its Bucket: the folder FILE.blobs; schema.Plugin is added to its Plugins

	// Routes returns handlers of the program's own, by pattern (http.ServeMux), for example for an upload. They are
	// called by pages of the same origin only. Optional.
	Routes func(eng *weaver.Engine) map[string]http.Handler
}

// Main runs a program until it is interrupted, or its tab goes. It prints an error and ends the program with code 1.
func Main(cfg Config) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	if err := Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Run runs a program until ctx ends. It migrates the file. Errors: of sqlite.Open (store.ErrBusy: another tab, or
// store.ErrUnavailable: this page has no file system), store.ErrNewerSchema, weaver.ErrConfig, and of the address.
func Run(ctx context.Context, cfg Config) error {
	if cfg.File == "" {
		cfg.File = "weaver.db"
	}
	cfg.Engine.Plugins = append(slices.Clone(cfg.Engine.Plugins), schema.Plugin())
	for {
		restored, err := run(ctx, cfg)
		if !restored {
			return err
		}
	}
}

// run runs a program until ctx ends, or until another database was uploaded (restored), which the next run opens.
func run(ctx context.Context, cfg Config) (restored bool, err error) {
	files := &files{path: strings.TrimPrefix(cfg.File, "sqlite:")}
	if cfg.Engine.Bucket == nil {
		files.blobs = files.path + ".blobs"
		cfg.Engine.Bucket = blob.Dir(files.blobs)
	}
	opened := capsuleFile()
	if opened != "" {
		cfg.File = opened
	} else if err := files.settle(); err != nil {
		return false, fmt.Errorf("put the restored files of %s in place: %w", files.path, err)
	}
	db, err := sqlite.Open(ctx, cfg.File)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return false, err
	}
	if opened != "" {
		if db.Capsule() == nil {
			return false, errors.New("this file is a database, but no capsule: make one with `weaver export`")
		}
		cfg.Engine.Bucket = capsule.Bucket(db)
	}
	eng, err := weaver.New(db, cfg.Engine)
	if err != nil {
		return false, err
	}
	api, err := httpapi.New(httpapi.Config{Client: eng.Client, Authorize: httpapi.Open(httpapi.Principal{Name: "local", Access: httpapi.Full})})
	if err != nil {
		return false, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api)
	mux.Handle("/openapi.json", api)
	ctx, again := context.WithCancelCause(ctx)
	defer again(nil)
	if opened == "" { // nothing is to be done in a capsule
		if err := schema.AnnounceHandled(ctx, eng); err != nil { // before a page asks for them
			return false, err
		}
		if err := keepEvents(ctx, eng.Client); err != nil {
			return false, err
		}
		files.routes(mux, db, eng, func() { again(errRestored) })
		if cfg.Routes != nil {
			for pattern, h := range cfg.Routes(eng) {
				mux.Handle(pattern, h)
			}
		}
	}
	g := group.New(ctx)
	if opened == "" {
		g.Go("work", eng.Run) // it returns when running tasks have finished
		if inTab {
			g.Go("files", func(ctx context.Context) error { return files.watch(ctx, db) })
		}
	}
	g.Go("serve", func(ctx context.Context) error { return serve(ctx, cfg, eng, mux, api.Stop) })
	err = g.Wait()
	return errors.Is(context.Cause(ctx), errRestored), err
}

// eventsKept is the time for which the dashboard can show an event, as with `weaver serve`.
const eventsKept = 7 * 24 * time.Hour

func keepEvents(ctx context.Context, client *weaver.Client) error {
	_, err := client.EventPage(ctx, event.FeedRequest{Limit: 1})
	if errors.Is(err, store.ErrNoFeed) {
		return client.KeepEvents(ctx, eventsKept)
	}
	return err
}

// ErrGone means that a user cleared the site's data while the program ran in a tab. The program has ended, and its
// tasks are lost.
var ErrGone = errors.New("the files of this program were deleted while it ran, and its tasks with them")

var errRestored = errors.New("another database is opened")
