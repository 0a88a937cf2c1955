package builtin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"syscall"
	"time"
)

// newTransport makes the connections of one requester. refuse, when it is
// not nil, is asked about each address just before it is dialled: whatever a
// name resolves to by then, and wherever a redirect leads.
func newTransport(refuse func(netip.AddrPort) error) *http.Transport {
	t := &http.Transport{
		ForceAttemptHTTP2:      true, // DialContext would turn it off
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    10,
		MaxResponseHeaderBytes: 1 << 20,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		// No ResponseHeaderTimeout: RequestInput.Timeout bounds the whole.
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if refuse == nil {
		t.Proxy = http.ProxyFromEnvironment
		if runtime.GOOS != "js" { // a browser has no sockets: net/http uses fetch without a dialer
			t.DialContext = dialer.DialContext
		}
		return t
	}
	// No proxy: it would dial in place of this process, where the address cannot be checked.
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("check the address: %w", err)
		}
		return refuse(to)
	}
	t.DialContext = dialer.DialContext
	return t
}

// privateError: Config.NoPrivateNetwork forbids the address.
type privateError struct {
	addr netip.Addr
	kind string
}

// Error implements error. It goes on after the name of the host and "is".
func (e *privateError) Error() string {
	return fmt.Sprintf("%s, which is not public (%s), and this worker runs with --no-private-network: "+
		"call a public address, or use a worker without that flag", e.addr, e.kind)
}

// refusePrivate returns a *privateError for addresses that are not public.
func refusePrivate(to netip.AddrPort) error {
	if kind := privateKind(to.Addr()); kind != "" {
		return &privateError{to.Addr(), kind}
	}
	return nil
}
