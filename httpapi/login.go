package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// loginRequest is the body of POST /login.
type loginRequest struct {
	Token string `json:"token"`
}

// Me is who the server takes a request for.
type Me struct {
	Name   string   `json:"name"`
	Access []string `json:"access"` // submit, read, payloads, operate
}

func meOf(p Principal) Me {
	m := Me{Name: p.Name, Access: []string{}}
	for i, name := range accessNames {
		if p.Access&(1<<i) != 0 {
			m.Access = append(m.Access, name)
		}
	}
	return m
}

func (c *call) me() error { return c.write(http.StatusOK, meOf(c.who)) }

// login turns a token into a cookie.
func (c *call) login() error {
	var body loginRequest
	addr := addressOf(c.r)
	if c.api.fails.over(addr) {
		return tooManyFailures.of("Wait a minute, and look at the token.")
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	line := c.api.cfg.Login.find(body.Token)
	if line == nil {
		c.api.fails.add(addr)
		return unauthorized.of("There is no such token.")
	}
	c.setCookie(c.api.cfg.Login.cookie(line, time.Now()), int(cookieLife/time.Second))
	return c.write(http.StatusOK, meOf(line.Principal))
}

// logout makes the browser forget the cookie.
func (c *call) logout() error {
	c.setCookie("", -1)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) setCookie(value string, age int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName, Value: value, Path: c.mountedAt(), MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.r.TLS != nil,
	})
}

// mountedAt is the path under which the API is mounted, "/" if it is the whole server.
func (c *call) mountedAt() string {
	u, err := url.ParseRequestURI(c.r.RequestURI)
	if err != nil {
		return "/"
	}
	at, below := strings.CutSuffix(u.Path, c.r.URL.Path)
	if !below || at == "" {
		return "/"
	}
	return at
}

// maxFailures is how many wrong credentials an address may send in a minute.
const maxFailures = 10

// failures counts wrong credentials by address.
type failures struct {
	mu   sync.Mutex
	from map[string]failed
}

type failed struct {
	n     int
	since time.Time
}

func newFailures() *failures { return &failures{from: make(map[string]failed)} }

// add counts one, and reports whether that is too many.
func (f *failures) add(addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if len(f.from) >= 10_000 { // an attacker with many addresses makes it forget, not grow
		clear(f.from)
	}
	of := f.from[addr]
	if now.Sub(of.since) >= time.Minute {
		of = failed{since: now}
	}
	of.n++
	f.from[addr] = of
	return of.n > maxFailures
}

// over reports whether an address has used up its tries.
func (f *failures) over(addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.from[addr]
	return of.n >= maxFailures && time.Since(of.since) < time.Minute
}
