package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/httpapi"
)

// guarded starts a server with passwords for ann and bob, behind a proxy at 127.0.0.1.
func guarded(t *testing.T, proxies ...string) (*server, *httpapi.Passwords) {
	t.Helper()
	passwords, err := httpapi.ReadPasswords(strings.NewReader(passwordLine("ann", "full", "ann's password") + "\n\n# bob\n" + httpapi.PasswordLine("bob", "read", "bob's password", 3000)))
	if err != nil {
		t.Fatal(err)
	}
	return newServer(t, serverOptions{direct: true, config: func(cfg *httpapi.Config) {
		cfg.Authorize, cfg.TrustedProxies = passwords.Authorize, proxies
	}}), passwords
}

// login tries a password from an address.
func (s *server) login(from, name, password string) *answer {
	s.Helper()
	return s.get("/v1/me", append(basic(name, password), "X-Forwarded-For", from)...)
}

// Ten guesses in a minute are verified, however many are sent at once, also for an account that has
// logged in. A right password among the later guesses cannot be detected.
func TestAttackGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t, "127.0.0.1")
		s.login("192.0.2.1", "ann", "ann's password").want(http.StatusOK)
		a := s.login("192.0.2.1", "nobody", "wrong")
		if a.problem(http.StatusUnauthorized, "unauthorized"); a.header.Get("WWW-Authenticate") != `Basic realm="weaver", charset="UTF-8"` {
			t.Errorf("WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		statuses := make(map[int]int)
		for i := range 300 {
			all.Go(func() {
				a := s.login("192.0.2.66", "ann", fmt.Sprint("guess ", i))
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
			})
		}
		all.Wait()
		if statuses[http.StatusUnauthorized] != 10 || statuses[http.StatusTooManyRequests] != 290 {
			t.Errorf("300 guesses were answered with %v, want 10 that were looked at", statuses)
		}
		if n := strings.Count(s.log.String(), "an address sends wrong credentials, and is refused for a minute\" address=192.0.2.66"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, s.log)
		}
		for range 2 {
			s.login("192.0.2.66", "ann", "ann's password").problem(http.StatusTooManyRequests, "too-many-failed-logins")
			s.login("192.0.2.1", "ann", "ann's password").want(http.StatusOK)  // another address
			s.login("192.0.2.66", "bob", "bob's password").want(http.StatusOK) // another account
			time.Sleep(25 * time.Second)
		}
		time.Sleep(11 * time.Second) // a minute after the first, regardless of the guesses in between
		s.login("192.0.2.66", "ann", "ann's password").want(http.StatusOK)
	})
}

// Guesses for other accounts lock no account out, also without an earlier login. A client that
// sends the right password many times at once is not an attacker.
func TestAttackGuesses_LocksNobodyElseOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		for i := range 24 {
			s.login("", []string{"bob", "nobody"}[i%2], fmt.Sprint("wrong ", i))
		}
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() { s.login("", "ann", "ann's password").want(http.StatusOK) })
		}
		all.Wait()
	})
}

// Only addresses that a trusted proxy reports count, not those that a client writes.
func TestAttackForwardedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			proxies []string
			from    func(i int) string
			limited bool
		}{
			"the proxy's word":      {[]string{"127.0.0.0/8"}, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, false},
			"made up by the client": {[]string{"127.0.0.0/8"}, func(i int) string { return fmt.Sprintf("198.51.100.%d, 192.0.2.9", i) }, true},
			"two proxies":           {[]string{"127.0.0.1", "10.0.0.0/8"}, func(i int) string { return fmt.Sprintf("203.0.113.9:%d,10.1.2.%d", i, i) }, true},
			"one network of IPv6":   {[]string{"127.0.0.1"}, func(i int) string { return fmt.Sprintf("2001:db8::%d", i) }, true},
			"IPv4 in IPv6":          {[]string{"::ffff:127.0.0.1"}, func(i int) string { return []string{"192.0.2.7", "::ffff:192.0.2.7"}[i%2] }, true},
			"no address":            {[]string{"127.0.0.1"}, func(i int) string { return fmt.Sprint("host", i) }, true},
			"no proxy is trusted":   {nil, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, true},
			"another one is":        {[]string{"192.0.2.0/24"}, func(i int) string { return fmt.Sprintf("198.51.100.%d", i) }, true},
		} {
			s, _ := guarded(t, c.proxies...)
			last := 0
			for i := range 11 {
				last = s.login(c.from(i), "ann", fmt.Sprint("wrong ", i)).status
			}
			if limited := last == http.StatusTooManyRequests; limited != c.limited {
				t.Errorf("%s: the eleventh guess is answered with %d", name, last)
			}
		}
	})
	_, err := httpapi.New(httpapi.Config{Client: newServer(t, serverOptions{direct: true}).client, Authorize: httpapi.Open(httpapi.Principal{}), TrustedProxies: []string{"proxy.example.com"}})
	if err == nil || !strings.Contains(err.Error(), `"proxy.example.com": want an address or a network`) {
		t.Errorf("a name of a proxy: %v", err)
	}
}

// Guesses from many addresses for one account, from one address for many accounts, and all together
// are slowed down. No response reveals which accounts exist.
func TestAttackGuesses_AreSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			guesses int
			login   func(s *server, i int) *answer
			least   time.Duration
		}{
			{"one account", 60, func(s *server, i int) *answer { return s.login(fmt.Sprintf("192.0.2.%d", i), "ann", "wrong") }, 30 * time.Second},
			{"many accounts", 60, func(s *server, i int) *answer { return s.login("192.0.2.1", fmt.Sprint("account", i), "wrong") }, 30 * time.Second},
			{"many of both", 140, func(s *server, i int) *answer {
				return s.login(fmt.Sprintf("192.0.2.%d", i), fmt.Sprint("account", i), "wrong")
			}, 10 * time.Second},
		} {
			s, passwords := guarded(t, "127.0.0.1")
			began := time.Now()
			for i := range c.guesses {
				c.login(s, i).problem(http.StatusUnauthorized, "unauthorized")
			}
			if took := time.Since(began); took < c.least {
				t.Errorf("%s: %d guesses took %s", c.name, c.guesses, took)
			}
			if rounds := passwords.Rounds(); rounds != int64(c.guesses*3000) {
				t.Errorf("%s: %d rounds were derived, want the most that an account has for each, %d", c.name, rounds, c.guesses*3000)
			}
		}
	})
}
