// Command dashboard is a small service that shows Weaver's dashboard to its signed-in users, below /ops/, under its own
// sessions and its own strict Content-Security-Policy:
//
//	go run ./examples/dashboard
//
// It prints its address. Sign in as "ann", who may do everything, or as "bob", who may only look.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/dashboard"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/schema"
	"github.com/goweaver/weaver/store/sqlite"
)

// Mail is a letter to send.
type Mail struct {
	To   string `json:"to"`
	Text string `json:"text" weaver:"redact"` // hidden in the dashboard
}

// Send is the only task type of the service.
var Send = weaver.Define[Mail, weaver.None]("example.mail.send.v1", weaver.MaxAttempts(3), weaver.Backoff(5*time.Second))

func send(_ context.Context, m Mail) (weaver.None, error) {
	if m.To == "" {
		return weaver.None{}, weaver.Blocked("there is no address")
	}
	return weaver.None{}, nil
}

// users are who may sign in, and what they may do in the dashboard.
var users = map[string]httpapi.Access{"ann": httpapi.Full, "bob": httpapi.Read}

// service has the sessions: a random cookie for each user who signed in.
type service struct {
	mu       sync.Mutex
	sessions map[string]string // users by cookie
}

// user returns who sent a request, or "".
func (s *service) user(r *http.Request) string {
	c, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[c.Value]
}

// authorize tells the API who sent a request: the user of the session.
func (s *service) authorize(r *http.Request) (httpapi.Principal, error) {
	name := s.user(r)
	if name == "" {
		return httpapi.Principal{}, httpapi.ErrUnauthorized
	}
	return httpapi.Principal{Name: name, Access: users[name]}, nil
}

// signIn begins a session. A real service checks a password here.
func (s *service) signIn(w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("name")
	if _, known := users[name]; !known {
		http.Error(w, "There is no such user: want ann or bob.", http.StatusForbidden)
		return
	}
	id := rand.Text()
	s.mu.Lock()
	s.sessions[id] = name
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "session", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	http.Redirect(w, r, "/ops/", http.StatusSeeOther)
}

func home(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>A service</title><form method="post" action="/signin"><label>Name <input name="name" value="ann"></label> <button>Sign in</button></form>`)
}

// strict sets the policy of the service. The dashboard sets its own, which is stricter.
func strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// signedIn lets only users with a session pass; others begin at /.
func (s *service) signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.user(r) == "" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r) // the API answers 401 by itself
	})
}

// routes returns the handler of the service. stop ends the streams of the dashboard.
func routes(client *weaver.Client) (h http.Handler, stop func(), err error) {
	s := &service{sessions: make(map[string]string)}
	api, err := httpapi.New(httpapi.Config{Client: client, Authorize: s.authorize})
	if err != nil {
		return nil, nil, err
	}
	dash, err := dashboard.New(client, dashboard.Config{API: api, Title: "Mail"})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", home)
	mux.HandleFunc("POST /signin", s.signIn)
	mux.Handle("/ops/", http.StripPrefix("/ops", s.signedIn(dash)))
	return strict(mux), api.Stop, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	dir := flag.String("dir", "weaver-dashboard", "`folder` for the database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *dir); err != nil {
		log.Fatalf("dashboard: %v", err)
	}
}

func run(ctx context.Context, addr, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(dir, "weaver.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Send.Handler(send)}, Plugins: []weaver.Plugin{schema.Plugin()}})
	if err := errors.Join(err, db.Migrate(ctx)); err != nil {
		return err
	}
	for _, to := range []string{"ada@example.com", "", "bob@example.com"} {
		if _, err := Send.Enqueue(ctx, eng, Mail{To: to, Text: "hello"}); err != nil {
			return err
		}
	}
	h, stop, err := routes(eng.Client)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("sign in at http://%s/\n", listener.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	server.RegisterOnShutdown(stop)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = eng.Run(ctx)
	err = errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
