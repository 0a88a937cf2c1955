package builtin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/weavertest"
)

func TestRequestPrivateKinds(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{ // "": public
		"0.0.0.0": "unspecified", "0.1.2.3": "this network",
		"9.255.255.255": "", "10.0.0.0": "private", "10.255.255.255": "private", "11.0.0.0": "",
		"100.63.255.255": "", "100.64.0.0": "carrier", "100.127.255.255": "carrier", "100.128.0.0": "",
		"126.255.255.255": "", "127.0.0.1": "loopback", "127.255.255.255": "loopback", "128.0.0.0": "",
		"169.253.255.255": "", "169.254.169.254": "link-local", "169.255.0.0": "",
		"172.15.255.255": "", "172.16.0.0": "private", "172.31.255.255": "private", "172.32.0.0": "",
		"192.0.0.1": "protocols", "192.0.0.255": "protocols", "192.0.1.0": "", "192.0.2.1": "documentation", "192.0.3.0": "",
		"192.88.99.1": "6to4", "192.167.255.255": "", "192.168.0.0": "private", "192.168.255.255": "private", "192.169.0.0": "",
		"198.17.255.255": "", "198.18.0.0": "benchmarking", "198.19.255.255": "benchmarking", "198.20.0.0": "",
		"198.51.100.7": "documentation", "203.0.113.7": "documentation", "203.0.114.0": "",
		"223.255.255.255": "", "224.0.0.1": "multicast", "239.255.255.255": "multicast",
		"240.0.0.0": "reserved", "255.255.255.254": "reserved", "255.255.255.255": "broadcast",
		"1.1.1.1": "", "8.8.8.8": "", "93.184.215.14": "",

		"::": "unspecified", "::1": "loopback", "::2": "reserved", "::127.0.0.1": "reserved",
		"::ffff:127.0.0.1": "loopback", "::ffff:10.1.2.3": "private", "::ffff:8.8.8.8": "", "::ffff:0:127.0.0.1": "reserved",
		"fe80::1": "link-local", "fe80::1%eth0": "link-local", "febf::1": "link-local", "fec0::1": "reserved",
		"fbff::1": "reserved", "fc00::1": "private", "fd12:3456::1": "private", "fdff::1%eth0": "private", "fe00::1": "reserved",
		"ff02::1": "multicast", "ff0e::1": "multicast", "100::1": "reserved", "5f00::1": "reserved", "4000::1": "reserved",
		"2001:db8::1": "documentation", "2001:db9::1": "", "3fff::1": "documentation", "3fff:fff::1": "documentation", "3fff:1000::1": "",
		"2001:2::1": "benchmarking", "2001:10::1": "protocols", "2001:20::1": "protocols", "2001:1ff::1": "protocols", "2001:200::1": "",
		"2606:4700:4700::1111": "", "2606:4700:4700::1111%eth0": "", "2a00:1450:4001:829::200e": "",

		"64:ff9b::127.0.0.1": "127.0.0.1, loopback", "64:ff9b::10.0.0.1": "10.0.0.1, private", "64:ff9b::169.254.169.254": "link-local",
		"64:ff9b::8.8.8.8": "", "64:ff9b:1::8.8.8.8": "reserved",
		"2002:7f00:1::1": "127.0.0.1, loopback", "2002:c0a8:101::1": "192.168.1.1, private", "2002:808:808::1": "",
		// Teredo: the server, and the client's address with all bits inverted.
		"2001:0:7f00:1::f7f7:f7f7": "127.0.0.1, loopback", "2001:0:808:808::80ff:fffe": "127.0.0.1, loopback", "2001:0:808:808::f7f7:f7f7": "",
	} {
		got := builtin.PrivateKind(netip.MustParseAddr(addr))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
	if builtin.PrivateKind(netip.Addr{}) == "" {
		t.Error("no address at all is public")
	}
}

// realEngine runs handlers with real time and sockets.
func realEngine(t *testing.T, handlers ...weaver.Handler) *weaver.Engine {
	t.Helper()
	e, err := weaver.New(weavertest.New(t).DB(), weaver.Config{Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return e
}

// realServer serves on a loopback port.
func realServer(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *visits) {
	t.Helper()
	v := &visits{answer: answer}
	srv := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(srv.Close)
	return srv, v
}

// refuses sends requests that must fail at once with all the given texts.
func refuses(t *testing.T, e *weaver.Engine, in builtin.RequestInput, says ...string) {
	t.Helper()
	_, err := builtin.Request.EnqueueAndWait(t.Context(), e, in)
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok || te.Attempts != 1 {
		t.Fatalf("the request of %s: %v, want a failure at once", in.URL, err)
	}
	for _, part := range says {
		if !strings.Contains(te.Message, part) {
			t.Errorf("the message does not say %q:\n%s", part, te.Message)
		}
	}
}

func TestRequestNoPrivateNetwork(t *testing.T) {
	t.Parallel()
	srv, v := realServer(t, saying("inside"))
	port := mustURL(t, srv.URL).Port()

	open := realEngine(t, builtin.Handlers(builtin.Config{})...)
	out, err := builtin.Request.EnqueueAndWait(t.Context(), open, builtin.RequestInput{URL: srv.URL})
	if err != nil || out.Body != "inside" {
		t.Errorf("without the rule: %+v, %v", out, err)
	}

	closed := realEngine(t, builtin.Handlers(builtin.Config{NoPrivateNetwork: true})...)
	before := len(v.all())
	for host, addr := range map[string]string{
		"127.0.0.1": "127.0.0.1", "[::ffff:127.0.0.1]": "127.0.0.1", "localhost": "loopback",
		"10.255.255.1": "10.255.255.1", "169.254.169.254": "link-local",
	} {
		refuses(t, closed, builtin.RequestInput{URL: "http://hugo:s3cret@" + host + ":" + port + "/x"},
			"GET http://"+host+":"+port+"/x: "+strings.Trim(host, "[]")+" is ", addr, "which is not public", "--no-private-network")
	}
	if n := len(v.all()) - before; n != 0 {
		t.Errorf("the server got %d requests", n)
	}
}

func TestRequestNoPrivateNetworkAfterRedirect(t *testing.T) {
	t.Parallel()
	inside, v := realServer(t, saying("inside"))
	outside, _ := realServer(t, to(http.StatusTemporaryRedirect, inside.URL+"/x"))
	e := realEngine(t, builtin.RequestWith(builtin.Config{NoPrivateNetwork: true}, netip.MustParseAddrPort(mustURL(t, outside.URL).Host), nil))
	refuses(t, e, builtin.RequestInput{URL: outside.URL}, "GET "+outside.URL+", redirected to GET "+inside.URL+"/x: 127.0.0.1 is 127.0.0.1, which is not public (loopback)")
	if n := len(v.all()); n != 0 {
		t.Errorf("the server inside got %d requests", n)
	}
	// Without the rule, the same redirect is followed.
	open := realEngine(t, builtin.Handlers(builtin.Config{})...)
	if out, err := builtin.Request.EnqueueAndWait(t.Context(), open, builtin.RequestInput{URL: outside.URL}); err != nil || out.Body != "inside" {
		t.Errorf("without the rule: %+v, %v", out, err)
	}
}

// proxyEnv makes TestRequestProxy run in its own process: net/http reads the
// proxy's variables once.
const proxyEnv = "WEAVER_TEST_REQUEST_PROXY"

func TestRequestProxy(t *testing.T) {
	const target = "http://192.0.2.1/x" // for documentation: no host has it
	if os.Getenv(proxyEnv) != "" {
		closed := realEngine(t, builtin.Handlers(builtin.Config{NoPrivateNetwork: true})...)
		refuses(t, closed, builtin.RequestInput{URL: target}, "192.0.2.1", "documentation", "--no-private-network")
		open := realEngine(t, builtin.Handlers(builtin.Config{})...)
		if out, err := builtin.Request.EnqueueAndWait(t.Context(), open, builtin.RequestInput{URL: target}); err != nil || out.Body != "by proxy" {
			t.Errorf("without the rule: %+v, %v", out, err)
		}
		return
	}
	if got := atProxy(t, "TestRequestProxy"); len(got) != 1 || got[0].path != target {
		t.Errorf("the proxy got %+v, want one request of %s", got, target)
	}
}

// atProxy runs a test of this package in its own process with an HTTP proxy, and
// returns the requests that the proxy got.
func atProxy(t *testing.T, test string) []visit {
	t.Helper()
	proxy, v := realServer(t, saying("by proxy"))
	for _, name := range []string{"HTTP_PROXY", "http_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	t.Setenv(proxyEnv, "1")
	if out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$").CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return v.all()
}
