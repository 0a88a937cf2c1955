package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate returns all problems with the input. Enqueue calls it.
func (in RequestInput) Validate() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if in.Templates {
		if problems = in.texts().Check(); len(problems) > 0 {
			return errors.Join(problems...)
		}
		written := in.URL
		if in = in.with(in.texts().Sample()); in.URL == "x" && written != "x" {
			in.URL = "https://x.example/" // the whole URL is a value
		}
	}
	if err := checkURL(in.URL); err != nil {
		problems = append(problems, err)
	}
	switch {
	case in.Method != "" && !isToken(in.Method):
		complain("method: %q is none: write a word such as GET, POST or DELETE", in.Method)
	case strings.EqualFold(in.Method, http.MethodConnect):
		complain("method: CONNECT opens a tunnel, not a request: write a word such as GET, POST or DELETE")
	}
	problems = append(problems, checkHeaders(in.Headers)...)
	problems = append(problems, checkHeadersEnv(in.HeadersEnv, in.Headers)...)
	if len(in.JSON) > 0 && in.Body != "" {
		complain("json and body are both given: keep one of them")
	}
	if len(in.JSON) > 0 && !json.Valid(in.JSON) {
		complain(`json: this is not JSON: write a value such as {"id": 7}, or put the text into body`)
	}
	for _, status := range in.Expect {
		if status < 100 || status > 599 {
			complain("expect: %d is not a status: write numbers from 100 to 599", status)
		}
	}
	if in.Timeout < 0 {
		complain(`timeout: %s is negative: write for example "30s", or leave it out for %s`, time.Duration(in.Timeout), defaultRequestTimeout)
	}
	if in.Until != nil {
		problems = append(problems, in.Until.validate()...)
		if len(in.Until.Status) > 0 && len(in.Expect) > 0 {
			complain("expect and until.status both say which status is right: keep one of them")
		}
	}
	if in.maxRedirects() < 0 {
		complain("max_redirects: %d is negative: write 0 to take a redirect as the answer, or leave it out for %d", *in.MaxRedirects, defaultMaxRedirects)
	}
	return errors.Join(problems...)
}

// checkURL checks a URL. Its errors contain nothing that could be a password.
func checkURL(raw string) error {
	const example = "write for example https://example.com/path"
	if raw == "" {
		return errors.New("url is missing: " + example)
	}
	u, err := url.Parse(raw)
	if err != nil {
		why, _ := errors.AsType[*url.Error](err)
		if why == nil || strings.Contains(raw, "@") {
			return errors.New("url cannot be read: " + example + `, with other characters in user names and passwords as %XX`)
		}
		return fmt.Errorf("url cannot be read (%w): %s", why.Err, example)
	}
	switch port, err := strconv.Atoi(u.Port()); {
	case !webScheme(u):
		return errors.New("url begins with neither http:// nor https://: " + example)
	case u.Hostname() == "":
		return errors.New("url names no host: " + example)
	case u.Port() != "" && (err != nil || port < 1 || port > 65535):
		return fmt.Errorf("url has port %s: write a number from 1 to 65535, or none", u.Port())
	}
	return nil
}

func webScheme(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

func checkHeaders(headers map[string]string) []error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	seen := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, canonical := headers[name], http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			complain("headers: %q is not a header name: write letters, digits and dashes, as in X-Request-Id", name)
			continue
		case seen[canonical] != "":
			complain("headers: %s and %s are the same header: keep one of them", seen[canonical], name)
		case slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Trailer"}, canonical):
			complain("headers: %s is set by the transport: leave it out", name)
		case strings.ContainsFunc(value, isControl):
			complain("headers: the value of %s has a line break or another control character: write it in one line", name)
		case canonical == "Host" && !isHost(value):
			complain("headers: %q cannot be the Host: write a name such as example.com or example.com:8080", value)
		}
		seen[canonical] = name
	}
	return problems
}

func isHost(text string) bool {
	u, err := url.Parse("http://" + text)
	return err == nil && u.Hostname() != "" && u.Host == text
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isToken reports whether a text may be a method or a header name (RFC 9110,
// section 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
