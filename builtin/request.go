package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// RequestInput is a URL to call and the way to call it. At most one of JSON and
// Body is set.
//
// An unexpected status fails the task at once, except 408, 425, 429, 500, 502, 503
// and 504. These and network errors are retried, after the pause of the header
// Retry-After (at most an hour) or else the task's backoff. Invalid certificates,
// too many redirects and addresses refused by Config.NoPrivateNetwork or
// NoMetadata fail the task at once.
//
// Every method except GET, HEAD and OPTIONS sends the header Idempotency-Key,
// unless Headers has one. The key is the same in every attempt of the task and
// different in every other task, so that the server can recognize a repetition. An
// empty value in Headers sends no key.
//
// User info in the URL becomes basic authentication and is never printed.
// Authorization and Cookie do not follow a redirect to another host or from https
// to http; other headers do.
type RequestInput struct {
	Method  string            `json:"method,omitempty"` // default GET, or POST with a body
	URL     string            `json:"url"`              // http or https
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersEnv are headers with values from variables of the worker's environment or
	// of EnvFile. They are read in each attempt and never stored. A value is the name
	// of a variable, with an optional text before it, as in "Bearer API_TOKEN". The
	// answer and errors show *** in place of the values. A variable that is not set or
	// has fewer than 4 characters fails the task. These headers do not follow a
	// redirect to another host.
	HeadersEnv map[string]string `json:"headers_env,omitempty"`
	// EnvFile is a file of NAME=VALUE lines for HeadersEnv, which the worker reads in
	// each attempt. Its values override the environment. See RunInput.EnvFile.
	EnvFile string `json:"env_file,omitempty"`

	JSON json.RawMessage `json:"json,omitempty"` // body, sent as application/json unless Headers say otherwise
	Body string          `json:"body,omitempty"` // body, sent as text/plain unless Headers say otherwise

	// Templates enables references to values of needs in URL, the values of Headers,
	// the strings in JSON, and Body: see RunInput.Templates. In URL, references must
	// follow the host; their values are escaped as a path segment or a query value. A
	// single reference may also be the whole URL. A string of JSON that is a single
	// reference to a JSON value or a number becomes that value.
	Templates bool `json:"templates,omitempty"`

	Expect       []int    `json:"expect,omitempty"`        // expected statuses; default 200 to 299
	Timeout      Duration `json:"timeout,omitempty"`       // of one attempt, including the body; default 30s
	Until        *Until   `json:"until,omitempty"`         // repeats the request until the answer meets a condition
	MaxRedirects *int     `json:"max_redirects,omitempty"` // default 10, but 0 for redirects that turn a POST into a GET; 0: the redirect is the answer, checked by Expect
}

// RequestOutput is the answer. A long body keeps its beginning: the whole output
// fits the inline limit.
type RequestOutput struct {
	Status    int               `json:"status"`
	URL       string            `json:"url"`               // the final URL after redirects, without user info
	Headers   map[string]string `json:"headers,omitempty"` // as many as fit a quarter of the inline limit; repeated headers are joined with ", "
	Body      string            `json:"body,omitempty"`    // UTF-8; U+FFFD replaces invalid bytes and NUL
	BodyBytes int64             `json:"body_bytes"`        // bytes read, decompressed and with *** for secrets; reading stops at 10 MiB
	Truncated bool              `json:"truncated,omitempty"`
}

const (
	defaultRequestTimeout = 30 * time.Second
	defaultMaxRedirects   = 10
	userAgent             = "weaver/1 (weaver.http.request.v1)"
	keyHeader             = "Idempotency-Key"
)

// requester calls URLs over connections of its own.
type requester struct{ transport *http.Transport }

func newRequester(cfg Config) *requester { return &requester{transportOf(cfg)} }

func transportOf(cfg Config) *http.Transport {
	return newTransport(addressRules{noPrivate: cfg.NoPrivateNetwork, noMetadata: cfg.NoMetadata, allowed: cfg.AllowNetworks})
}

// Transport returns a transport that refuses the addresses that Request refuses under cfg
// (NoPrivateNetwork, NoMetadata, AllowNetworks), for other clients of untrusted URLs.
func Transport(cfg Config) http.RoundTripper { return transportOf(cfg) }

