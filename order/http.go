package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxAnswer is the longest answer of a partner that is read.
	maxAnswer = 1 << 20
	// maxRetryAfter is the longest Retry-After of a partner that is honoured.
	maxRetryAfter = 10 * time.Minute
)

// HTTPConfig describes a partner behind HTTP.
type HTTPConfig struct {
	// URL gets orders by POST, and is asked for keys by GET at URL/KEY (404: it has never seen
	// the key). Webhooks are sent to their own URL.
	URL string
	// Token returns the bearer token, or "". It is called again, once, after a 401.
	Token func() (string, error)
	// Client sends; nil: the default transport. Redirects are never followed.
	Client *http.Client
}

// HTTP is an Adapter for partners behind HTTP. An order's success is 200 or 201 with the
// partner's result as JSON: fills, avg_price, executed_qty, cost, slippage, order_ref.
type HTTP struct {
	cfg HTTPConfig

	mu    sync.Mutex
	token string
	known bool
}

// NewHTTP returns an adapter. A URL that cannot be used is refused.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	if cfg.URL != "" {
		u, err := url.Parse(cfg.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("BROKER_URL %q: must be an http or https URL", redactURL(cfg.URL))
		}
		if u.User != nil {
			return nil, errors.New("BROKER_URL holds a user name or password: use BROKER_TOKEN or BROKER_TOKEN_FILE")
		}
	}
	client := http.Client{}
	if cfg.Client != nil {
		client = *cfg.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Client = &client
	return &HTTP{cfg: cfg}, nil
}

func redactURL(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	return "(not shown)"
}

// Name implements Adapter.
func (*HTTP) Name() string { return "http" }

// Send implements Adapter.
func (h *HTTP) Send(ctx context.Context, out Outgoing) (ExecResult, error) {
	method, target, body, headers := http.MethodPost, h.cfg.URL, []byte(out.Body), map[string]string(nil)
	if out.Profile == "webhook" {
		var r WebhookRequest
		if err := json.Unmarshal(out.Body, &r); err != nil {
			return ExecResult{}, &SendError{Kind: FailRejected, Message: "the stored request cannot be read", Err: err}
		}
		method, target, body, headers = r.Method, r.URL, r.Body, r.Headers
	}
	status, header, answer, err := h.do(ctx, method, target, body, headers, &out)
	if err != nil {
		return ExecResult{}, err
	}
	if status == http.StatusOK || status == http.StatusCreated || out.Profile == "webhook" && status/100 == 2 {
		return result(&out, status, answer)
	}
	return ExecResult{}, failure(status, header)
}

// Reconcile implements Reconciler. A webhook's receiver is never asked.
func (h *HTTP) Reconcile(ctx context.Context, out Outgoing) (ExecResult, Found, error) {
	if out.Profile == "webhook" || h.cfg.URL == "" {
		return ExecResult{}, FoundOpen, nil
	}
	status, _, answer, err := h.do(ctx, http.MethodGet, strings.TrimRight(h.cfg.URL, "/")+"/"+url.PathEscape(out.Key), nil, nil, &out)
	switch {
	case err != nil:
		return ExecResult{}, FoundOpen, err
	case status == http.StatusNotFound:
		return ExecResult{}, FoundNothing, nil
	case status != http.StatusOK:
		return ExecResult{}, FoundOpen, nil
	}
	res, err := result(&out, status, answer)
	if err != nil {
		return ExecResult{}, FoundOpen, err
	}
	return res, FoundResult, nil
}

// do sends one request; one more if the token is refused and its file has another one.
func (h *HTTP) do(ctx context.Context, method, target string, body []byte, headers map[string]string, out *Outgoing) (int, http.Header, []byte, error) {
	for again := false; ; again = true {
		token, err := h.bearer(again)
		if err != nil {
			return 0, nil, nil, &SendError{Kind: FailDown, Message: "the partner's token cannot be read", Err: err}
		}
		req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
		if err != nil {
			return 0, nil, nil, &SendError{Kind: FailRejected, Message: "the request cannot be made", Err: err}
		}
		for name, v := range headers {
			req.Header.Set(name, v)
		}
		if len(body) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		req.Header.Set("Idempotency-Key", out.Key)
		if token != "" && out.Profile != "webhook" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		conn := h.trace()
		res, err := h.cfg.Client.Do(req.WithContext(httptrace.WithClientTrace(ctx, conn.hooks())))
		if err != nil {
			return 0, nil, nil, conn.unreached(ctx, err)
		}
		answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		_ = res.Body.Close()
		switch {
		case err != nil:
			return 0, nil, nil, conn.unreached(ctx, fmt.Errorf("reading the answer: %w", err))
		case len(answer) > maxAnswer:
			return 0, nil, nil, &SendError{Kind: FailUnread, Message: fmt.Sprintf("the partner's answer is over %d bytes", maxAnswer)}
		case res.StatusCode == http.StatusUnauthorized && !again && h.cfg.Token != nil:
			continue // the token may have been replaced
		}
		return res.StatusCode, res.Header, answer, nil
	}
}

