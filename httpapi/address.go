package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
)

// addressKey is the context key of the client's address as a trusted proxy reports it.
type addressKey struct{}

// addressOf returns the client's address without a port. For IPv6 it returns the /64 network: a
// host can use all of its 2⁶⁴ addresses. Behind a trusted proxy it returns the address that the
// proxy reports.
func addressOf(r *http.Request) string {
	if addr, told := r.Context().Value(addressKey{}).(netip.Addr); told {
		return bucketOf(addr)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	return bucketOf(ip)
}

// bucketOf returns an address, or the network of an IPv6 address.
func bucketOf(ip netip.Addr) string {
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}

// parseProxies parses Config.TrustedProxies.
func parseProxies(list []string) (networks []netip.Prefix, err error) {
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if addr, err2 := netip.ParseAddr(text); err2 == nil {
			addr = addr.Unmap()
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: TrustedProxies: %q: want an address or a network, as 10.0.0.5 or 10.0.0.0/8", weaver.ErrConfig, text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// from stores the client's address as a trusted proxy reports it: the last one in X-Forwarded-For
// that is not a trusted proxy. Entries that the client wrote precede it.
func (a *API) from(r *http.Request) *http.Request {
	if len(a.proxies) == 0 {
		return r
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !a.trusts(peer.Addr()) {
		return r
	}
	at := peer.Addr()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, err := parseHop(hop)
		if err != nil {
			break
		}
		if at = addr; !a.trusts(addr) {
			break
		}
	}
	return r.WithContext(context.WithValue(r.Context(), addressKey{}, at))
}

// parseHop parses an address of X-Forwarded-For, to which some proxies add a port.
func parseHop(text string) (netip.Addr, error) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if with, err := netip.ParseAddrPort(text); err == nil {
		return with.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(text, "[]"))
}

func (a *API) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(a.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
