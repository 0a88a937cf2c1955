package builtin

import (
	"context"
	"encoding/json"
	"errors"
)

// RequestInput says which URL to call and how. At most one of JSON and Body
// is given.
type RequestInput struct {
	Method  string            `json:"method,omitempty"` // default GET, or POST with a body
	URL     string            `json:"url"`              // http or https
	Headers map[string]string `json:"headers,omitempty"`
	JSON    json.RawMessage   `json:"json,omitempty"` // body, sent as application/json
	Body    string            `json:"body,omitempty"` // body, sent as text/plain unless Headers say otherwise

	Expect       []int    `json:"expect,omitempty"`        // statuses that mean success; default 200 to 299
	Timeout      Duration `json:"timeout,omitempty"`       // of one attempt, body included; default 30s
	MaxRedirects *int     `json:"max_redirects,omitempty"` // default 10; 0: a redirect is the answer
}

// RequestOutput is the answer. The body keeps its beginning when it is too
// long: the whole output fits the inline limit.
type RequestOutput struct {
	Status    int               `json:"status"`
	URL       string            `json:"url"` // that answered, after redirects
	Headers   map[string]string `json:"headers,omitempty"`
	Body      string            `json:"body,omitempty"` // UTF-8; other bytes are replaced by U+FFFD
	BodyBytes int64             `json:"body_bytes"`     // read in all
	Truncated bool              `json:"truncated,omitempty"`
}

type requester struct{}

func newRequester(Config) *requester { return &requester{} }

func (*requester) request(context.Context, RequestInput) (RequestOutput, error) {
	return RequestOutput{}, errors.New("TODO")
}
