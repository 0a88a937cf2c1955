package httpapi_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/httpapi"
)

// A small heap is collected constantly, which takes a quarter of the tests' time.
func init() { debug.SetGCPercent(400) }

// TestMain fails if all tests ran and an operation of the document succeeded in no test.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && allTests() {
		if missing := exercised.Missing(); len(missing) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: no test has these operations succeed: %s\n", strings.Join(missing, ", "))
			code = 1
		}
	}
	os.Exit(code)
}

// allTests reports whether the flags select all tests.
func allTests() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// lockedBuffer is a bytes.Buffer that is safe for concurrent use.
type lockedBuffer struct {
	mu  sync.Mutex
	all strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func tokensOf(t *testing.T, lines ...string) *httpapi.Tokens {
	t.Helper()
	tokens, err := httpapi.ReadTokens(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// raw sends a request unchanged, and returns the head of the response.
func (s *server) raw(request string) *http.Response {
	s.Helper()
	u, err := url.Parse(s.url)
	s.no(err)
	conn, err := net.Dial("tcp", u.Host)
	s.no(err)
	defer func() { _ = conn.Close() }()
	s.no(conn.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = io.WriteString(conn, request)
	s.no(err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	s.no(err)
	_, _ = io.Copy(io.Discard, res.Body)
	s.no(res.Body.Close())
	return res
}

// resolve follows a relative link.
func resolve(t *testing.T, from, link string) string {
	t.Helper()
	base, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	to, err := base.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return to.String()
}