// bearer returns the token; anew reads it again.
func (h *HTTP) bearer(anew bool) (string, error) {
	if h.cfg.Token == nil {
		return "", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known || anew {
		token, err := h.cfg.Token()
		if err != nil {
			return "", err
		}
		h.token, h.known = token, true
	}
	return h.token, nil
}

// connTrace knows whether a request had a connection. Only an http.Transport tells.
type connTrace struct {
	tells bool
	got   atomic.Bool
}

func (h *HTTP) trace() *connTrace {
	_, tells := h.cfg.Client.Transport.(*http.Transport)
	return &connTrace{tells: tells || h.cfg.Client.Transport == nil}
}

func (t *connTrace) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) }}
}

// unreached classifies an error of the transport: a connection that was never made sent nothing.
func (t *connTrace) unreached(ctx context.Context, err error) *SendError {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil || isTimeout(err):
		return &SendError{Kind: FailTimeout, Message: "the partner did not answer in time", Err: err}
	case errors.As(err, &dns):
		return &SendError{Kind: FailDown, Message: "the partner cannot be reached: " + dns.Error(), Err: err}
	case errors.As(err, &op) && op.Op == "dial": // not err itself, which has the URL
		return &SendError{Kind: FailDown, Message: "the partner cannot be reached: " + op.Error(), Err: err}
	case t.tells && !t.got.Load(): // refused by the client's own rules, or no TLS
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // without the URL
		}
		return &SendError{Kind: FailDown, Message: "the partner cannot be reached: " + err.Error(), Err: err}
	}
	return &SendError{Kind: FailBroken, Message: "the connection to the partner broke", Err: err}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// failure classifies an answer that is no success.
func failure(status int, header http.Header) *SendError {
	text := fmt.Sprintf("the partner answered %d", status)
	switch {
	case status == http.StatusConflict:
		return &SendError{Kind: FailProcessed, Message: text}
	case status == http.StatusTooManyRequests:
		return &SendError{Kind: FailThrottled, Message: text, RetryAfter: retryAfter(header)}
	case status == http.StatusRequestTimeout:
		return &SendError{Kind: FailTimeout, Message: text}
	case status/100 == 5:
		return &SendError{Kind: FailBroken, Message: text}
	case status/100 == 4:
		return &SendError{Kind: FailRejected, Message: text}
	}
	return &SendError{Kind: FailUnread, Message: text + "; 200 or 201 is a success"}
}

func retryAfter(header http.Header) time.Duration {
	v := header.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		return min(time.Duration(s)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, min(time.Until(at), maxRetryAfter))
	}
	return 0
}

// result reads a partner's success.
func result(out *Outgoing, status int, answer []byte) (ExecResult, error) {
	if out.Profile == "webhook" {
		res := ExecResult{Status: OK, ExecutedQty: "0", Response: &Response{Status: status}}
		if len(answer) > 0 {
			res.Response.Body = answer
			if CheckJSON(answer) != nil {
				raw, err := json.Marshal(strings.ToValidUTF8(string(answer), "\uFFFD"))
				if err != nil {
					return ExecResult{}, err
				}
				res.Response.Body = raw
			}
		}
		return res, nil
	}
	var got struct {
		Fills       []Fill   `json:"fills"`
		AvgPrice    *Decimal `json:"avg_price"`
		ExecutedQty *Decimal `json:"executed_qty"`
		Cost        *Decimal `json:"cost"`
		Slippage    *Decimal `json:"slippage"`
		OrderRef    string   `json:"order_ref"`
		Broker      Broker   `json:"broker"`
	}
	if err := CheckJSON(answer); err != nil {
		return ExecResult{}, &SendError{Kind: FailUnread, Message: "the partner's answer is not usable JSON", Err: err}
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return ExecResult{}, &SendError{Kind: FailUnread, Message: "the partner's answer cannot be read", Err: err}
	}
	res := ExecResult{Status: OK, Fills: got.Fills, AvgPrice: got.AvgPrice, Cost: got.Cost, Slippage: got.Slippage, Broker: got.Broker}
	qty := make([]Decimal, len(got.Fills))
	for i, f := range got.Fills {
		qty[i] = f.Qty
	}
	res.ExecutedQty = Sum(qty...)
	if got.OrderRef != "" {
		res.Broker.OrderRef = got.OrderRef
	}
	if got.ExecutedQty != nil && (got.ExecutedQty.Less(res.ExecutedQty) || res.ExecutedQty.Less(*got.ExecutedQty)) {
		return ExecResult{}, &SendError{Kind: FailUnread, Message: fmt.Sprintf("the partner's executed_qty is %s, its fills add up to %s", *got.ExecutedQty, res.ExecutedQty)}
	}
	return res, nil
}
