package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/privatefile"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// credentials authorize HTTP requests.
type credentials struct {
	authorize httpapi.Authorizer
	tokens    *httpapi.Tokens // for logins; nil: no logins
	open      bool            // no credentials required
	hosts     []string        // accepted then
	proxies   []string        // trusted
}

// minCookieKey is the minimum length of a cookie key in bytes.
const minCookieKey = 32

// loadCredentials reads the named files; "" names no file.
func (s *session) loadCredentials(tokenFile, passwordFile, cookieKeyFile string) (who credentials, err error) {
	if err := s.checkSecrets(secretFile{"--token-file", tokenFile}, secretFile{"--password-file", passwordFile}, secretFile{"--cookie-key-file", cookieKeyFile}); err != nil {
		return who, err
	}
	var opts []httpapi.TokensOption
	if cookieKeyFile != "" {
		if tokenFile == "" {
			return who, badInput("Name one with --token-file.", "--cookie-key-file signs logins with tokens: it needs a file of tokens")
		}
		key, err := plainfile.ReadStream(cookieKeyFile)
		if err != nil {
			return who, badInput("", "--cookie-key-file: %w", err)
		}
		if key = bytes.TrimSpace(key); len(key) < minCookieKey {
			return who, badInput("`head -c 32 /dev/urandom | base64` prints one.", "--cookie-key-file %s has %d bytes: want at least %d", cookieKeyFile, len(key), minCookieKey)
		}
		opts = append(opts, httpapi.CookieKey(key))
	}
	if tokenFile != "" {
		if who.tokens, err = httpapi.LoadTokens(tokenFile, opts...); err != nil {
			return who, s.badCredentials("--token-file", "token new NAME --access ACCESS --token-file "+quote(tokenFile), err)
		}
	}
	var passwords *httpapi.Passwords
	if passwordFile != "" {
		if passwords, err = httpapi.LoadPasswords(passwordFile); err != nil {
			return who, s.badCredentials("--password-file", "token password NAME --access ACCESS >> "+quote(passwordFile), err)
		}
	}
	switch {
	case who.tokens != nil && passwords != nil:
		who.authorize = httpapi.AnyOf(who.tokens.Authorize, passwords.Authorize)
	case who.tokens != nil:
		who.authorize = who.tokens.Authorize
	case passwords != nil:
		who.authorize = passwords.Authorize
	default:
		who.open = true
		who.authorize = httpapi.Open(httpapi.Principal{Name: "local", Access: httpapi.Full})
	}
	return who, nil
}

// secretFile is a file of secrets with the flag that names it.
type secretFile struct{ flag, path string }

// checkSecrets refuses files that other users can change, and warns about files that they can read.
func (s *session) checkSecrets(files ...secretFile) error {
	for _, f := range files {
		if f.path == "" {
			continue
		}
		warning, err := privatefile.Check(f.path)
		if err != nil {
			return badInput("", "%s: %w", f.flag, err)
		}
		if warning != "" {
			fmt.Fprintf(s.errs, "%s: warning: %s: %s\n", s.app.Name, f.flag, text.Printable(warning))
		}
	}
	return nil
}

func (s *session) badCredentials(flag, verb string, err error) error {
	return badInput("A line has a name, an access and a hash: `"+s.app.Name+" "+verb+"` makes one.", "%s: %w", flag, err)
}

// door is the HTTP server of a verb.
type door struct {
	who       credentials
	listener  net.Listener
	server    *http.Server
	metrics   *httpapi.Metrics // of the process's engine, which uses it as a plug-in
	orders    *ordersPart      // nil: none are accepted
	health    *processHealth   // of the process
	addresses addressFlags     // that the partner of orders may have
}

// listenOn starts to listen. Connections wait until open and serve are called.
func listenOn(addr string, who credentials) (*door, error) { return listenFor("--addr", addr, who) }

// listenFor is listenOn for the address of another flag.
func listenFor(flag, addr string, who credentials) (*door, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, badAddr(flag, addr, err)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return nil, badAddr(flag, addr, fmt.Errorf("port %q: want a number from 0 to 65535", port))
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, badInput(listenAdvice(err), "%s %s: %w", flag, addr, err)
	}
	return &door{who: who, listener: l, metrics: httpapi.NewMetrics(), health: newProcessHealth()}, nil
}

