package builtin_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
)

// size returns the size of the output as stored.
func size(t testing.TB, out builtin.RequestOutput) int {
	t.Helper()
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

func TestRequestOutputFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, kept string }{
		"letters":            {strings.Repeat("x", 1000), "xxxxx"},
		"control characters": {strings.Repeat("\x01\x1f", 1000), "\x01\x1f"},
		"NUL":                {strings.Repeat("\x00", 1000), "\uFFFD\uFFFD"},
		"quotes":             {strings.Repeat("\"\\\n", 1000), "\"\\\n\"\\\n"},
		"HTML":               {strings.Repeat("<a&b>", 1000), "<a&b>"},
		"line separators":    {strings.Repeat("\u2028\u2029", 1000), "\u2028\u2029"},
		"emoji":              {strings.Repeat("🙂", 1000), "🙂🙂"},
		"no UTF-8":           {strings.Repeat("\xff", 1000), "\uFFFD\uFFFD"},
		"half an emoji":      {strings.Repeat("\xf0\x9f", 1000), "\uFFFD\uFFFD"},
	} {
		for _, limit := range []int{300, 400, 0} {
			webCaseLimit(t, name, limit, func(w *webFixture) {
				body := c.body
				if limit == 0 {
					limit = weaver.DefaultInlineLimit
					body = strings.Repeat(c.body, limit/len(c.body)+1)
				}
				w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
					rw.Header()["Date"] = nil
					_, _ = io.WriteString(rw, body)
				})
				out := w.run(builtin.RequestInput{URL: "http://a.test/"})
				if n := size(w, out); n > limit || n < limit-60 {
					w.Errorf("the output has %d bytes, the limit is %d", n, limit)
				}
				if !out.Truncated || out.BodyBytes != int64(len(body)) {
					w.Errorf("truncated is %t, body_bytes %d of %d", out.Truncated, out.BodyBytes, len(body))
				}
				if !strings.HasPrefix(out.Body, c.kept) || !utf8.ValidString(out.Body) {
					w.Errorf("the body begins with %.40q, want %q", out.Body, c.kept)
				}
			})
		}
	}
	webCaseLimit(t, "whole when it fits", 300, func(w *webFixture) {
		w.serve("a.test", saying(strings.Repeat("x", 80)))
		if out := w.run(builtin.RequestInput{URL: "http://a.test/"}); out.Truncated || len(out.Body) != 80 {
			w.Errorf("the answer: %+v", out)
		}
	})
	webCaseLimit(t, "cut although the limit is larger than the body", 300, func(w *webFixture) {
		w.serve("a.test", saying(strings.Repeat("x", 290)))
		if out := w.run(builtin.RequestInput{URL: "http://a.test/"}); !out.Truncated || out.BodyBytes != 290 || len(out.Body) < 100 || size(w, out) > 300 {
			w.Errorf("the answer: %+v", out)
		}
	})
	webCaseLimit(t, "with many headers, those first that programs ask for", 1000, func(w *webFixture) {
		w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/x-own")
			rw.Header().Set("Etag", `"7"`)
			rw.Header().Set("A-Long-One", strings.Repeat("\u00e9<", 500))
			rw.Header().Set("A-Bad-One", "b\xff")
			for i := range 100 {
				rw.Header().Set("B-"+strings.Repeat("b", i), "<&>")
			}
			_, _ = io.WriteString(rw, strings.Repeat("x", 2000))
		})
		out := w.run(builtin.RequestInput{URL: "http://a.test/"})
		if n := size(w, out); n > 1000 || n < 900 {
			w.Errorf("the output has %d bytes", n)
		}
		if out.Headers["Content-Type"] != "text/x-own" || out.Headers["Etag"] != `"7"` || out.Headers["A-Bad-One"] != "b\uFFFD" {
			w.Errorf("the headers: %q", out.Headers)
		}
		if _, there := out.Headers["A-Long-One"]; there || len(out.Headers) < 4 || len(out.Body) < 500 {
			w.Errorf("%d headers, %d bytes of body: %q", len(out.Headers), len(out.Body), out.Headers)
		}
	})
	webCaseLimit(t, "with a URL that is too long", 300, func(w *webFixture) {
		w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				to(302, "/?"+strings.Repeat("&", 500))(rw, r)
			}
		})
		out := w.run(builtin.RequestInput{URL: "http://a.test/"})
		if !strings.HasPrefix(out.URL, "http://a.test/?&") || size(w, out) > 300 {
			w.Errorf("the answer: %+v", out)
		}
	})
}

func TestRequestReadsSoMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	const limit = 10 << 20
	block := bytes.Repeat([]byte("x"), 1<<20)
	for name, c := range map[string]struct {
		send, read int64
	}{
		"all of a body at the limit":    {limit, limit},
		"the beginning of a larger one": {limit + 1, limit},
		"and of one without an end":     {1 << 50, limit},
	} {
		webCase(t, name, func(w *webFixture) {
			w.serve("a.test", func(rw http.ResponseWriter, r *http.Request) {
				for left := c.send; left > 0; {
					n, err := rw.Write(block[:min(left, int64(len(block)))])
					if err != nil {
						return
					}
					left -= int64(n)
				}
			})
			out := w.run(builtin.RequestInput{URL: "http://a.test/"})
			if out.BodyBytes != c.read || !out.Truncated {
				w.Errorf("read %d bytes, truncated is %t", out.BodyBytes, out.Truncated)
			}
		})
	}
	// If everything fits, Truncated reports unread bytes.
	for last, c := range map[string]struct {
		kept      int
		truncated bool
	}{"x": {limit, false}, "xy": {limit, true}, "é": {limit - 1, true}} {
		webCaseLimit(t, "and says when there was more", 2*limit, func(w *webFixture) {
			w.serve("a.test", saying(strings.Repeat("x", limit-1)+last))
			out := w.run(builtin.RequestInput{URL: "http://a.test/"})
			if out.BodyBytes != limit || len(out.Body) != c.kept || out.Truncated != c.truncated || !strings.HasSuffix(out.Body, "x") {
				w.Errorf("read %d bytes, kept %d, truncated is %t", out.BodyBytes, len(out.Body), out.Truncated)
			}
		})
	}
}

// Dropped bytes cost no memory.
func TestRequestKeepsSoMuch(t *testing.T) {
	t.Parallel()
	kept, n, err := builtin.ReadBeginning(strings.NewReader(strings.Repeat("x", 1<<20)), 1000)
	if err != nil || kept != 1000 || n != 1<<20 {
		t.Errorf("kept %d bytes of %d, %v", kept, n, err)
	}
}

// Outside an engine the limit is unknown.
func TestRequestDefaultLimit(t *testing.T) {
	t.Parallel()
	srv, _ := realServer(t, saying(strings.Repeat("x", 1<<20)))
	out, err := builtin.RequestDirectly(t.Context(), builtin.RequestInput{URL: srv.URL})
	if n := size(t, out); err != nil || n > weaver.DefaultInlineLimit || n < weaver.DefaultInlineLimit-60 {
		t.Errorf("the output has %d bytes, %v", n, err)
	}
}

func TestRequestGzip(t *testing.T) {
	t.Parallel()
	zipped := func(body []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body) // into memory
		_ = z.Close()
		return b.Bytes()
	}
	sending := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				w.WriteHeader(http.StatusNotAcceptable)
				return
			}
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		}
	}
	webCase(t, "is read as what it holds", func(w *webFixture) {
		w.serve("a.test", sending(zipped([]byte("hello"))))
		out := w.run(builtin.RequestInput{URL: "http://a.test/"})
		if out.Body != "hello" || out.BodyBytes != 5 || out.Headers["Content-Encoding"] != "" {
			w.Errorf("the answer: %+v", out)
		}
	})
	webCase(t, "and only so far", func(w *webFixture) {
		bomb := zipped(make([]byte, 64<<20))
		if len(bomb) > 1<<20 {
			w.Fatalf("the bomb has %d bytes", len(bomb))
		}
		w.serve("a.test", sending(bomb))
		out := w.run(builtin.RequestInput{URL: "http://a.test/"})
		if out.BodyBytes != 10<<20 || !out.Truncated {
			w.Errorf("read %d bytes, truncated is %t", out.BodyBytes, out.Truncated)
		}
	})
}

func TestRequestRuneSize(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		raw, err := json.Marshal(string(r))
		if err != nil {
			t.Fatal(err)
		}
		if got := builtin.RuneSize(r); got != len(raw)-2 {
			t.Errorf("%U takes %d bytes, JSON takes %d: %s", r, got, len(raw)-2, raw)
		}
	}
}
