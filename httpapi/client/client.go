package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/goweaver/weaver"
)

// Client enqueues, reads and operates the tasks of a server, as a weaver.Client does
// those of a store. Task types work with it as with that one: their Enqueue, Get, List
// and Wait, and the handles that they give.
//
//	c, err := client.New("https://weaver.example.com/weaver", client.Token(token))
//	h, err := Charge.Enqueue(ctx, c, in, weaver.IdempotencyKey("evt-456"))
//	receipt, err := h.Wait(ctx)
//
// What is other than in a weaver.Client:
//
//   - The server has to know the task type: a worker announced it (schema.Plugin). It
//     checks inputs by what was announced.
//   - What is redacted is masked, in outputs too. Without the access payloads there are no
//     values: a Wait for a task that succeeds is an error then. Rows of lists never have any.
//   - The actor in the audit is who the credentials belong to: the option By is refused.
//   - What the server refuses is a *Problem, of which errors.Is says what it says of the
//     error that a weaver.Client returns.
//
// A request that failed on its way is sent again if that cannot do it twice: a read, an
// enqueue or submit with an IdempotencyKey, a signal, and anything that the server did
// not take (429, 503). Of anything else whose answer was lost the error is
// store.ErrUnknown.
//
// A Client is safe for concurrent use and holds nothing that must be closed.
type Client struct {
	base      string // without a slash at its end
	http      *http.Client
	authorize func(context.Context) (string, error) // the header Authorization; nil: none
	tries     int
	maxAnswer int64
	log       *slog.Logger
}

var _ weaver.Caller = (*Client)(nil)

// Option is an option of New.
type Option func(*Client) error

// Token sends a token with every request.
func Token(token string) Option {
	return func(c *Client) error {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("Token: it is empty, or has characters that no token has: look for a line break at its end")
		}
		return c.authorizedBy(func(context.Context) (string, error) { return "Bearer " + token, nil })
	}
}

// TokenFunc asks for the token before every request, for one that changes. An error of
// it ends the call.
func TokenFunc(token func(context.Context) (string, error)) Option {
	return func(c *Client) error {
		if token == nil {
			return errors.New("TokenFunc: the function is nil")
		}
		return c.authorizedBy(func(ctx context.Context) (string, error) {
			t, err := token(ctx)
			return "Bearer " + t, err
		})
	}
}

// BasicAuth sends a name and a password with every request.
func BasicAuth(name, password string) Option {
	return func(c *Client) error {
		if name == "" || strings.Contains(name, ":") {
			return errors.New("BasicAuth: the name is empty, or has a colon in it")
		}
		return c.authorizedBy(func(context.Context) (string, error) {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password)), nil
		})
	}
}

func (c *Client) authorizedBy(header func(context.Context) (string, error)) error {
	if c.authorize != nil {
		return errors.New("several credentials: use one of Token, TokenFunc and BasicAuth")
	}
	c.authorize = header
	return nil
}

// HTTPClient sends the requests with a client of the program, which it does not change.
// Its redirects are not followed unless it has a CheckRedirect. Default: one of its own
// with http.DefaultTransport's settings.
func HTTPClient(h *http.Client) Option {
	return func(c *Client) error {
		if h == nil {
			return errors.New("HTTPClient: it is nil")
		}
		own := *h
		c.http = &own
		return nil
	}
}

// Tries is how often a request is sent at most that may be sent again. Default 5, which
// takes about 2 s if the server does not say otherwise.
func Tries(n int) Option {
	return func(c *Client) error {
		if n < 1 {
			return fmt.Errorf("Tries(%d): want at least 1", n)
		}
		c.tries = n
		return nil
	}
}

// MaxAnswer is how many bytes of an answer are read; a larger one is an error. Default 64 MiB.
func MaxAnswer(bytes int64) Option {
	return func(c *Client) error {
		if bytes < 1 {
			return fmt.Errorf("MaxAnswer(%d): want at least 1 byte", bytes)
		}
		c.maxAnswer = bytes
		return nil
	}
}

// Logger is told when the server cannot be reached while something is waited for.
// Default slog.Default().
func Logger(log *slog.Logger) Option {
	return func(c *Client) error {
		if log == nil {
			return errors.New("Logger: it is nil")
		}
		c.log = log
		return nil
	}
}

// New returns a client of the API at a URL, with the path under which it is
// mounted. It connects to nothing yet. Errors: ErrConfig, with all that is wrong.
func New(baseURL string, opts ...Option) (*Client, error) {
	c := &Client{base: strings.TrimRight(baseURL, "/"), tries: 5, maxAnswer: 64 << 20, log: slog.Default()}
	problems := checkBase(baseURL)
	for _, o := range opts {
		if o == nil {
			problems = append(problems, errors.New("an option is nil"))
		} else if err := o(c); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%w: %w", weaver.ErrConfig, err)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: ownTransport()}
	}
	if c.http.CheckRedirect == nil { // it would make a GET of a POST
		c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c, nil
}

// checkBase says what is wrong with the URL of an API. It repeats no password.
func checkBase(text string) (problems []error) {
	const want = "want one like https://weaver.example.com or http://127.0.0.1:8080/weaver"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return []error{fmt.Errorf("the URL cannot be read: %s", want)} // the error might repeat a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return []error{fmt.Errorf("the URL %q has no http:// or https://, or no host: %s", u.Redacted(), want)}
	}
	if u.User != nil {
		problems = append(problems, fmt.Errorf("the URL %q has credentials in it: give them with Token or BasicAuth", u.Redacted()))
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		problems = append(problems, fmt.Errorf("the URL %q has a ? or a #: %s", u.Redacted(), want))
	}
	return problems
}

// ownTransport keeps connections of calls that run at the same time.
func ownTransport() http.RoundTripper {
	t, known := http.DefaultTransport.(*http.Transport)
	if !known {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 32
	return t
}

const (
	tryTimeout  = time.Minute      // of one try
	maxLongPoll = 30 * time.Second // which is added for a wait
)
