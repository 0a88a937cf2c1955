package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi/wire"
	"github.com/goweaver/weaver/store"
)

// request is one request of a Client.
type request struct {
	method      string
	path        string // escaped, relative to the base
	query       url.Values
	body        any // nil without a body
	ifMatch     string
	ifNoneMatch string
	safe        bool          // repeating it has no further effect
	poll        time.Duration // the server's maximum wait before it responds
}

// trial is the failure of one try of a request.
type trial struct {
	err   error
	again bool          // a retry may succeed
	maybe bool          // the server may have applied it
	after time.Duration // the server's Retry-After; 0 without one
}

// Delays between tries.
const (
	firstPause = 100 * time.Millisecond // doubles with each try
	mostPause  = 10 * time.Second       // a longer Retry-After is left to the caller
)

// send sends a request, retries it if that is safe, and decodes the response into v, unless v is
// nil.
func (c *Client) send(ctx context.Context, r request, v any) error {
	if r.method == http.MethodGet {
		r.safe = true
	}
	var body []byte
	if r.body != nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false) // inputs are stored unchanged
		if err := enc.Encode(r.body); err != nil {
			return fmt.Errorf("%w: encode the request: %w", weaver.ErrInvalidInput, err)
		}
		body = buf.Bytes()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for try := 1; ; try++ {
		t := c.try(ctx, &r, body, v)
		if t == nil {
			return nil
		}
		pause := max(t.after, firstPause<<min(try-1, 6))
		if !t.again || t.maybe && !r.safe || try >= c.tries || pause > mostPause || ctx.Err() != nil {
			return t.final(&r)
		}
		if ended := sleep(ctx, pause+rand.N(pause/2)); ended != nil {
			return fmt.Errorf("%w; the last try: %w", ended, t.final(&r))
		}
	}
}

// final returns the error of the last try.
func (t *trial) final(r *request) error {
	if !t.maybe || r.method == http.MethodGet || errors.Is(t.err, store.ErrUnknown) {
		return t.err
	}
	advice := "look before it is done again"
	if r.safe {
		advice = "it may be done again"
	}
	return fmt.Errorf("%w: %s: %w", store.ErrUnknown, advice, t.err)
}

// try sends a request once. It returns nil after a success.
func (c *Client) try(caller context.Context, r *request, body []byte, v any) *trial {
	ctx, cancel := context.WithTimeout(caller, tryTimeout+r.poll)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return &trial{err: err}
	}
	req.URL.RawQuery = r.query.Encode()
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "weaver-go")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	if r.ifNoneMatch != "" {
		req.Header.Set("If-None-Match", r.ifNoneMatch)
	}
	if c.authorize != nil {
		header, err := c.authorize(ctx)
		if err != nil {
			return &trial{err: fmt.Errorf("ask for the token: %w", err)}
		}
		req.Header.Set("Authorization", header)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return unanswered(caller, req, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, c.maxAnswer+1))
	switch {
	case int64(len(raw)) > c.maxAnswer:
		return &trial{err: fmt.Errorf("%s: the answer has more than %d bytes, which is its limit here (client.MaxAnswer)", where(req), c.maxAnswer), maybe: true}
	case res.StatusCode >= 300:
		return refused(req, res, raw)
	case err != nil:
		return unanswered(caller, req, err)
	case v == nil || res.StatusCode == http.StatusNoContent:
		return nil
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &trial{err: fmt.Errorf("%s: the answer is %q and no JSON: is this the address of a Weaver server?", where(req), res.Header.Get("Content-Type")), maybe: true}
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &trial{err: fmt.Errorf("%s: the answer cannot be read: %w", where(req), err), maybe: true}
	}
	return nil
}

// unanswered returns the failure of a request without a complete response.
func unanswered(caller context.Context, req *http.Request, err error) *trial {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // its text contains the URL, too
	}
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted), errors.As(err, &plain):
		return &trial{err: fmt.Errorf("%s: %w", where(req), err)}
	case caller.Err() != nil:
		return &trial{err: fmt.Errorf("%s: %w", where(req), context.Cause(caller)), maybe: !unsent(err)}
	}
	return &trial{err: &unreachable{where(req), err}, again: true, maybe: !unsent(err)}
}

// unsent reports whether an error implies that the server received no part of a request.
func unsent(err error) bool {
	var op *net.OpError
	var name *net.DNSError
	return errors.As(err, &name) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// where returns the name of a request in errors.
func where(req *http.Request) string {
	u := *req.URL
	u.RawQuery = ""
	return req.Method + " " + u.Redacted()
}

// unreachable is the error of a server without a response.
type unreachable struct {
	where string
	err   error
}

// Error implements error.
func (e *unreachable) Error() string {
	return e.where + ": no answer from the server: " + e.err.Error()
}

// Unwrap returns the cause.
func (e *unreachable) Unwrap() error { return e.err }

// Is makes the error match store.ErrUnavailable.
func (e *unreachable) Is(target error) bool { return target == store.ErrUnavailable }

// refused returns the failure of a request with an error response.
func refused(req *http.Request, res *http.Response, raw []byte) *trial {
	after, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || after < 0 || after > 1e6 {
		after = 0
	}
	t := &trial{after: time.Duration(after) * time.Second}
	p := new(Problem)
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	ours := kind == "application/problem+json" && json.Unmarshal(raw, p) == nil && strings.HasPrefix(p.Type, ProblemBase)
	if !ours {
		p = &Problem{Type: "about:blank", Title: http.StatusText(res.StatusCode), Detail: fmt.Sprintf("%s: the answer is %s and no problem of a Weaver server: is this its address?", where(req), res.Status)}
		if to := res.Header.Get("Location"); to != "" && res.StatusCode < 400 {
			p.Detail = fmt.Sprintf("%s: the answer is %s, to %q: redirects are not followed, give client.New the address itself.", where(req), res.Status, to)
		}
	}
	p.Status, p.RetryAfter = res.StatusCode, after
	t.err = p
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		t.again = true
	case http.StatusServiceUnavailable:
		t.again = true
		t.maybe = p.Type == ProblemBase+wire.TimedOut || errors.Is(p, store.ErrUnknown) || !ours && after == 0
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		t.again, t.maybe = true, true
	case http.StatusInternalServerError:
		t.maybe = true
	}
	return t
}

// passing reports whether a failure may be temporary, so that a wait continues.
func passing(err error) bool {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy) {
		return true
	}
	var p *Problem
	if !errors.As(err, &p) {
		return false
	}
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		return p.Sentinel() == nil // not what a person has to mend, as a store that is not migrated
	}
	return false
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
