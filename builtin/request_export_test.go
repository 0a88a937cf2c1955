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

// RequestOver returns the handler of Request on the test's network, and a function
// that closes its idle connections.
func RequestOver(dial func(ctx context.Context, network, address string) (net.Conn, error), trusted *x509.CertPool) (weaver.Handler, func()) {
	r := newRequester(Config{})
	r.transport.Proxy = nil
	r.transport.DialContext = dial
	r.transport.TLSClientConfig = &tls.Config{RootCAs: trusted}
	return Request.Handler(r.request), r.transport.CloseIdleConnections
}

// RequestWith returns a handler of Request with a resolver, if not nil, and one
// address that is always allowed.
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

// ReadBeginning reads a body and returns the number of bytes kept.
func ReadBeginning(body io.Reader, room int) (kept int, n int64, err error) {
	b := &beginning{room: room}
	err = b.read(&http.Response{Body: io.NopCloser(body)}, maxBody)
	return len(b.kept), b.n, err
}

// NotSent reports whether an error means that this worker could not open a
// connection.
var NotSent = notSent

// MetadataKind returns the kind of an address of a metadata service, or "".
var MetadataKind = metadataKind

// ParseHost parses a host that is an address.
var ParseHost = parseHost

// PrivateKind returns the kind of an address that is not public, or "".
var PrivateKind = privateKind

// RuneSize returns the size of a character in JSON that the package assumes.
func RuneSize(r rune) int { return runeLen(r, utf8.RuneLen(r)) }

// Met reports whether an answer meets a condition, and the observed value.
func (u *Until) Met(status int, body []byte) (bool, string) { return u.met(status, body, true) }

// Check returns the problems with a condition.
func (u *Until) Check() error { return errors.Join(u.validate()...) }
