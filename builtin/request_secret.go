package builtin

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// headerVariable splits a value of HeadersEnv: "Bearer API_TOKEN" is a variable
// after a text.
func headerVariable(value string) (before, name string) {
	at := strings.LastIndexByte(value, ' ') + 1
	return value[:at], value[at:]
}

// checkHeadersEnv is checkHeaders for HeadersEnv.
func checkHeadersEnv(fromEnv, headers map[string]string) []error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	seen := make(map[string]string)
	for name := range headers {
		seen[http.CanonicalHeaderKey(name)] = name
	}
	for _, header := range slices.Sorted(maps.Keys(fromEnv)) {
		canonical := http.CanonicalHeaderKey(header)
		before, variable := headerVariable(fromEnv[header])
		switch {
		case !isToken(header):
			complain("headers_env: %q is not a header name: write letters, digits and dashes, as in X-Api-Key", header)
			continue
		case seen[canonical] != "":
			complain("headers_env: %s has a value already, in headers or under another spelling: keep one of them", header)
		case slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Trailer", "Host"}, canonical):
			complain("headers_env: %s cannot come from a variable: leave it out", header)
		case strings.ContainsFunc(before, isControl):
			complain("headers_env: the value of %s has a line break or another control character: write it in one line", header)
		}
		if problem := checkSecretName(variable); problem != "" {
			complain("headers_env: %s is %q, which does not name a variable: %s", header, fromEnv[header], problem)
		}
		seen[canonical] = header
	}
	return problems
}

// secretHeaders reads the headers of HeadersEnv and returns them with a mask of
// their values. Its error names all unusable variables.
func (in RequestInput) secretHeaders() (headers map[string]string, m *mask, err error) {
	var problems []error
	var secrets []string
	headers = make(map[string]string, len(in.HeadersEnv))
	var file []variable
	if in.EnvFile != "" && len(in.HeadersEnv) > 0 {
		if file, err = readEnvFile(in.EnvFile); err != nil {
			return nil, nil, err
		}
	}
	for _, header := range slices.Sorted(maps.Keys(in.HeadersEnv)) {
		before, name := headerVariable(in.HeadersEnv[header])
		value, set := lookup(name, file)
		err := checkSecret("headers_env", name, value, set)
		if err == nil && strings.ContainsFunc(value, isControl) {
			err = fmt.Errorf("headers_env: the value of %s has a line break or another control character, which no header can have: set it in one line", name)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		headers[header] = before + value
		secrets = append(secrets, value)
	}
	return headers, newMask(secrets), errors.Join(problems...)
}

// dropSecrets removes the headers of HeadersEnv from a request redirected to
// another host or to an unencrypted connection.
func (x *exchange) dropSecrets(req *http.Request) {
	if req.URL.Host == x.first.URL.Host && !downgraded(x.first.URL, req.URL) {
		return
	}
	for header := range x.in.HeadersEnv {
		req.Header.Del(header)
	}
}

// downgraded reports whether a redirect leaves https.
func downgraded(from, to *url.URL) bool { return from.Scheme == "https" && to.Scheme == "http" }

// maskAnswer masks all parts of an answer that are shown or stored.
func (m *mask) maskAnswer(resp *http.Response) {
	if m == nil {
		return
	}
	resp.Body = m.body(resp.Body)
	for _, values := range resp.Header {
		for i := range values {
			values[i] = m.text(values[i])
		}
	}
}
