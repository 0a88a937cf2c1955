package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// loginRequest is the body of POST /login.
type loginRequest struct {
	Token string `json:"token"`
}

// Me is the authenticated sender of the request.
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

// login exchanges a token for a cookie.
func (c *call) login() error {
	var body loginRequest
	if err := c.decode(&body); err != nil {
		return err
	}
	line := c.api.cfg.Login.find(body.Token)
	if line == nil {
		if !c.api.fails.take(addressOf(c.r)) {
			return waitAMinute()
		}
		return unauthorized.of("There is no such token.")
	}
	c.setCookie(c.api.cfg.Login.cookie(line, time.Now()), int(cookieLife/time.Second))
	return c.write(http.StatusOK, meOf(line.Principal))
}

// logout makes the browser delete the cookie.
func (c *call) logout() error {
	c.setCookie("", -1)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) setCookie(value string, age int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName, Value: value, Path: c.mountedAt(), MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.r.TLS != nil || c.r.Header.Get("X-Forwarded-Proto") == "https", // a false header costs the client only its cookie
	})
}

// mountedAt returns the path under which the API is mounted, "/" if it is the whole server.
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
