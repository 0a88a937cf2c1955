package builtin

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// addressRules decides which addresses Request may call.
type addressRules struct {
	noPrivate  bool // Config.NoPrivateNetwork
	noMetadata bool // Config.NoMetadata
	allowed    []netip.Prefix

	except   netip.AddrPort // set by tests: always allowed
	resolver *net.Resolver  // set by tests; nil: the system's resolver
}

// none reports whether every address is allowed.
func (r *addressRules) none() bool { return !r.noPrivate && !r.noMetadata }

// allows reports whether Config.AllowNetworks contains an address.
func (r *addressRules) allows(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	return slices.ContainsFunc(r.allowed, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// check returns an *addressError for a forbidden address.
func (r *addressRules) check(to netip.AddrPort) error {
	addr := to.Addr()
	if r.none() || r.allows(addr) || to == r.except {
		return nil
	}
	meta := metadataKind(addr)
	if r.noPrivate {
		if kind := cmp.Or(privateKind(addr), meta); kind != "" {
			return &addressError{of: addr.String(), kind: kind, private: true}
		}
	}
	if meta != "" {
		return &addressError{of: addr.String(), kind: meta, allow: addr.WithZone("").Unmap().String()}
	}
	return nil
}

// checkHost returns an error for a forbidden host of a URL before its lookup: a
// proxy might parse the host differently.
func (r *addressRules) checkHost(u *url.URL) error {
	host := u.Hostname()
	if addr, is := parseHost(host); is {
		port, _ := strconv.ParseUint(u.Port(), 10, 16)
		return r.check(netip.AddrPortFrom(addr, uint16(port)))
	}
	if isMetadataName(host) && !r.allows(metadataService) {
		return &addressError{of: "the name of a metadata service", kind: "a machine's credentials are read there", allow: metadataService.String()}
	}
	return nil
}

// checkProxied looks up the host of a URL that a proxy will call. A host that
// cannot be looked up here is left to the proxy.
func (r *addressRules) checkProxied(ctx context.Context, host string) error {
	if !isASCII(host) {
		return &addressError{text: "not in ASCII, so that a proxy may read it as another host: write it as xn--…"}
	}
	addrs, err := cmp.Or(r.resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, addr := range addrs {
		if err := r.check(netip.AddrPortFrom(addr, 0)); err != nil {
			return err
		}
	}
	return nil
}

// newTransport returns the transport of one requester. It checks each address just
// before dialling: whatever a name resolves to at that time, and wherever a
// redirect leads.
func newTransport(rules addressRules) *http.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true, // DialContext disables it
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    10,
		MaxResponseHeaderBytes: 1 << 20,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		// No ResponseHeaderTimeout: RequestInput.Timeout bounds the whole exchange.
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: rules.resolver}
	if rules.none() {
		if runtime.GOOS != "js" { // a browser has no sockets: net/http uses fetch without a dialer
			t.DialContext = dialer.DialContext
		}
		return t
	}
	t.Proxy = func(r *http.Request) (*url.URL, error) { // called for each request and redirect
		if err := rules.checkHost(r.URL); err != nil {
			return nil, err
		}
		if rules.noPrivate { // a proxy dials in place of this process, which cannot check the address
			return nil, nil
		}
		proxy, err := http.ProxyFromEnvironment(r)
		if proxy != nil && err == nil {
			err = rules.checkProxied(r.Context(), r.URL.Hostname())
		}
		return proxy, err
	}
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("check the address: %w", err)
		}
		return rules.check(to)
	}
	t.DialContext = dialer.DialContext
	return t
}

// addressError reports an address forbidden by Config.NoPrivateNetwork or
// Config.NoMetadata.
type addressError struct {
	of, kind string
	private  bool   // forbidden by NoPrivateNetwork
	allow    string // the address to add to Config.AllowNetworks
	text     string // replaces the whole text
}

// Error implements error. Its text continues after a host name and "is".
func (e *addressError) Error() string {
	switch {
	case e.text != "":
		return e.text
	case e.private:
		return fmt.Sprintf("%s, which is not public (%s), and this worker runs with --no-private-network: "+
			"call a public address, or use a worker without that flag", e.of, e.kind)
	}
	return fmt.Sprintf("%s (%s), which this worker does not call: call another address, or start the worker with --allow-address %s if it is meant", e.of, e.kind, e.allow)
}
