package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/httpapi"
)

func loginWith(token string) map[string]string { return map[string]string{"token": token} }

// The first ten wrong tokens of an address in a minute get 401. Right tokens always succeed:
// several users may share the address.
func TestWrongLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, callers := credentials(t, serverOptions{direct: true})
		right := callers[len(callers)-2].header
		for range 2 {
			for range 10 {
				a := s.post("/login", loginWith("wrong"))
				a.problem(http.StatusUnauthorized, "unauthorized")
			}
			if a := s.post("/login", loginWith("wrong")); a.problem(http.StatusTooManyRequests, "too-many-failed-logins") == nil || a.header.Get("Retry-After") != "60" {
				t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
			}
			s.get("/v1/me", "Authorization", "Bearer wrong").problem(http.StatusTooManyRequests, "too-many-failed-logins")
			s.get("/v1/me").problem(http.StatusUnauthorized, "unauthorized")
			s.post("/login", loginWith("token of read")).want(http.StatusOK)
			s.get("/v1/me", right...).want(http.StatusOK)
			time.Sleep(time.Minute)
		}
	})
}

// A page with an expired login sends many requests: they do not count as attacks from its address.
func TestEndedCookiesAreNoFailedLogins(t *testing.T) {
	t.Parallel()
	s, _ := credentials(t, serverOptions{direct: true})
	for range 20 {
		s.get("/v1/me", "Cookie", "weaver_login=1.AAAA").problem(http.StatusUnauthorized, "unauthorized")
	}
	s.post("/login", loginWith("wrong")).problem(http.StatusUnauthorized, "unauthorized")
}

// A 401 names every way to send credentials.
func TestChallenges(t *testing.T) {
	t.Parallel()
	s, _ := credentials(t, serverOptions{direct: true})
	if got := s.get("/v1/me").want(http.StatusUnauthorized).header.Get("WWW-Authenticate"); got != `Bearer realm="weaver", Basic realm="weaver", charset="UTF-8"` {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	if got := s.post("/login", loginWith("wrong")).want(http.StatusUnauthorized).header.Get("WWW-Authenticate"); got != `Bearer realm="weaver"` {
		t.Errorf("of a login WWW-Authenticate is %q: a browser must not ask for a password", got)
	}
}

// A cookie is bound to its token and its server's key, and expires after twelve hours.
func TestCookies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lines := []string{"ann read " + hashOf("ann's"), "ann full " + hashOf("ann's other"), "bob full " + hashOf("bob's")}
		serve := func(key string, lines ...string) *server {
			tokens, err := httpapi.ReadTokens(strings.NewReader(strings.Join(lines, "\n")), httpapi.CookieKey([]byte(strings.Repeat(key, 32))))
			if err != nil {
				t.Fatal(err)
			}
			return newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) { cfg.Authorize, cfg.Login = tokens.Authorize, tokens }})
		}
		s := serve("key", lines...)
		set := s.post("/login", loginWith("ann's")).want(http.StatusOK).header.Get("Set-Cookie")
		value, attributes, _ := strings.Cut(set, ";")
		if attributes != " Path=/; Max-Age=43200; HttpOnly; SameSite=Strict" {
			t.Errorf("the cookie is %q", set)
		}
		if set := s.post("/login", loginWith("ann's"), "X-Forwarded-Proto", "https").header.Get("Set-Cookie"); !strings.Contains(set, "; Secure") {
			t.Errorf("over TLS the cookie is %q", set)
		}
		in := httptest.NewRequest(http.MethodPost, "https://127.0.0.1/login", strings.NewReader(`{"token":"ann's"}`))
		in.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		if s.api.ServeHTTP(rec, in); !strings.Contains(rec.Header().Get("Set-Cookie"), "; Secure") {
			t.Errorf("over TLS the cookie is %q", rec.Header().Get("Set-Cookie"))
		}
		if set := s.post("/logout", nil).header.Get("Set-Cookie"); set != "weaver_login=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict" {
			t.Errorf("the cookie of a logout is %q", set)
		}

		is := func(s *server, cookie string, status int) {
			t.Helper()
			var me httpapi.Me
			if a := s.get("/v1/me", "Cookie", cookie).want(status); status == http.StatusOK {
				if a.into(&me); me.Name != "ann" || strings.Join(me.Access, ",") != "read" {
					t.Errorf("the cookie is of %+v", me)
				}
			}
		}
		is(s, value, http.StatusOK)
		is(s, "weaver_login=1.AAAA; "+value, http.StatusOK) // a cookie of another mount path
		is(serve("key", lines[2], lines[0]), value, http.StatusOK)
		is(serve("other key", lines...), value, http.StatusUnauthorized)
		is(serve("key", lines[1:]...), value, http.StatusUnauthorized)
		until, mac, _ := strings.Cut(strings.TrimPrefix(value, "weaver_login="), ".")
		for _, forged := range []string{"", ".", until + ".", until, "99999999999." + mac, "-1." + mac, until + "." + mac[1:], until + "." + strings.Repeat("A", 43), mac + "." + until} {
			is(s, "weaver_login="+forged, http.StatusUnauthorized)
		}
		time.Sleep(12*time.Hour - time.Second)
		is(s, value, http.StatusOK)
		time.Sleep(time.Second)
		is(s, value, http.StatusUnauthorized)
	})
}

