//go:build !js

package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/browser/page"
	"github.com/goweaver/weaver/dashboard"
)

const inTab = false

// capsuleFile returns "": `weaver serve` shows capsules on a machine.
func capsuleFile() string { return "" }

// serve serves the pages, the dashboard and h on the address until ctx ends. streams ends the streams of h.
func serve(ctx context.Context, cfg Config, eng *weaver.Engine, h *http.ServeMux, streams func()) error {
	dash, err := dashboard.New(eng.Client, dashboard.Config{API: h})
	if err != nil {
		return err
	}
	h.Handle("/dashboard/", http.StripPrefix("/dashboard", dash))
	module := http.FileServerFS(page.Files)
	h.Handle("/weaver.js", module)
	h.HandleFunc("/weaver.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"server": true}`) // the client has disconnected
	})
	if cfg.Pages != nil {
		h.Handle("/", http.FileServerFS(cfg.Pages))
	} else {
		h.Handle("/{$}", http.RedirectHandler("/dashboard/", http.StatusTemporaryRedirect))
	}
	addr := cfg.Addr
	if addr == "" {
		addr = "127.0.0.1:8080"
	}
	listen, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: set Addr to a free address", addr, err)
	}
	if at, ok := listen.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		_ = listen.Close() // it has accepted no connection
		return fmt.Errorf("%w: Addr is %s, which other machines reach, and no login is asked for: want an address such as 127.0.0.1:8080; a server for others is `weaver serve`, or a program with httpapi.New", weaver.ErrConfig, addr)
	}
	// A page of another site cannot send changes, nor read anything by a name that it moves to this machine.
	server := &http.Server{Handler: local(http.NewCrossOriginProtection().Handler(h)), ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%s/ (dashboard: http://%[1]s/dashboard/)\n", listen.Addr())
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		streams()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(end) // open connections are cut
	})
	if err := server.Serve(listen); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

// local refuses requests with the name of another host.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, fmt.Sprintf("the host %q is not served: no login is asked for here; use localhost", r.Host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}
