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

// RequestInput says which URL to call and how. At most one of JSON and Body
// is given.
//
// A status that is not expected fails the task at once, except 408, 425, 429,
// 500, 502, 503 and 504: like network errors they are tried again,
// after the pause that the header Retry-After asks for (at most an hour) or
// else the task's backoff. Certificates that do not verify, too many redirects
// and addresses that Config.NoPrivateNetwork or NoMetadata refuses fail the task at once.
//
// Every method but GET, HEAD and OPTIONS sends the header Idempotency-Key,
// unless Headers has one: the same key in every attempt of the task and no
// other task's, so that the server can tell a repetition from a new order. An
// empty value in Headers sends none.
//
// User info in the URL becomes basic authentication and is never printed.
// Authorization and Cookie do not follow a redirect to another host, nor one
// from https to http; other headers do.
type RequestInput struct {
	Method  string            `json:"method,omitempty"` // default GET, or POST with a body
	URL     string            `json:"url"`              // http or https
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersEnv are headers whose values are variables of the worker's
	// environment, or of EnvFile, read in each attempt and never stored: the header's name and
	// the variable's, which a text may stand before, as in "Bearer API_TOKEN".
	// The answer and errors show *** for the values. A variable that is not set,
	// or that has fewer than 4 characters, fails the task. These headers follow
	// no redirect to another host.
	HeadersEnv map[string]string `json:"headers_env,omitempty"`
	// EnvFile is a file of NAME=VALUE lines that the worker reads in each attempt, for
	// HeadersEnv; its values win over those of the environment. See RunInput.EnvFile.
	EnvFile string `json:"env_file,omitempty"`

	JSON json.RawMessage `json:"json,omitempty"` // body, sent as application/json unless Headers say otherwise
	Body string          `json:"body,omitempty"` // body, sent as text/plain unless Headers say otherwise

	// Templates says that URL, the values of Headers, the strings in JSON, and Body
	// have values of tasks that this one needs, as RunInput.Templates describes. In
	// URL they stand behind the host, escaped as a segment of the path or a value
	// of the query; a URL that is nothing but one value is that value. A string of
	// JSON that is nothing but one value of JSON, or a number, becomes that value.
	Templates bool `json:"templates,omitempty"`

	Expect       []int    `json:"expect,omitempty"`        // statuses that mean success; default 200 to 299
	Timeout      Duration `json:"timeout,omitempty"`       // of one attempt, body included; default 30s
	Until        *Until   `json:"until,omitempty"`         // sends the request again and again until the answer is the one that is waited for
	MaxRedirects *int     `json:"max_redirects,omitempty"` // default 10, but none that turns a POST into a GET; 0: a redirect is the answer, which Expect checks
}

// RequestOutput is the answer. The body keeps its beginning when it is too
// long: the whole output fits the inline limit.
type RequestOutput struct {
	Status    int               `json:"status"`
	URL       string            `json:"url"`               // that answered, after redirects, without user info
	Headers   map[string]string `json:"headers,omitempty"` // those that fit a quarter of the inline limit; equal names are joined with ", "
	Body      string            `json:"body,omitempty"`    // UTF-8; other bytes, and NUL, are replaced by U+FFFD
	BodyBytes int64             `json:"body_bytes"`        // read in all, decompressed and with *** for what is secret; reading stops at 10 MiB
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

func newRequester(cfg Config) *requester {
	return &requester{newTransport(addressRules{noPrivate: cfg.NoPrivateNetwork, noMetadata: cfg.NoMetadata, allowed: cfg.AllowNetworks})}
}

func (r *requester) request(ctx context.Context, in RequestInput) (RequestOutput, error) {
	// Asked again: a task that was enqueued by name alone was not validated.
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

// exchange sends the request of an input that is valid, with further headers
// whose values hide masks. It also returns the body as far as it was kept.
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
	defer func() { _ = resp.Body.Close() }() // what was read counts
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

// build makes the request of an input that is valid.
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
		return nil, err // Validate let something pass
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

// method is the one to send. The well-known ones may be written in lower
// case, as fetch allows.
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

// shownURL is the URL as it may be printed.
func (in RequestInput) shownURL() string {
	u, err := url.Parse(in.URL)
	if err != nil {
		return "the URL"
	}
	return printable(withoutUser(u))
}

// withoutUser returns a URL as it may be printed and stored.
func withoutUser(u *url.URL) string {
	c := *u
	c.User = nil
	return c.String()
}
