package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/internal/text"
)

// healthcheckCmd is the verb healthcheck, the probe of containers without a shell.
type healthcheckCmd struct {
	URL     string        `arg:"" optional:"" default:"http://127.0.0.1:8080/healthz" help:"URL to ask; default http://127.0.0.1:8080/healthz."`
	Timeout time.Duration `default:"3s" placeholder:"DURATION" help:"Limit for the response; default 3s."`
}

// Help is shown by healthcheck --help.
func (healthcheckCmd) Help() string {
	return "Asks `serve` or a `worker --health` whether it responds (/healthz) or is ready (/readyz). The exit code is 0 for a response " +
		"with a status from 200 to 299, otherwise 1. It opens no store.\n\n  weaver healthcheck http://127.0.0.1:8080/readyz"
}

// maxHealthBody limits the response that is read, in bytes.
const maxHealthBody = 64 << 10

// Run implements the verb.
func (c *healthcheckCmd) Run(ctx context.Context, s *session) error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return badInput("Write a URL, for example http://127.0.0.1:8080/readyz.", "%s: not an HTTP URL", redact(c.URL))
	case c.Timeout <= 0:
		return badInput("", "--timeout %s: want more than 0s", c.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return badInput("", "%w", err)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // no proxy: the server is this machine
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(r)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the URL, which may have a password
		}
		return fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxHealthBody))
	if err != nil {
		return fmt.Errorf("%s: read the response: %w", u.Redacted(), err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s: %s%s", u.Redacted(), res.Status, failureOf(body))
	}
	if s.json() {
		s.out.Write(append([]byte(strings.TrimSpace(string(body))), '\n'))
		return nil
	}
	fmt.Fprintf(s.out, "%s: %s\n", u.Redacted(), res.Status)
	return nil
}

// failureOf returns the reasons in a response that is not a success; "" without any.
func failureOf(body []byte) string {
	var p httpapi.Problem
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	var reasons []string
	for _, check := range p.Checks {
		if check.Status != "ok" {
			reasons = append(reasons, check.Name+": "+check.Detail)
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, strings.TrimSpace(p.Title+" "+p.Detail))
	}
	return ": " + text.OneLine(strings.Join(reasons, "; "), 500)
}
