package builtin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"unicode/utf8"

	"github.com/goweaver/weaver"
)

// RequestOver returns the handler of Request on a network of the test's own,
// and what closes its idle connections.
func RequestOver(dial func(ctx context.Context, network, address string) (net.Conn, error), trusted *x509.CertPool) (weaver.Handler, func()) {
	r := newRequester(Config{})
	r.transport.Proxy = nil
	r.transport.DialContext = dial
	r.transport.TLSClientConfig = &tls.Config{RootCAs: trusted}
	return Request.Handler(r.request), r.transport.CloseIdleConnections
}

// RequestWith returns a handler of Request whose resolver is given, if it is not nil, and
// that may call one address whatever the configuration says.
func RequestWith(cfg Config, except netip.AddrPort, resolver *net.Resolver) weaver.Handler {
	r := &requester{newTransport(addressRules{noPrivate: cfg.NoPrivateNetwork, noMetadata: cfg.NoMetadata, allowed: cfg.AllowNetworks, except: except, resolver: resolver})}
	return Request.Handler(r.request)
}

// RequestDirectly requests without an engine.
func RequestDirectly(ctx context.Context, in RequestInput) (RequestOutput, error) {
	r := newRequester(Config{})
	defer r.transport.CloseIdleConnections()
	return r.request(ctx, in)
}

// ReadBeginning reads a body and returns how much of it was kept.
func ReadBeginning(body io.Reader, room int) (kept int, n int64, err error) {
	b := &beginning{room: room}
	err = b.read(&http.Response{Body: io.NopCloser(body)}, maxBody)
	return len(b.kept), b.n, err
}

// NotSent reports whether an error says that this worker could not open a connection.
var NotSent = notSent

// MetadataKind says why an address is one of a metadata service, "" when it is not.
var MetadataKind = metadataKind

// ParseHost reads a host that is an address.
var ParseHost = parseHost

// PrivateKind says why an address is not public, "" when it is.
var PrivateKind = privateKind

// RuneSize is how many bytes of JSON a character is taken to need.
func RuneSize(r rune) int { return runeLen(r, utf8.RuneLen(r)) }

// Met reports whether an answer meets a condition, and what was seen.
func (u *Until) Met(status int, body []byte) (bool, string) { return u.met(status, body, true) }

// Check returns the mistakes of a condition.
func (u *Until) Check() error { return errors.Join(u.validate()...) }
