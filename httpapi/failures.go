package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	maxFailures  = 10          // wrong credentials that an address may send in a minute
	failuresKept = 10_000      // addresses that are remembered
	failuresLast = time.Minute // from the first one of an address
)

// failures counts wrong credentials by address. Right ones are never refused because of
// it, where finding out costs little: others may be behind the same address.
type failures struct {
	mu   sync.Mutex
	from map[string]failed
}

type failed struct {
	n     int
	since time.Time
}

func newFailures() *failures { return &failures{from: make(map[string]failed)} }

// take counts one, and reports whether the address may have it.
func (f *failures) take(addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, known := f.from[addr]
	if time.Since(of.since) >= failuresLast {
		of = failed{since: time.Now()}
	}
	if of.n >= maxFailures {
		return false
	}
	for other := range f.from { // any one: they are not worth more than a bound
		if known || len(f.from) < failuresKept {
			break
		}
		delete(f.from, other)
	}
	of.n++
	f.from[addr] = of
	return true
}

// giveBack takes back what take counted.
func (f *failures) giveBack(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.from[addr]; of.n > 1 {
		of.n--
		f.from[addr] = of
	} else {
		delete(f.from, addr)
	}
}

// over reports whether an address has used up its tries.
func (f *failures) over(addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.from[addr]
	return of.n >= maxFailures && time.Since(of.since) < failuresLast
}

func waitAMinute() *Problem { return tooManyFailures.of("Wait a minute, and look at the credentials.") }

// addressOf is where a request comes from, without a port. Of IPv6 it is the network: a
// host has all of its 2⁶⁴ addresses.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
