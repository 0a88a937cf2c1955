package builtin

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The metadata services of clouds, which serve a machine's own credentials. Most
// are link-local.
var (
	metadataService = netip.MustParseAddr("169.254.169.254")

	metadataBlocks = []block{
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local, as metadata services are"},
		{netip.MustParsePrefix("fe80::/10"), "link-local"},
		{netip.MustParsePrefix("100.100.100.200/32"), "a metadata service"}, // Alibaba Cloud
		{netip.MustParsePrefix("168.63.129.16/32"), "a metadata service"},   // Azure
		{netip.MustParsePrefix("192.0.0.192/32"), "a metadata service"},     // Oracle Cloud
		{netip.MustParsePrefix("fd00:ec2::/32"), "a metadata service"},      // AWS
		{netip.MustParsePrefix("fd20:ce::/32"), "a metadata service"},       // Google Cloud
		{netip.MustParsePrefix("fd00:42::42/128"), "a metadata service"},    // Scaleway
	}

	metadataNames = []string{
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
		"metadata.azure.internal", "metadata.azure.com", "metadata.tencentyun.com", "metadata.oraclecloud.com",
		"metadata.packet.net", "metadata.platformequinix.com", "metadata.nic.cn", "rancher-metadata",
	}

	compatible4 = netip.MustParsePrefix("::/96")           // RFC 4291
	translated4 = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	localNat64  = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
)

// metadataKind returns the kind of an address of a metadata service, or "".
func metadataKind(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	if kind := kindIn(metadataBlocks, addr); kind != "" {
		return kind
	}
	for _, inner := range embedded4(addr) {
		if kind := kindIn(metadataBlocks, inner); kind != "" {
			return "it leads to " + inner.String() + ", " + kind
		}
	}
	return ""
}

// embedded4 returns the IPv4 addresses that an IPv6 address may lead to. A network
// may translate under its own prefix, unknown here: the last four bytes count if
// they are the address of a metadata service.
func embedded4(addr netip.Addr) (list []netip.Addr) {
	if !addr.Is6() {
		return nil
	}
	raw := addr.As16()
	last := [4]byte(raw[12:16])
	add := func(v4 [4]byte) { list = append(list, netip.AddrFrom4(v4)) }
	switch {
	case nat64.Contains(addr), compatible4.Contains(addr), translated4.Contains(addr):
		add(last)
	case localNat64.Contains(addr):
		add(last)
		add([4]byte{raw[6], raw[7], raw[9], raw[10]}) // RFC 6052, section 2.2
		add([4]byte{raw[7], raw[9], raw[10], raw[11]})
		add([4]byte{raw[9], raw[10], raw[11], raw[12]})
	case sixTo4.Contains(addr):
		add([4]byte(raw[2:6]))
	case teredo.Contains(addr):
		add([4]byte(raw[4:8]))
		add([4]byte{^raw[12], ^raw[13], ^raw[14], ^raw[15]})
	case (raw[8] == 0 || raw[8] == 2) && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe: // ISATAP, RFC 5214
		add(last)
	default:
		v4 := netip.AddrFrom4(last)
		if v4 == metadataService || slices.ContainsFunc(metadataBlocks, func(b block) bool { return b.prefix.Addr() == v4 && b.prefix.IsSingleIP() }) {
			add(last)
		}
	}
	return list
}

// isMetadataName reports whether a host name belongs to a metadata service.
func isMetadataName(host string) bool {
	return slices.Contains(metadataNames, strings.ToLower(strings.TrimRight(host, ".")))
}

// parseHost parses a host that is an address, including the forms that inet_aton
// and thus some resolvers and proxies accept: 2852039166, 0xa9fea9fe,
// 0251.0376.0251.0376, 169.254.43518.
func parseHost(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(strings.TrimRight(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var whole uint64
	for i, part := range parts {
		n, err := parsePart(part)
		bytes := 1
		if i == len(parts)-1 {
			bytes = 5 - len(parts) // the last part holds the remaining bytes
		}
		if err != nil || n >= 1<<(8*bytes) {
			return netip.Addr{}, false
		}
		whole = whole<<(8*bytes) | n
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}), true
}

// parsePart parses a number in C syntax: decimal, 0 octal, 0x hexadecimal.
func parsePart(text string) (uint64, error) {
	switch lower := strings.ToLower(text); {
	case strings.HasPrefix(lower, "0x"):
		return strconv.ParseUint(lower[2:], 16, 64)
	case len(text) > 1 && text[0] == '0':
		return strconv.ParseUint(text[1:], 8, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}
