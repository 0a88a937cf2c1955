package builtin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
)

const (
	maxRetryAfter = time.Hour
	maxRefusal    = 64 << 10 // bytes of a body read for a message only
	maxExcerpt    = 500      // characters
)

// retried are the statuses that a retry may not get.
var retried = []int{
	http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// errRedirect is permanent: a retry would be redirected to the same place.
var errRedirect = errors.New("redirect refused")

// exchange is the request of one attempt including redirects; it builds the
// attempt's errors.
type exchange struct {
	in          RequestInput
	first, last *http.Request // last: after redirects
}

// String returns the request for messages: "POST https://example.com/a".
func (x *exchange) String() string {
	name := func(r *http.Request) string { return r.Method + " " + printable(withoutUser(r.URL)) }
	if x.last == x.first {
		return name(x.first)
	}
	return name(x.first) + ", redirected to " + name(x.last)
}

// redirect implements http.Client.CheckRedirect.
func (x *exchange) redirect(req *http.Request, via []*http.Request) error {
	limit := x.in.maxRedirects()
	if limit == 0 {
		return http.ErrUseLastResponse
	}
	x.last = req
	if len(via) > limit {
		return fmt.Errorf("%w: max_redirects allows %d; call the address where the chain ends, or raise max_redirects", errRedirect, limit)
	}
	if !webScheme(req.URL) {
		return fmt.Errorf("%w: it leads to no http or https URL", errRedirect)
	}
	if x.in.MaxRedirects == nil && req.Method != x.first.Method {
		return fmt.Errorf("%w: it turns %s into %s, so that what was sent would get lost: call the URL that it leads to, or set max_redirects to follow it all the same", errRedirect, x.first.Method, req.Method)
	}
	// net/http drops credentials on a redirect to another host, but not on one to an
	// unencrypted connection of the same host.
	if downgraded(x.first.URL, req.URL) {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	x.dropSecrets(req)
	// It also sends the query of the last URL, as Referer, to the next host.
	if x.first.Header.Get("Referer") == "" {
		req.Header.Del("Referer")
	}
	return nil
}

// broken returns the attempt's error when there is no complete answer. ctx is the
// handler's context; the request's context also ends with RequestInput.Timeout.
func (x *exchange) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", x, context.Cause(ctx))
	}
	if inner := x.first.Context(); inner.Err() != nil {
		return x.passes(fmt.Errorf("%s: no whole answer within %s: %w", x, time.Duration(x.in.Timeout), context.Cause(inner)), 0)
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // its URL contains the user name
	}
	if p, ok := errors.AsType[*addressError](err); ok {
		return weaver.Permanent(fmt.Errorf("%s: %s is %w", x, x.last.URL.Hostname(), p))
	}
	if notSent(err) {
		return weaver.NotHere(fmt.Errorf("%s: %w", x, err))
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	err = fmt.Errorf("%s: %w", x, err)
	if certificate || errors.Is(err, errRedirect) {
		return weaver.Permanent(err)
	}
	return x.passes(err, 0)
}

// notSent reports whether this worker lacked file descriptors or memory to open a
// connection.
func notSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" {
		return false
	}
	lookup, ok := errors.AsType[*net.DNSError](err) // has its cause as text
	return engine.IsOwnTrouble(err) ||
		ok && (strings.Contains(lookup.Err, syscall.EMFILE.Error()) || strings.Contains(lookup.Err, syscall.ENFILE.Error()))
}

// passes marks an error that the next poll may not have.
func (x *exchange) passes(err error, after time.Duration) error {
	if x.in.Until == nil {
		return err
	}
	return &passing{err, after}
}

// refused returns the attempt's error for an unexpected status.
func (x *exchange) refused(ctx context.Context, resp *http.Response) error {
	body := &beginning{room: maxRefusal}
	_ = body.read(resp, maxRefusal) // a part of the message is enough
	if ctx.Err() != nil {
		return x.broken(ctx, ctx.Err())
	}
	text := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if said := printable(string(body.kept)); said != "" {
		text += ": " + said
	}
	if resp.StatusCode/100 == 3 && x.in.maxRedirects() == 0 {
		text += fmt.Sprintf(" (to take it as the answer, give expect: [%d])", resp.StatusCode)
	}
	err := fmt.Errorf("%s: %s", x, text)
	switch {
	case !slices.Contains(retried, resp.StatusCode):
		return weaver.Permanent(err)
	case x.in.Until != nil:
		return x.passes(err, retryAfter(resp.Header))
	case retryAfter(resp.Header) > 0:
		return weaver.RetryAfter(retryAfter(resp.Header), err)
	}
	return err
}

// retryAfter returns the pause of a Retry-After header, in seconds or as a date
// (RFC 9110, section 10.2.3), or 0 if there is no pause left.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	seconds, err := strconv.ParseUint(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return maxRetryAfter
	case err != nil:
		return 0
	}
	return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
}

// printable returns the printable characters of a text on one line, at most
// maxExcerpt.
func printable(text string) string {
	var line strings.Builder
	kept, space := 0, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = kept > 0
			continue
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue
		case space && kept < maxExcerpt:
			line.WriteByte(' ')
			kept++
		}
		space = false
		if kept >= maxExcerpt {
			line.WriteString("…")
			break
		}
		line.WriteRune(r)
		kept++
	}
	return line.String()
}
