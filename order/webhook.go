package order

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// WebhookRequest is a request to a URL: the second profile.
type WebhookRequest struct {
	URL            string            `json:"url"`
	Method         string            `json:"method,omitempty"` // POST unless set
	Headers        map[string]string `json:"headers,omitempty"`
	Body           json.RawMessage   `json:"body,omitempty"`
	IdempotencyKey string            `json:"idempotency_key"`
	TraceID        string            `json:"trace_id,omitempty"`
}

// Webhooks is the profile of WebhookRequest.
type Webhooks struct {
	// Hosts are those that may be called ("example.org" or "example.org:8443"); nil allows all.
	Hosts []string
	// Timeout bounds each send; 0: 5 s.
	Timeout time.Duration
	// MaxAge is the age after which a request is not sent any more; 0: 24 h.
	MaxAge time.Duration
}

// Name implements Profile.
func (Webhooks) Name() string { return "webhook" }

// Parse implements Profile.
func (p Webhooks) Parse(raw []byte, _ time.Time) (Parsed, error) {
	if err := CheckJSON(raw); err != nil {
		return Parsed{}, err
	}
	var r WebhookRequest
	if err := decodeStrict(raw, &r); err != nil {
		return Parsed{}, err
	}
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	if err := p.check(&r); err != nil {
		return Parsed{}, err
	}
	body, err := json.Marshal(&r)
	if err != nil {
		return Parsed{}, err
	}
	digest, err := Digest(body, "trace_id")
	if err != nil {
		return Parsed{}, err
	}
	parsed := Parsed{Key: r.IdempotencyKey, TraceID: r.TraceID, Body: body, Digest: digest, Timeout: p.Timeout, MaxAge: p.MaxAge}
	if parsed.Timeout == 0 {
		parsed.Timeout = 5 * time.Second
	}
	if parsed.MaxAge == 0 {
		parsed.MaxAge = 24 * time.Hour
	}
	return parsed, nil
}

func (p Webhooks) check(r *WebhookRequest) error {
	var e Invalid
	u, err := url.Parse(r.URL)
	switch {
	case r.URL == "":
		e.add("url", "is missing")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		e.add("url", fmt.Sprintf("%q: must be an http or https URL", clip(r.URL, 128)))
	case u.User != nil:
		e.add("url", "holds a user name or password; pass credentials to the adapter, they would be stored here")
	case p.Hosts != nil && !slices.Contains(p.Hosts, u.Host):
		e.add("url", fmt.Sprintf("the host %q is not on the list of allowed hosts", clip(u.Host, 64)))
	}
	if !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method) {
		e.add("method", fmt.Sprintf("%q: must be POST, PUT, PATCH or DELETE", clip(r.Method, 16)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if !token(name) || strings.ContainsAny(r.Headers[name], "\r\n\x00") {
			e.add("headers."+clip(name, 64), "is not a header: a name is letters, digits and -, a value has no line breaks")
		}
	}
	if what := BadKey(r.IdempotencyKey); what != "" {
		e.add("idempotency_key", what)
	}
	if len(r.TraceID) > maxText {
		e.add("trace_id", fmt.Sprintf("has %d bytes; the limit is %d", len(r.TraceID), maxText))
	}
	return e.err()
}

// token reports whether a text may be the name of a header.
func token(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != "" && len(name) <= maxText
}
