package builtin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/goweaver/weaver/builtin"
)

// chain answers /n with a redirect to /n−1, and /0 with "end".
func chain(w http.ResponseWriter, r *http.Request) {
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n == 0 {
		saying("end")(w, r)
		return
	}
	to(http.StatusFound, fmt.Sprintf("/%d", n-1))(w, r)
}

func TestRequestRedirectLimit(t *testing.T) {
	t.Parallel()
	webCase(t, "is 10 by default", func(w *webFixture) {
		w.serve("a.test", chain)
		if out := w.run(builtin.RequestInput{URL: "http://a.test/10"}); out.Body != "end" || out.URL != "http://a.test/0" {
			w.Errorf("the answer: %+v", out)
		}
		w.fails(1, builtin.RequestInput{URL: "http://a.test/11"}, "GET http://a.test/11, redirected to GET http://a.test/0: ", "max_redirects allows 10")
	})
	webCase(t, "can be 1", func(w *webFixture) {
		w.serve("a.test", chain)
		if out := w.run(builtin.RequestInput{URL: "http://a.test/1", MaxRedirects: new(1)}); out.URL != "http://a.test/0" {
			w.Errorf("the answer: %+v", out)
		}
		w.fails(1, builtin.RequestInput{URL: "http://a.test/2", MaxRedirects: new(1)}, "redirected to GET http://a.test/0: ", "max_redirects allows 1")
	})
	webCase(t, "can be 0: the redirect is the answer", func(w *webFixture) {
		v := &visits{answer: chain}
		w.serve("a.test", v.serve)
		out := w.run(builtin.RequestInput{URL: "http://a.test/1", MaxRedirects: new(0), Expect: []int{302}})
		if out.Status != 302 || out.URL != "http://a.test/1" || out.Headers["Location"] != "/0" || len(v.all()) != 1 {
			w.Errorf("the answer: %+v after %d requests", out, len(v.all()))
		}
		w.fails(1, builtin.RequestInput{URL: "http://a.test/1", MaxRedirects: new(0)}, "GET http://a.test/1: 302 Found", "expect: [302]")
	})
	webCase(t, "a redirect without a place is a status", func(w *webFixture) {
		w.serve("a.test", status(http.StatusFound))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/"}, "302 Found")
	})
	webCase(t, "a place that is not of the web fails at once", func(w *webFixture) {
		w.serve("a.test", to(http.StatusFound, "file:///etc/passwd"))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/"}, "redirected to GET file:///etc/passwd", "no http or https URL")
	})
}

func TestRequestRedirectBody(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{302: "GET ", 303: "GET ", 307: "POST order", 308: "POST order"} {
		webCase(t, fmt.Sprint(code), func(w *webFixture) {
			v := &visits{}
			w.serve("a.test", to(code, "http://b.test/"))
			w.serve("b.test", v.serve)
			w.run(builtin.RequestInput{URL: "http://a.test/", Body: "order", MaxRedirects: new(1)})
			if got := v.last(w); got.method+" "+got.body != want {
				w.Errorf("b.test got %s %q, want %q", got.method, got.body, want)
			}
		})
	}
	webCase(t, "is not lost without a word", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", to(302, "http://b.test/"))
		w.serve("b.test", v.serve)
		w.fails(1, builtin.RequestInput{URL: "http://a.test/", Body: "order"}, "it turns POST into GET", "set max_redirects")
		if n := len(v.all()); n != 0 {
			w.Errorf("b.test was called %d times", n)
		}
	})
	webCase(t, "a failure behind a redirect names both", func(w *webFixture) {
		w.serve("a.test", to(303, "http://b.test/x"))
		w.serve("b.test", status(404))
		w.fails(1, builtin.RequestInput{URL: "http://a.test/", Body: "order", MaxRedirects: new(1)}, "POST http://a.test/, redirected to GET http://b.test/x: 404 Not Found")
	})
}

func TestRequestRedirectCredentials(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"Authorization": "Bearer s3cret", "Cookie": "session=s3cret", "X-Trace": "7"}
	check := func(w *webFixture, v *visits, kept bool) {
		w.Helper()
		got := v.last(w).header
		for _, name := range []string{"Authorization", "Cookie"} {
			if there := got.Get(name) != ""; there != kept {
				w.Errorf("%s was %q", name, got.Get(name))
			}
		}
		if got.Get("X-Trace") != "7" {
			w.Errorf("X-Trace was %q", got.Get("X-Trace"))
		}
		if got.Get("Referer") != "" {
			w.Errorf("Referer was %q", got.Get("Referer"))
		}
	}
	webCase(t, "stay on the host", func(w *webFixture) {
		v := &visits{answer: func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				to(302, "/x")(rw, r)
			}
		}}
		w.serve("a.test", v.serve)
		w.run(builtin.RequestInput{URL: "http://a.test/?token=s3cret", Headers: secrets})
		check(w, v, true)
	})
	webCase(t, "do not go to another host", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", to(307, "http://b.test/x"))
		w.serve("b.test", v.serve)
		w.run(builtin.RequestInput{URL: "http://a.test/?token=s3cret", Headers: secrets})
		check(w, v, false)
	})
	webCase(t, "nor those of the URL", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", to(307, "http://b.test/x"))
		w.serve("b.test", v.serve)
		w.run(builtin.RequestInput{URL: "http://hugo:s3cret@a.test/"})
		if got := v.last(w).header.Get("Authorization"); got != "" {
			w.Errorf("Authorization was %q", got)
		}
	})
	webCase(t, "nor from https to http", func(w *webFixture) {
		v := &visits{}
		w.serveTLS("example.com", to(307, "http://example.com/x"))
		w.serve("example.com", v.serve)
		w.run(builtin.RequestInput{URL: "https://example.com/", Headers: secrets})
		check(w, v, false)
	})
	webCase(t, "a Referer of the user's stays", func(w *webFixture) {
		v := &visits{}
		w.serve("a.test", to(307, "http://b.test/x"))
		w.serve("b.test", v.serve)
		w.run(builtin.RequestInput{URL: "http://a.test/", Headers: map[string]string{"Referer": "http://me.test/"}})
		if got := v.last(w).header.Get("Referer"); got != "http://me.test/" {
			w.Errorf("Referer was %q", got)
		}
	})
}
