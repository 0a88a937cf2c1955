package builtin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
)

func TestRequestSends(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in      builtin.RequestInput // of http://a.test
		method  string
		body    string
		headers map[string]string // "": must not be there
	}{
		"a GET by default": {
			builtin.RequestInput{},
			"GET", "",
			map[string]string{"User-Agent": "weaver/1 (weaver.http.request.v1)", "Content-Type": "", "Idempotency-Key": "", "Authorization": ""},
		},
		"JSON by POST": {
			builtin.RequestInput{JSON: json.RawMessage(`{"id":7}`)},
			"POST", `{"id":7}`,
			map[string]string{"Content-Type": "application/json"},
		},
		"the JSON null": {builtin.RequestInput{JSON: json.RawMessage(`null`)}, "POST", `null`, nil},
		"text by POST": {
			builtin.RequestInput{Body: "héllo"},
			"POST", "héllo",
			map[string]string{"Content-Type": "text/plain; charset=utf-8"},
		},
		"a method of one's own": {builtin.RequestInput{Method: "PURGE"}, "PURGE", "", nil},
		"a method in lower case": {
			builtin.RequestInput{Method: "delete"},
			"DELETE", "",
			map[string]string{"Content-Type": ""},
		},
		"a GET with a body": {builtin.RequestInput{Method: "GET", Body: "q"}, "GET", "q", map[string]string{"Idempotency-Key": ""}},
		"headers of one's own": {
			builtin.RequestInput{Body: "a,b", Headers: map[string]string{
				"content-type": "text/csv", "USER-AGENT": "me", "X-Trace": "ä\t1", "idempotency-key": "order-7",
			}},
			"POST", "a,b",
			map[string]string{"Content-Type": "text/csv", "User-Agent": "me", "X-Trace": "ä\t1", "Idempotency-Key": "order-7"},
		},
		"no idempotency key": {
			builtin.RequestInput{Body: "x", Headers: map[string]string{"Idempotency-Key": ""}},
			"POST", "x",
			map[string]string{"Idempotency-Key": ""},
		},
		"basic authentication": {
			builtin.RequestInput{URL: "http://hugo:s3cret@a.test/"},
			"GET", "",
			map[string]string{"Authorization": "Basic aHVnbzpzM2NyZXQ="},
		},
	} {
		webCase(t, name, func(w *webFixture) {
			v := &visits{}
			w.serve("a.test", v.serve)
			if c.in.URL == "" {
				c.in.URL = "http://a.test/"
			}
			if out := w.run(c.in); out.Status != 200 || out.URL != "http://a.test/" {
				w.Errorf("the answer: %+v", out)
			}
			got := v.last(w)
			if got.method != c.method || got.body != c.body {
				w.Errorf("sent %s with %q, want %s with %q", got.method, got.body, c.method, c.body)
			}
			for name, want := range c.headers {
				values, there := got.header[name]
				if there != (want != "") || got.header.Get(name) != want {
					w.Errorf("header %s: %q, want %q", name, values, want)
				}
			}
		})
	}
}

func TestRequestMethodInLowerCase(t *testing.T) {
	t.Parallel()
	webCase(t, "is meant in capitals, when it is well known", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", v.serve)
		for _, method := range []string{"get", "head", "post", "put", "patch", "delete", "options", "own"} {
			w.run(builtin.RequestInput{URL: "http://a.test/", Method: method})
			want := strings.ToUpper(method)
			if method == "own" {
				want = method
			}
			if got := v.last(w).method; got != want {
				w.Errorf("sent %q, want %q", got, want)
			}
		}
	})
}

func TestRequestHostHeader(t *testing.T) {
	t.Parallel()
	webCase(t, "names the host that is meant", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", v.serve)
		w.run(builtin.RequestInput{URL: "http://a.test/", Headers: map[string]string{"host": "shop.test:8080"}})
		if got := v.last(w); got.host != "shop.test:8080" {
			w.Errorf("the server was asked for host %q", got.host)
		}
	})
}

func TestRequestAnswers(t *testing.T) {
	t.Parallel()
	webCase(t, "with status, headers and body", func(w *webFixture) {
		w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Add("X-Part", "one")
			rw.Header().Add("X-Part", "two")
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write([]byte(`{"ok":true}`))
		})
		out := w.run(builtin.RequestInput{URL: "http://a.test/x?y=1"})
		if out.Status != 201 || out.URL != "http://a.test/x?y=1" || out.Body != `{"ok":true}` || out.BodyBytes != 11 || out.Truncated {
			w.Errorf("the answer: %+v", out)
		}
		if out.Headers["Content-Type"] != "application/json" || out.Headers["X-Part"] != "one, two" {
			w.Errorf("the headers: %v", out.Headers)
		}
	})
	for name, in := range map[string]builtin.RequestInput{
		"HEAD": {URL: "http://a.test/", Method: "HEAD"},
		"204":  {URL: "http://a.test/204"},
	} {
		webCase(t, name+" has no body", func(w *webFixture) {
			w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/204" {
					rw.WriteHeader(http.StatusNoContent)
					return
				}
				rw.Header().Set("Content-Length", "1000")
			})
			if out := w.run(in); out.Body != "" || out.BodyBytes != 0 || out.Truncated {
				w.Errorf("the answer: %+v", out)
			}
		})
	}
	webCase(t, "over TLS", func(w *webFixture) {
		w.serveTLS("example.com", saying("safe"))
		if out := w.run(builtin.RequestInput{URL: "https://example.com/"}); out.Body != "safe" {
			w.Errorf("the answer: %+v", out)
		}
	})
}

