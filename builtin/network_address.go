package builtin

import "net/netip"

// block is a range of addresses that are not public.
type block struct {
	prefix netip.Prefix
	kind   string
}

// blocks4 and blocks6 are the IANA special-purpose address registries (RFC 6890)
// without globally reachable blocks, and multicast. A narrow block precedes the
// wider one around it.
var (
	blocks4 = []block{
		{netip.MustParsePrefix("0.0.0.0/32"), "unspecified"},
		{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
		{netip.MustParsePrefix("10.0.0.0/8"), "private"},
		{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier's customers"},
		{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
		{netip.MustParsePrefix("172.16.0.0/12"), "private"},
		{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"},
		{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
		{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
		{netip.MustParsePrefix("192.168.0.0/16"), "private"},
		{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
		{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
		{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
		{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
		{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
		{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	}
	blocks6 = []block{
		{netip.MustParsePrefix("::/128"), "unspecified"},
		{netip.MustParsePrefix("::1/128"), "loopback"},
		{netip.MustParsePrefix("fc00::/7"), "private"},
		{netip.MustParsePrefix("fe80::/10"), "link-local"},
		{netip.MustParsePrefix("ff00::/8"), "multicast"},
		{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
		{netip.MustParsePrefix("2001::/23"), "reserved for protocols"},
		{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
		{netip.MustParsePrefix("3fff::/20"), "documentation"},
	}
	globalUnicast = netip.MustParsePrefix("2000::/3")

	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056
	teredo = netip.MustParsePrefix("2001::/32")    // RFC 4380
)

// privateKind returns the kind of an address that is not public, or "".
func privateKind(addr netip.Addr) string {
	// No prefix contains an address with a zone, and an IPv4-mapped one is dialled as
	// IPv4.
	addr = addr.WithZone("").Unmap()
	if addr.Is4() {
		return kindIn(blocks4, addr)
	}
	if !addr.Is6() {
		return "no address"
	}
	// Tunnel addresses contain the IPv4 address that they lead to.
	raw := addr.As16()
	switch {
	case nat64.Contains(addr):
		return embeddedKind([4]byte(raw[12:16]))
	case sixTo4.Contains(addr):
		return embeddedKind([4]byte(raw[2:6]))
	case teredo.Contains(addr):
		client := [4]byte{^raw[12], ^raw[13], ^raw[14], ^raw[15]}
		if kind := embeddedKind([4]byte(raw[4:8])); kind != "" {
			return kind
		}
		return embeddedKind(client)
	}
	if kind := kindIn(blocks6, addr); kind != "" {
		return kind
	}
	if !globalUnicast.Contains(addr) {
		return "reserved"
	}
	return ""
}

func embeddedKind(v4 [4]byte) string {
	addr := netip.AddrFrom4(v4)
	if kind := kindIn(blocks4, addr); kind != "" {
		return "it leads to " + addr.String() + ", " + kind
	}
	return ""
}

func kindIn(blocks []block, addr netip.Addr) string {
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.kind
		}
	}
	return ""
}
