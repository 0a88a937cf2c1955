// Package firefox drives Firefox in tests.
package firefox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/group"
)

const install = "install it with: sudo apt-get install -y --no-install-recommends firefox-esr (or: scripts/services.sh firefox)"

// limit is the maximum wait for an answer on a loaded machine.
const limit = 10 * time.Minute

// Browser is a Firefox with one tab. It speaks the protocol Marionette: arrays in JSON, each with its length before it.
type Browser struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
	id   int
}

// Start starts a browser with an empty profile, in which some preferences are true. It ends with the test.
func Start(t *testing.T, preferences ...string) *Browser {
	t.Helper()
	program, err := exec.LookPath("firefox-esr")
	if err != nil {
		program, err = exec.LookPath("firefox")
	}
	if err != nil {
		t.Fatalf("there is no Firefox: %s", install)
	}
	profile := t.TempDir()
	js := `user_pref("marionette.port", 0);`
	for _, name := range preferences {
		js += fmt.Sprintf("\nuser_pref(%q, true);", name)
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(js), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--marionette", "--profile", profile)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	b := &Browser{T: t}
	b.connect(port(t, cmd))
	b.message(nil) // the greeting
	b.Command("WebDriver:NewSession", map[string]any{}, nil)
	b.Command("WebDriver:SetTimeouts", map[string]any{"script": limit.Milliseconds(), "pageLoad": limit.Milliseconds()}, nil)
	return b
}

// port starts a browser and returns the port that it names in its output.
func port(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	rest := group.New(context.Background())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // however it ended
		if err := errors.Join(rest.Wait(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	var seen strings.Builder
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s did not start: %v\n%s", cmd.Path, err, seen.String())
		}
		seen.WriteString(line)
		if _, port, ok := strings.Cut(line, "Listening on port "); ok {
			rest.Go("read the output of Firefox", func(context.Context) error {
				_, err := io.Copy(io.Discard, in)
				return err
			})
			return strings.TrimSpace(port)
		}
	}
}

func (b *Browser) connect(port string) {
	b.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		b.Fatal(err)
	}
	b.conn, b.in = conn, bufio.NewReader(conn)
	b.Cleanup(func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
	})
}

// message reads a message.
func (b *Browser) message(to any) {
	b.Helper()
	size, err := b.in.ReadString(':')
	n, err2 := strconv.Atoi(strings.TrimSuffix(size, ":"))
	if err != nil || err2 != nil {
		b.Fatalf("read from Firefox: %q %v", size, err)
	}
	raw := make([]byte, n)
	if _, err = io.ReadFull(b.in, raw); err == nil && to != nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		b.Fatalf("read from Firefox: %v", err)
	}
}

// Command does a command of WebDriver, and reads its value.
func (b *Browser) Command(name string, params map[string]any, value any) {
	b.Helper()
	b.id++
	raw, err := json.Marshal([]any{0, b.id, name, params})
	if err == nil {
		_, err = fmt.Fprintf(b.conn, "%d:%s", len(raw), raw)
	}
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	var answer [4]json.RawMessage // 1, id, error, result
	b.message(&answer)
	if string(answer[2]) != "null" {
		b.Fatalf("%s: %s", name, answer[2])
	}
	if value != nil {
		if err := json.Unmarshal(answer[3], &struct{ Value any }{value}); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
	}
}

// Open loads a page.
func (b *Browser) Open(url string) {
	b.Helper()
	b.Command("WebDriver:Navigate", map[string]any{"url": url}, nil)
}

// Eval reads the value of an expression in the page, or of its promise.
func (b *Browser) Eval(expression string, value any) {
	b.Helper()
	var got struct {
		Value json.RawMessage
		Error string
	}
	b.Command("WebDriver:ExecuteAsyncScript", map[string]any{"args": []any{}, "script": `const done = arguments[0];
		(async () => (` + expression + `))().then((value) => done({ value }), (err) => done({ error: String(err) }))`}, &got)
	if got.Error == "" && value != nil {
		if err := json.Unmarshal(got.Value, value); err != nil {
			got.Error = err.Error()
		}
	}
	if got.Error != "" {
		b.Fatalf("%s: %s", expression, got.Error)
	}
}
