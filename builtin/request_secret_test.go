package builtin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/builtin"
)

// Headers from the worker's variables are sent, and masked in the answer.
func TestRequestSecretHeaders(t *testing.T) {
	const value = "hunter2-hunter2"
	t.Setenv("SHOP_TOKEN", value)
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "you are "+value[:7])
		w.(http.Flusher).Flush() // two chunks
		_, _ = io.WriteString(w, value[7:]+"!")
	}
	in := builtin.RequestInput{URL: "http://shop/a", HeadersEnv: map[string]string{"authorization": "Bearer SHOP_TOKEN", "X-Api-Key": "SHOP_TOKEN"}}
	webCase(t, "success", func(w *webFixture) {
		v := &visits{answer: echo}
		w.serve("shop", v.serve)
		out := w.run(in)
		h := v.last(t).header
		if h.Get("Authorization") != "Bearer "+value || h.Get("X-Api-Key") != value {
			t.Errorf("sent: %v", h)
		}
		if out.Body != "you are ***!" || out.Headers["X-Seen"] != "Bearer ***" {
			t.Errorf("the answer is %+v", out)
		}
	})
	webCase(t, "from a file, which wins", func(w *webFixture) {
		v := &visits{answer: echo}
		w.serve("shop", v.serve)
		in := in
		in.EnvFile = filepath.Join(t.TempDir(), "env")
		if err := os.WriteFile(in.EnvFile, []byte("SHOP_TOKEN=from the file\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out := w.run(in)
		if h := v.last(t).header; h.Get("Authorization") != "Bearer from the file" || out.Headers["X-Seen"] != "Bearer ***" {
			t.Errorf("sent %v, the answer is %+v", h, out)
		}
	})
	webCase(t, "failure", func(w *webFixture) {
		w.serve("shop", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			echo(w, r)
		})
		te := w.failure(1, in, "GET http://shop/a: 403 Forbidden: you are ***!")
		if strings.Contains(te.Message, value) {
			t.Error(te.Message)
		}
	})
	webCase(t, "an address that has it", func(w *webFixture) {
		w.serve("shop", to(http.StatusFound, "http://other/"+value))
		v := &visits{answer: status(http.StatusNotFound)}
		w.serve("other", v.serve)
		te := w.failure(1, in, "http://other/***")
		if strings.Contains(te.Message, value) {
			t.Error(te.Message)
		}
		if h := v.last(t).header; h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" {
			t.Errorf("another host got %v", h)
		}
	})
	webCase(t, "a redirect to the same host", func(w *webFixture) {
		v := &visits{}
		w.serve("shop", func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/a" {
				to(http.StatusFound, "/b")(rw, r)
				return
			}
			v.serve(rw, r)
		})
		w.run(in)
		if h := v.last(t).header; h.Get("X-Api-Key") != value {
			t.Errorf("the second request has %v", h)
		}
	})
}

// A variable that cannot be sent or masked is refused before any request.
func TestRequestBadSecretHeaders(t *testing.T) {
	t.Setenv("SHOP_EMPTY", "")
	t.Setenv("SHOP_SHORT", "x1y")
	t.Setenv("SHOP_LINES", "geheim\ngeheim")
	for name, says := range map[string]string{
		"SHOP_UNSET": "headers_env: the variable SHOP_UNSET is not set where the worker runs",
		"SHOP_EMPTY": "headers_env: the variable SHOP_EMPTY is empty: give it a value",
		"SHOP_SHORT": "headers_env: the value of SHOP_SHORT has fewer than 4 characters",
		"SHOP_LINES": "headers_env: the value of SHOP_LINES has a line break",
	} {
		webCase(t, name, func(w *webFixture) {
			v := &visits{}
			w.serve("shop", v.serve)
			te := w.failure(1, builtin.RequestInput{URL: "http://shop/", HeadersEnv: map[string]string{"X-A": name}}, says)
			if strings.Contains(te.Message, "x1y") || strings.Contains(te.Message, "geheim") || len(v.all()) > 0 {
				t.Errorf("%s; %d requests", te.Message, len(v.all()))
			}
		})
	}
}

// Invalid names are reported when the input is validated.
func TestSecretNames(t *testing.T) {
	t.Parallel()
	for in, says := range map[string]string{
		`{"url": "http://a/", "headers_env": {"X-A": "TOKEN", "Authorization": "Bearer API_TOKEN"}}`: "",
		`{"url": "http://a/", "headers_env": {"X A": "TOKEN"}}`:                                      `headers_env: "X A" is not a header name`,
		`{"url": "http://a/", "headers_env": {"X-A": ""}}`:                                           `headers_env: X-A is "", which does not name a variable`,
		`{"url": "http://a/", "headers_env": {"X-A": "A*"}}`:                                         `write each name`,
		`{"url": "http://a/", "headers_env": {"X-A": "B"}, "headers": {"x-a": "c"}}`:                 `headers_env: X-A has a value already`,
		`{"url": "http://a/", "headers_env": {"Host": "B"}}`:                                         `headers_env: Host cannot come from a variable`,
	} {
		check[builtin.RequestInput](t, in, says)
	}
	for in, says := range map[string]string{
		`{"shell": "ls", "secret_env": ["A"], "inherit_env": ["A"]}`:   "",
		`{"shell": "ls", "secret_env": [""]}`:                          `secret_env[0] is "": write the name of an environment variable`,
		`{"shell": "ls", "secret_env": ["A", "AWS_*"]}`:                `secret_env[1] is "AWS_*": write each name`,
		`{"shell": "ls", "secret_env": ["A"], "env": {"A": "geheim"}}`: `secret_env has A, which env gives a value that is stored`,
	} {
		check[builtin.RunInput](t, in, says)
	}
}

func check[T interface{ Validate() error }](t *testing.T, raw, says string) {
	t.Helper()
	var in T
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		t.Fatal(err)
	}
	err := in.Validate()
	if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "geheim")) {
		t.Errorf("%s: %v, want %q", raw, err, says)
	}
}
