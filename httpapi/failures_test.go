package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// An attacker with many addresses can neither grow the table nor clear it.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFailures()
		for i := range 3 * failuresKept {
			if !f.take(fmt.Sprint("address ", i)) {
				t.Fatalf("the first failure of address %d is one too many", i)
			}
		}
		if n := len(f.from); n != failuresKept {
			t.Errorf("%d addresses are remembered, want %d", n, failuresKept)
		}
		for range maxFailures {
			f.take("one")
		}
		if f.take("one") || !f.over("one") {
			t.Error("the table is full, and forgot the newest")
		}
		f.giveBack("one")
		if f.over("one") || !f.take("one") || f.take("one") {
			t.Error("what was given back cannot be taken again")
		}
		time.Sleep(failuresLast)
		if f.over("one") || !f.take("one") {
			t.Error("the minute does not end")
		}
		for range 5 {
			f.giveBack("one")
		}
		if _, there := f.from["one"]; there {
			t.Error("nothing is left to remember")
		}
	})
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:443": "192.0.2.7", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64", "[2001:db8:1:2::1]:9": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "[::ffff:192.0.2.7]:1": "192.0.2.7", "@": "@", "": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = remote
		if got := addressOf(r); got != want {
			t.Errorf("%q is %q, want %q", remote, got, want)
		}
	}
}
