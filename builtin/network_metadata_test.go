package builtin_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/goweaver/weaver/builtin"
)

func TestMetadataKinds(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"169.254.169.254": true, "169.254.0.0": true, "169.254.170.2": true, "169.253.255.255": false, "169.255.0.0": false,
		"100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "100.100.100.201": false, "127.0.0.1": false, "10.0.0.1": false, "8.8.8.8": false,
		"fe80::1": true, "fe80::a9fe:a9fe%eth0": true, "fd00:ec2::254": true, "fd20:ce::254": true, "fd00:42::42": true, "fd00::1": false, "::1": false, "2606:4700::1111": false,
		"::ffff:169.254.169.254": true, "::169.254.169.254": true, "::ffff:0:169.254.169.254": true, "64:ff9b::169.254.169.254": true, "64:ff9b::100.100.100.200": true,
		"64:ff9b:1::169.254.169.254": true, "64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b::8.8.8.8": false, "2002:a9fe:a9fe::1": true, "2002:808:808::1": false,
		"2001:0:a9fe:a9fe::1": true, "2001:0:808:808::5601:5601": true, "fd12::5efe:169.254.169.254": true, "2001:db8:64::169.254.169.254": true, "2001:db8:64::169.254.1.1": false,
	} {
		if got := builtin.MetadataKind(netip.MustParseAddr(addr)); (got != "") != want {
			t.Errorf("%s is %q, want %v", addr, got, want)
		}
	}
	for host, want := range map[string]string{
		"169.254.169.254": "169.254.169.254", "2852039166": "169.254.169.254", "0xa9fea9fe": "169.254.169.254", "0XA9.0xFE.0xA9.0xFE": "169.254.169.254",
		"0251.0376.0251.0376": "169.254.169.254", "169.16689662": "169.254.169.254", "169.254.43518": "169.254.169.254", "169.254.169.254.": "169.254.169.254", "::1": "::1", "0": "0.0.0.0",
		"example.com": "", "1.2.3.4.5": "", "256.1.1.1": "", "4294967296": "", "1..1": "", "": "", "08.1.1.1": "", "a9fea9fe": "",
	} {
		addr, is := builtin.ParseHost(host)
		if is != (want != "") || is && addr.String() != want {
			t.Errorf("%q is %s, %v; want %q", host, addr, is, want)
		}
	}
}

// answering resolves every name to one address, like the name server of an
// attacker.
func answering(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			size := make([]byte, 2)
			if _, err := io.ReadFull(theirs, size); err != nil {
				return
			}
			q := make([]byte, binary.BigEndian.Uint16(size))
			if _, err := io.ReadFull(theirs, q); err != nil {
				return
			}
			end := 12
			for q[end] != 0 {
				end += int(q[end]) + 1
			}
			end += 5 // of the question
			answer := append([]byte{}, q[:end]...)
			answer[2], answer[3] = 0x81, 0x80
			answer[10], answer[11] = 0, 0 // no additional part
			if q[end-3] == 1 {            // A
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, netip.MustParseAddr(addr).AsSlice()...)
			}
			binary.BigEndian.PutUint16(size, uint16(len(answer)))
			_, _ = theirs.Write(append(size, answer...))
		}()
		return ours, nil
	}}
}

// A request reaches no metadata service, by any form of its address, by name, or
// by redirect. It reaches the local machine and private addresses, as documented.
func TestAttackMetadata(t *testing.T) {
	t.Parallel()
	srv, v := realServer(t, saying("inside"))
	port := mustURL(t, srv.URL).Port()
	cfg := builtin.Config{NoMetadata: true}
	closed := realEngine(t, builtin.RequestWith(cfg, netip.AddrPort{}, nil))
	if out, err := builtin.Request.EnqueueAndWait(t.Context(), closed, builtin.RequestInput{URL: srv.URL}); err != nil || out.Body != "inside" {
		t.Errorf("a server of this machine: %+v, %v", out, err)
	}
	for _, host := range []string{
		"169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254.", "[64:ff9b::a9fe:a9fe]",
		"[fd00:ec2::254]", "[fe80::1%25lo]", "metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data", "100.100.100.200",
	} {
		refuses(t, closed, builtin.RequestInput{URL: "http://" + host + ":" + port + "/x"}, "which this worker does not call", "--allow-address ")
	}
	leading, _ := realServer(t, to(http.StatusFound, "http://169.254.169.254:"+port+"/latest"))
	refuses(t, closed, builtin.RequestInput{URL: leading.URL}, "redirected to GET http://169.254.169.254", "link-local", "--allow-address 169.254.169.254")
	named := realEngine(t, builtin.RequestWith(cfg, netip.AddrPort{}, answering("169.254.169.254")))
	refuses(t, named, builtin.RequestInput{URL: "http://rebound.example:" + port}, "rebound.example is 169.254.169.254", "link-local")

	for _, allowed := range []string{"127.0.0.1/32", "0.0.0.0/0"} {
		cfg := builtin.Config{NoMetadata: true, NoPrivateNetwork: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix(allowed)}}
		e := realEngine(t, builtin.RequestWith(cfg, netip.AddrPort{}, nil))
		if out, err := builtin.Request.EnqueueAndWait(t.Context(), e, builtin.RequestInput{URL: srv.URL}); err != nil || out.Body != "inside" {
			t.Errorf("an address that %s allows: %+v, %v", allowed, out, err)
		}
	}
	refuses(t, realEngine(t, builtin.Handlers(builtin.Config{NoMetadata: true, NoPrivateNetwork: true})...), builtin.RequestInput{URL: "http://168.63.129.16/"}, "--no-private-network")
	if n := len(v.all()); n != 3 {
		t.Errorf("the server got %d requests, want 3", n)
	}
}

// A proxy gets no request for an address that this process may not call.
func TestAttackMetadata_ByProxy(t *testing.T) {
	const target = "http://192.0.2.1/x" // for documentation: no host has it
	if os.Getenv(proxyEnv) != "" {
		e := realEngine(t, builtin.RequestWith(builtin.Config{NoMetadata: true}, netip.AddrPort{}, answering("169.254.169.254")))
		for _, host := range []string{"169.254.169.254", "2852039166", "[::ffff:169.254.169.254]", "rebound.example", "metadata.google.internal"} {
			refuses(t, e, builtin.RequestInput{URL: "http://" + host + "/"}, "which this worker does not call")
		}
		refuses(t, e, builtin.RequestInput{URL: "http://①.example/"}, "is not in ASCII")
		if out, err := builtin.Request.EnqueueAndWait(t.Context(), e, builtin.RequestInput{URL: target}); err != nil || out.Body != "by proxy" {
			t.Errorf("another address: %+v, %v", out, err)
		}
		return
	}
	if got := atProxy(t, "TestAttackMetadata_ByProxy"); len(got) != 1 || !strings.HasPrefix(got[0].path, target) {
		t.Errorf("the proxy got %+v, want one request of %s", got, target)
	}
}
