package clitest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// request sends one, with a body if there is one, and returns the answer.
func request(t *testing.T, url, token string, body ...string) (status int, answer string) {
	t.Helper()
	method, text := http.MethodGet, io.Reader(nil)
	if len(body) > 0 {
		method, text = http.MethodPost, strings.NewReader(body[0])
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, text)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}
