package builtin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/weavertest"
)

func TestRequestMistakes(t *testing.T) {
	t.Parallel()
	e := weavertest.New(t, builtin.Handlers(builtin.Config{})...)
	headers := func(name, value string) builtin.RequestInput {
		return builtin.RequestInput{URL: "http://a.test/", Headers: map[string]string{name: value}}
	}
	for name, c := range map[string]struct {
		in   builtin.RequestInput
		says []string
	}{
		"no URL":              {builtin.RequestInput{}, []string{"url is missing", "https://example.com/path"}},
		"no scheme":           {builtin.RequestInput{URL: "a.test/x"}, []string{"neither http:// nor https://"}},
		"a host for a scheme": {builtin.RequestInput{URL: "a.test:80/x"}, []string{"neither http:// nor https://"}},
		"an address only":     {builtin.RequestInput{URL: "127.0.0.1:80/x"}, []string{"url cannot be read", "https://example.com/path"}},
		"another scheme":      {builtin.RequestInput{URL: "ftp://a.test/"}, []string{"neither http:// nor https://"}},
		"no host":             {builtin.RequestInput{URL: "http:///x"}, []string{"url names no host"}},
		"a port only":         {builtin.RequestInput{URL: "http://:80/x"}, []string{"url names no host"}},
		"an opaque URL":       {builtin.RequestInput{URL: "http:a.test"}, []string{"url names no host"}},
		"a large port":        {builtin.RequestInput{URL: "http://a.test:65536/"}, []string{"port 65536", "from 1 to 65535"}},
		"port 0":              {builtin.RequestInput{URL: "http://a.test:0/"}, []string{"port 0"}},
		"a port in words":     {builtin.RequestInput{URL: "http://a.test:web/"}, []string{"url cannot be read", `":web"`}},
		"a control character": {builtin.RequestInput{URL: "http://a.test/\n"}, []string{"url cannot be read", "control character"}},
		"a bad escape":        {builtin.RequestInput{URL: "http://a.test/%zz"}, []string{"url cannot be read", "%zz"}},
		"user info":           {builtin.RequestInput{URL: "http://hugo:s3c/ret@a.test/"}, []string{"url cannot be read", "%XX"}},
		"more user info":      {builtin.RequestInput{URL: "http://hugo:s3c ret@a.test/"}, []string{"url cannot be read", "%XX"}},
		"user info elsewhere": {builtin.RequestInput{URL: "ftp://hugo:s3cret@a.test/"}, []string{"neither http:// nor https://"}},
		"a method of two":     {builtin.RequestInput{URL: "http://a.test/", Method: "GET IT"}, []string{`"GET IT"`, "GET, POST or DELETE"}},
		"a method of lines":   {builtin.RequestInput{URL: "http://a.test/", Method: "GET\r\nX: y"}, []string{`"GET\r\nX: y"`}},
		"a tunnel":            {builtin.RequestInput{URL: "http://a.test/", Method: "connect"}, []string{"CONNECT opens a tunnel"}},
		"no header name":      {headers("", "x"), []string{`"" is not a header name`}},
		"a header with space": {headers("X Y", "x"), []string{`"X Y" is not a header name`, "X-Request-Id"}},
		"a header of lines":   {headers("X-Y", "x\r\nX-Z: z"), []string{"the value of X-Y has a line break"}},
		"a header with LF":    {headers("X-Y", "x\n"), []string{"the value of X-Y has a line break"}},
		"a header with DEL":   {headers("X-Y", "x\x7f"), []string{"the value of X-Y", "control character"}},
		"the same header":     {builtin.RequestInput{URL: "http://a.test/", Headers: map[string]string{"X-Y": "1", "x-y": "2"}}, []string{"X-Y and x-y are the same header"}},
		"a length":            {headers("content-length", "7"), []string{"content-length is set by the transport"}},
		"an encoding":         {headers("Transfer-Encoding", "chunked"), []string{"Transfer-Encoding is set by the transport"}},
		"no Host":             {headers("Host", ""), []string{`"" cannot be the Host`}},
		"a Host with a path":  {headers("host", "a.test/x"), []string{`"a.test/x" cannot be the Host`, "example.com:8080"}},
		"a Host with a user":  {headers("Host", "u@a.test"), []string{`"u@a.test" cannot be the Host`}},
		"two bodies":          {builtin.RequestInput{URL: "http://a.test/", JSON: json.RawMessage(`1`), Body: "1"}, []string{"json and body are both given"}},
		"no JSON":             {builtin.RequestInput{URL: "http://a.test/", JSON: json.RawMessage(`{id: 7}`)}, []string{"json: this is not JSON", "body"}},
		"no status":           {builtin.RequestInput{URL: "http://a.test/", Expect: []int{99, 200, 600}}, []string{"99 is not a status", "600 is not a status", "from 100 to 599"}},
		"a negative timeout":  {builtin.RequestInput{URL: "http://a.test/", Timeout: -1}, []string{"timeout: -1ns is negative", `"30s"`}},
		"negative redirects":  {builtin.RequestInput{URL: "http://a.test/", MaxRedirects: new(-1)}, []string{"max_redirects: -1 is negative", "10"}},
		"everything at once": {
			builtin.RequestInput{Method: "\x01", Headers: map[string]string{"": "", "\n": ""}, JSON: json.RawMessage(`1`), Body: "1", Expect: []int{0}, Timeout: -1, MaxRedirects: new(-1)},
			[]string{"url", "method", `"" is no`, `"\n" is no`, "json and body", "expect", "timeout", "max_redirects"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := builtin.Request.Enqueue(t.Context(), e, c.in)
			if !errors.Is(err, weaver.ErrInvalidInput) {
				t.Fatalf("Enqueue: %v, want weaver.ErrInvalidInput", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q:\n%s", part, err)
				}
			}
			for _, secret := range []string{"hugo", "s3c"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells %q:\n%s", secret, err)
				}
			}
		})
	}
}

func TestRequestNoMistake(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]builtin.RequestInput{
		"a scheme in capitals": {URL: "HTTPS://A.test"},
		"an IPv6 address":      {URL: "http://[::1]:8080/x"},
		"user info":            {URL: "https://hugo:s3c%2Fret@a.test/"},
		"an odd method":        {URL: "http://a.test", Method: "M-SEARCH"},
		"an odd header":        {URL: "http://a.test", Headers: map[string]string{"x_y!": "", "X-Z": "\tä "}},
		"a Host with a port":   {URL: "http://a.test", Headers: map[string]string{"Host": "[::1]:80"}},
		"all statuses":         {URL: "http://a.test", Expect: []int{100, 599}},
		"no redirects":         {URL: "http://a.test", MaxRedirects: new(0)},
	} {
		if err := in.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A task enqueued by name is validated when its input is decoded.
func TestRequestMistakesOfADraft(t *testing.T) {
	t.Parallel()
	webCase(t, "block at once", func(w *webFixture) {
		got, err := w.env.EnqueueTasks(w.Context(), weaver.NewDraft(builtin.Request.Name(), json.RawMessage(`{"url":"ftp://a.test/","expect":[7]}`)))
		if err != nil {
			w.Fatal(err)
		}
		w.serve("b.test", status(200))
		w.run(builtin.RequestInput{URL: "http://b.test/"})
		info, err := w.env.Get(w.Context(), got[0].ID)
		if err != nil || info.State != weaver.StateBlocked || !strings.Contains(info.Error.Message, "neither http:// nor https://") || !strings.Contains(info.Error.Message, "7 is not a status") {
			w.Errorf("the task is %s: %+v, %v", info.State, info.Error, err)
		}
	})
}