func (r *requester) request(ctx context.Context, in RequestInput) (RequestOutput, error) {
	// Validate again: a task enqueued by name was not validated.
	if err := in.Validate(); err != nil {
		return RequestOutput{}, weaver.Permanent(err)
	}
	in, err := in.filled(ctx)
	if err != nil {
		return RequestOutput{}, err
	}
	if in.Timeout == 0 {
		in.Timeout = Duration(defaultRequestTimeout)
	}
	secret, hide, err := in.secretHeaders()
	if err != nil {
		return RequestOutput{}, weaver.Permanent(err)
	}
	var out RequestOutput
	if in.Until != nil {
		out, err = r.poll(ctx, in, secret, hide)
	} else {
		out, _, err = r.exchange(ctx, in, secret, hide)
	}
	out.URL = hide.text(out.URL)
	return out, hide.failure(err)
}

// exchange sends the request of a valid input, with additional headers whose
// values hide masks. It also returns the kept part of the body.
func (r *requester) exchange(ctx context.Context, in RequestInput, secret map[string]string, hide *mask) (RequestOutput, *beginning, error) {
	inner, cancel := limited(ctx, in.Timeout)
	defer cancel()
	req, err := in.build(inner)
	if err != nil {
		return RequestOutput{}, nil, weaver.Permanent(err)
	}
	for name, value := range secret {
		req.Header.Set(name, value)
	}
	x := &exchange{in: in, first: req, last: req}
	client := http.Client{Transport: r.transport, CheckRedirect: x.redirect}
	resp, err := client.Do(req)
	if err != nil {
		return RequestOutput{}, nil, x.broken(ctx, err)
	}
	hide.maskAnswer(resp)
	defer func() { _ = resp.Body.Close() }() // only the bytes read matter
	if !in.expects(resp.StatusCode) {
		return RequestOutput{}, nil, x.refused(ctx, resp)
	}
	limit := weaver.Current(ctx).InlineLimit
	if limit == 0 {
		limit = weaver.DefaultInlineLimit
	}
	body := &beginning{room: limit}
	if in.Until != nil {
		body.room = max(limit, pollBody)
	}
	if err := body.read(resp, maxBody); err != nil {
		return RequestOutput{}, nil, x.broken(ctx, fmt.Errorf("read the body: %w", err))
	}
	out, err := answer(resp, body, limit)
	return out, body, err
}

// build returns the request of a valid input.
func (in RequestInput) build(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	var contentType string
	switch {
	case len(in.JSON) > 0:
		body, contentType = bytes.NewReader(in.JSON), "application/json"
	case in.Body != "":
		body, contentType = strings.NewReader(in.Body), "text/plain; charset=utf-8"
	}
	method := in.method()
	req, err := http.NewRequestWithContext(ctx, method, in.URL, body)
	if err != nil {
		return nil, err // Validate missed it
	}
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if in.Until == nil && !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method) {
		req.Header.Set(keyHeader, weaver.Current(ctx).StepKey("request"))
	}
	for name, value := range in.Headers {
		switch name = http.CanonicalHeaderKey(name); {
		case name == "Host":
			req.Host = value
		case name == keyHeader && value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// method returns the method to send. Well-known methods may be in lower case, as
// in fetch.
func (in RequestInput) method() string {
	switch upper := strings.ToUpper(in.Method); upper {
	case "":
		if len(in.JSON) > 0 || in.Body != "" {
			return http.MethodPost
		}
		return http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return upper
	}
	return in.Method
}

func (in RequestInput) maxRedirects() int {
	if in.MaxRedirects == nil {
		return defaultMaxRedirects
	}
	return *in.MaxRedirects
}

func (in RequestInput) expects(status int) bool {
	if in.Until != nil && len(in.Until.Status) > 0 {
		return true // Until decides
	}
	if len(in.Expect) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(in.Expect, status)
}

// shownURL returns the URL for messages.
func (in RequestInput) shownURL() string {
	u, err := url.Parse(in.URL)
	if err != nil {
		return "the URL"
	}
	return printable(withoutUser(u))
}

// withoutUser returns a URL for messages and storage.
func withoutUser(u *url.URL) string {
	c := *u
	c.User = nil
	return c.String()
}