// listenAdvice returns a suggestion for an error of listening.
func listenAdvice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "Another port may be free; port 0 picks a free port."
	case errors.Is(err, syscall.EACCES):
		return "Ports below 1024 may need special permissions; 8080 does not."
	}
	return "Write an address of this machine: 127.0.0.1 for programs on it alone, 0.0.0.0 for all its addresses."
}

// loopback reports whether only programs of this machine can reach the server.
func (d *door) loopback() bool {
	addr, ok := d.listener.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// close stops listening, even if serve was not called.
func (d *door) close() { _ = d.listener.Close() } // serve has closed it already, or no request came

// Limits of connections; the API has its own limits for requests.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// open sets up the dashboard and the API of a client, and the MCP tools next to them.
func (d *door) open(s *session, client *weaver.Client, errs io.Writer) error {
	logger := warnings(errs)
	logs, err := s.commandLogs()
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(d.collectors()...)
	ofStore := httpapi.NewStoreMetrics(client, logger)
	if s.hints != nil {
		ofStore.CountHints()
	}
	metrics.MustRegister(ofStore)
	if d.orders != nil {
		metrics.MustRegister(httpapi.NewOrderStoreMetrics(d.orders.store, client.Namespace(), logger))
	}
	api, err := httpapi.New(httpapi.Config{
		Client:       client,
		Authorize:    d.who.authorize,
		Login:        d.who.tokens,
		AllowedHosts: d.who.hosts, TrustedProxies: d.who.proxies,
		CommandLogs: logs,
		Metrics:     metrics,
		Orders:      d.orders.routes(),
		ReadyChecks: d.health.checks(s),
		Logger:      logger,
	})
	if err != nil {
		return badInput("", "%w", err)
	}
	pages, err := dashboard.New(client, dashboard.Config{API: api})
	if err != nil {
		return badInput("", "%w", err)
	}
	d.handle(beside(pages, s.mcpHandler(api, client, &d.addresses, logger)), logger)
	d.server.RegisterOnShutdown(api.Stop)
	return nil
}

// collectors returns the metrics of the process.
func (d *door) collectors() []prometheus.Collector {
	all := []prometheus.Collector{d.metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	if d.orders != nil {
		all = append(all, d.orders.metrics)
	}
	return all
}

// handle sets up the server for a handler.
func (d *door) handle(h http.Handler, logger *slog.Logger) {
	d.server = &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // errors of clients
	}
}

// commandLogs returns a function that opens the logs of commands on this machine; nil if this machine keeps no logs.
func (s *session) commandLogs() (func(t *task.Task, attempt int) (io.ReadCloser, error), error) {
	dir := s.logFolder()
	if dir == "" {
		return nil, nil
	}
	codec, err := s.codec()
	if err != nil {
		return nil, err
	}
	folder, seals := s.logsIn(dir, nil), s.sealedLogs(codec)
	return func(t *task.Task, attempt int) (io.ReadCloser, error) {
		of := attemptlog.Attempt{Job: t.JobID, Task: t.ID, No: attempt}
		r, err := folder.Open(of)
		if err != nil {
			return nil, err
		}
		return seals.reader(of, r), nil
	}, nil
}

// beside serves the tools at /mcp, and the dashboard with the API everywhere else. A ServeMux would redirect unclean
// paths, which the API refuses.
func beside(pages, tools http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/mcp" {
			tools.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// url returns the URL of the server on this machine.
func (d *door) url() string {
	addr, _ := d.listener.Addr().(*net.TCPAddr) // listenOn asked for TCP
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(addr.Port)) + "/"
}

// stopWithin is the maximum duration of API requests during a stop, with some time for their last writes.
const stopWithin = 7 * time.Second

// serve answers requests until ctx ends. Then it waits for running requests, at most for drain or stopWithin, or
// until now ends.
func (d *door) serve(ctx, now context.Context, drain time.Duration) error {
	g := group.New(context.WithoutCancel(ctx))
	g.Go("accept", func(context.Context) error {
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	select {
	case <-ctx.Done():
	case <-g.Context().Done(): // the server failed
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(drain, stopWithin))
	defer cancel()
	defer context.AfterFunc(now, cancel)()
	if err := d.server.Shutdown(limit); err != nil {
		_ = d.server.Close() // closes the remaining connections
	}
	return g.Wait()
}