func TestRequestExpect(t *testing.T) {
	t.Parallel()
	webCase(t, "takes a listed status, with its body", func(w *webFixture) {
		w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(http.StatusNotFound)
			_, _ = rw.Write([]byte("gone"))
		})
		out := w.run(builtin.RequestInput{URL: "http://a.test/", Expect: []int{200, 404}})
		if out.Status != 404 || out.Body != "gone" {
			w.Errorf("the answer: %+v", out)
		}
	})
	webCase(t, "refuses what is not listed, 200 among them", func(w *webFixture) {
		w.serve("a.test", saying("done already"))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/", Expect: []int{201}}, "GET http://a.test/: 200 OK: done already")
	})
	webCase(t, "takes a status that would be retried", func(w *webFixture) {
		v := &visits{answer: status(503)}
		w.serve("a.test", v.serve)
		if out := w.run(builtin.RequestInput{URL: "http://a.test/", Expect: []int{503}}); out.Status != 503 || len(v.all()) != 1 {
			w.Errorf("the answer: %+v after %d requests", out, len(v.all()))
		}
	})
}

func TestRequestIdempotencyKey(t *testing.T) {
	t.Parallel()
	webCase(t, "is the task's in every attempt", func(w *webFixture) {
		v := &visits{}
		v.answer = func(rw http.ResponseWriter, r *http.Request) {
			if len(v.all()) < 3 {
				rw.WriteHeader(http.StatusServiceUnavailable)
			}
		}
		w.serve("a.test", v.serve)
		e, stop := w.engine()
		h, err := builtin.Request.Enqueue(w.Context(), e, builtin.RequestInput{URL: "http://a.test/", Method: "PUT"})
		if err != nil {
			w.Fatal(err)
		}
		if _, err := h.Wait(w.Context()); err != nil {
			w.Fatal(err)
		}
		stop()
		w.run(builtin.RequestInput{URL: "http://a.test/", Method: "PATCH"})
		keys := make(map[string]map[string]bool) // by method
		for _, got := range v.all() {
			if keys[got.method] == nil {
				keys[got.method] = make(map[string]bool)
			}
			keys[got.method][got.header.Get("Idempotency-Key")] = true
		}
		want := weaver.CurrentInfo{TaskID: h.ID()}.StepKey("request")
		if len(v.all()) != 4 || len(keys["PUT"]) != 1 || !keys["PUT"][want] {
			w.Errorf("%d requests with keys %v, want 4 and the key %s", len(v.all()), keys, want)
		}
		if len(keys["PATCH"]) != 1 || keys["PATCH"][want] || keys["PATCH"][""] {
			w.Errorf("another task has keys %v, the first has %s", keys["PATCH"], want)
		}
	})
}

func TestRequestHidesUserInfo(t *testing.T) {
	t.Parallel()
	hidden := func(w *webFixture, text string) {
		w.Helper()
		for _, secret := range []string{"hugo", "s3cret"} {
			if strings.Contains(text, secret) {
				w.Errorf("%q is in the text: %s", secret, text)
			}
		}
	}
	webCase(t, "in the output", func(w *webFixture) {
		w.serve("a.test", to(302, "http://hugo:s3cret@b.test/x"))
		w.serve("b.test", saying("ok"))
		out := w.run(builtin.RequestInput{URL: "http://hugo:s3cret@a.test/"})
		if out.URL != "http://b.test/x" {
			w.Errorf("the answer: %+v", out)
		}
	})
	webCase(t, "when a status is refused", func(w *webFixture) {
		w.serve("a.test", status(403))
		hidden(w, w.failure(1, builtin.RequestInput{URL: "http://hugo:s3cret@a.test/"}, "GET http://a.test/: 403 Forbidden").Message)
	})
	webCase(t, "when the network fails", func(w *webFixture) {
		hidden(w, w.failure(3, builtin.RequestInput{URL: "http://hugo:s3cret@none.test/"}, "GET http://none.test/: ", "no such host").Message)
		hidden(w, w.failure(3, builtin.RequestInput{URL: "http://hugo@none.test/"}).Message)
	})
	webCase(t, "when redirects do not end", func(w *webFixture) {
		w.serve("a.test", to(302, "/"))
		hidden(w, w.failure(1, builtin.RequestInput{URL: "http://hugo:s3cret@a.test/"}, "max_redirects").Message)
	})
}
