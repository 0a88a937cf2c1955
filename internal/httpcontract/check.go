package httpcontract

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// transport checks the requests and answers that it transports.
type transport struct {
	c    *Contract
	t    testing.TB
	next http.RoundTripper
	at   string // mount path of the API
	seen *Record
}

// Transport returns a transport that fails the test for anything undeclared in the document. mount is the path of the
// API, or "". record, if not nil, collects successful operations.
func (c *Contract) Transport(t testing.TB, next http.RoundTripper, mount string, record *Record) http.RoundTripper {
	return &transport{c, t, next, mount, record}
}

// RoundTrip implements http.RoundTripper.
func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.GetBody != nil && r.ContentLength < 1<<20 {
		if b, err := r.GetBody(); err == nil {
			sent, _ = io.ReadAll(b)
		}
	}
	res, err := tr.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	if !endless(res) {
		if body, err = io.ReadAll(res.Body); err != nil {
			_ = res.Body.Close()
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	inside := r.Clone(r.Context()) // as the API sees it
	inside.URL.Path = strings.TrimPrefix(r.URL.Path, tr.at)
	inside.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, tr.at)
	for _, problem := range tr.c.check(inside, sent, res, body) {
		tr.t.Errorf("%s %s: %d: %s", r.Method, r.URL.RequestURI(), res.StatusCode, problem)
	}
	if _, _, id := tr.c.operation(inside); tr.seen != nil && id != "" && succeeded(res) {
		tr.seen.add(id, true)
	}
	return res, nil
}

// CloseIdleConnections makes (*http.Client).CloseIdleConnections work.
func (tr *transport) CloseIdleConnections() {
	(&http.Client{Transport: tr.next}).CloseIdleConnections()
}

func succeeded(res *http.Response) bool { return res.StatusCode >= 200 && res.StatusCode < 300 }

// endless reports whether an answer is a stream.
func endless(res *http.Response) bool { return media(res) == "text/event-stream" }

func media(res *http.Response) string {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return res.Header.Get("Content-Type")
	}
	return kind
}

// problemMedia is the media type of error answers.
const problemMedia = "application/problem+json"

// strangers are the statuses of answers to paths outside the document.
var strangers = []int{http.StatusNotFound, http.StatusRequestURITooLong, http.StatusMisdirectedRequest, http.StatusInternalServerError, http.StatusServiceUnavailable}

// check lists the undeclared parts of an answer.
func (c *Contract) check(r *http.Request, sent []byte, res *http.Response, body []byte) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	path, method, id := c.operation(r)
	if id == "" {
		switch {
		case path == "" && !slices.Contains(strangers, res.StatusCode):
			wrong("the document has no such path: want a problem with one of the statuses %v", strangers)
		case path != "" && res.StatusCode != http.StatusMethodNotAllowed:
			wrong("the document has no such method of %s: want 405", path)
		case path != "" && res.Header.Get("Allow") == "":
			wrong("there is no header Allow")
		}
		if media(res) != problemMedia {
			wrong("its Content-Type is %q, and it must be a problem", res.Header.Get("Content-Type"))
		}
		if err := c.validate(body, "components", "schemas", "Problem"); err != nil && r.Method != http.MethodHead {
			wrong("%s\n%s", err, pretty(body))
		}
		return problems
	}
	operation := object(c.doc, "paths", path, method)
	status := fmt.Sprint(res.StatusCode)
	response := object(operation, "responses", status)
	if response == nil {
		wrong("%s declares no such status, but %s\n%s", id, keys(object(operation, "responses")), pretty(body))
		return problems
	}
	for name := range res.Header {
		if !slices.Contains(general, name) && !has(object(response, "headers"), name) {
			wrong("%s declares no header %s for this status, but %s", id, name, keys(object(response, "headers")))
		}
	}
	content := object(response, "content")
	declared := object(content, media(res))
	switch {
	case content == nil && (len(body) > 0 || res.Header.Get("Content-Type") != ""):
		wrong("%s declares no body for this status\n%s", id, pretty(body))
	case content == nil:
	case declared == nil && !has(content, "application/octet-stream"):
		wrong("%s declares no %q for this status, but %s\n%s", id, res.Header.Get("Content-Type"), keys(content), pretty(body))
	case r.Method == http.MethodHead:
		if len(body) > 0 {
			wrong("an answer to HEAD has a body")
		}
	case declared["schema"] != nil && strings.HasSuffix(media(res), "json"):
		if err := c.validate(body, "paths", path, method, "responses", status, "content", media(res), "schema"); err != nil {
			wrong("%s\n%s", err, pretty(body))
		}
	}
	if succeeded(res) {
		problems = append(problems, c.checkRequest(r, sent, path, method)...)
	}
	return problems
}

// general lists the headers that any answer may have.
var general = []string{
	"Cache-Control", "Connection", "Content-Length", "Content-Security-Policy", "Content-Type", "Date", "Referrer-Policy", "X-Content-Type-Options",
}

// has reports whether a name exists, ignoring case.
func has(n node, name string) bool {
	for key := range n {
		if strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

// checkRequest lists the undeclared parts of a request that succeeded.
func (c *Contract) checkRequest(r *http.Request, sent []byte, path, method string) (problems []string) {
	operation := object(c.doc, "paths", path, method)
	params, _ := operation["parameters"].([]any)
	for name := range r.URL.Query() {
		if !slices.ContainsFunc(params, func(p any) bool {
			n, _ := p.(node)
			return text(n, "name") == name && text(n, "in") == "query"
		}) {
			problems = append(problems, fmt.Sprintf("the operation declares no parameter %s, and took it", name))
		}
	}
	if len(sent) == 0 {
		return problems
	}
	if object(operation, "requestBody", "content", "application/json") == nil {
		return append(problems, "the operation declares no body, and took one")
	}
	if err := c.validate(sent, "paths", path, method, "requestBody", "content", "application/json", "schema"); err != nil {
		problems = append(problems, fmt.Sprintf("the request succeeded, and the document does not allow its body: %s\n%s", err, pretty(sent)))
	}
	return problems
}