// A file's errors have line numbers and contain no text that may be a secret.
func TestFilesOfCredentials(t *testing.T) {
	t.Parallel()
	const secret = "wv_SECRETSECRET"
	hash := hashOf("x")
	for text, want := range map[string]string{
		"":                                    "the file has no tokens",
		"# only this\n\n":                     "the file has no tokens",
		"ci":                                  "line 1: it has 1 words",
		"ci " + secret:                        "line 1: it has 2 words",
		"\n\nci read " + secret:               "line 3: the third word is not a SHA-256 hash",
		"ci " + secret + " read":              "line 1: the second word is not an access: use one or more of submit",
		secret + " ci " + hash:                "line 1: the second word is not an access",
		"ci read " + hash[2:]:                 "line 1: the third word is not a SHA-256 hash",
		"a read " + hash + "\nb full " + hash: "line 2: its token is that of line 1",
		"a x " + hash + "\nb y " + hash:       "line 2: the second word",
		"# x\n" + strings.Repeat("x", 1<<17):  "line 2: bufio.Scanner: token too long",
	} {
		_, err := httpapi.ReadTokens(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	line := passwordLine("ann", "read", "p")
	for text, want := range map[string]string{
		"":                     "the file has no passwords",
		"ann read":             "line 1: it has 2 words",
		"ann read " + secret:   "line 1: the third word is not a password hash",
		"ann " + secret + " x": "line 1: the second word is not an access",
		line + "\n" + line:     "line 2: its name is that of line 1",
		strings.Replace(line, "$1000$", "$1$", 1): "line 1: the third word is not a password hash",
	} {
		_, err := httpapi.ReadPasswords(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	for _, load := range []func(string) error{
		func(f string) error { _, err := httpapi.LoadTokens(f); return err },
		func(f string) error { _, err := httpapi.LoadPasswords(f); return err },
	} {
		if err := load("no/such/file"); err == nil || !strings.Contains(err.Error(), "no/such/file") {
			t.Errorf("of a file that is not there: %v", err)
		}
		file := filepath.Join(t.TempDir(), "secrets")
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, 0o666)); err != nil {
			t.Fatal(err)
		}
		if err := load(file); err == nil || !strings.Contains(err.Error(), "other users can change it: `chmod 600 ") {
			t.Errorf("of a file that everybody can write to: %v", err)
		}
	}
	if _, err := httpapi.NewPassword("two words", httpapi.Read, "x"); err == nil {
		t.Error("a name of two words makes a line")
	}
	for _, key := range []string{"", "short"} {
		if _, err := httpapi.ReadTokens(strings.NewReader("a read "+hash), httpapi.CookieKey([]byte(key))); err == nil || !strings.Contains(err.Error(), "want at least 32") {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
	token, made := httpapi.NewToken("ci", httpapi.Submit)
	tokens := tokensOf(t, "\ufeff"+made+"\r")
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", "bearer "+token)
	if who, err := tokens.Authorize(r); err != nil || who.Name != "ci" || who.Access != httpapi.Submit {
		t.Errorf("the line that NewToken made is of %+v, %v", who, err)
	}
}

func TestParseAccess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"submit": "submit", "read": "read", "payloads": "read,payloads", "operate": "read,operate", "full": "submit,read,payloads,operate", " submit , read": "submit,read",
	} {
		if a, err := httpapi.ParseAccess(text); err != nil || a.String() != want {
			t.Errorf("%q is %s, %v", text, a, err)
		}
	}
	for _, text := range []string{"", "read,", "admin", "read payloads"} {
		if a, err := httpapi.ParseAccess(text); err == nil {
			t.Errorf("%q is %s", text, a)
		}
	}
	if got := httpapi.Access(0).String(); got != "none" {
		t.Errorf("no access is %q", got)
	}
}
