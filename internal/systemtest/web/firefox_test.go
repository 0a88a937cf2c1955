package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// firefox drives Firefox by its protocol Marionette: arrays in JSON, each with its length before it.
type firefox struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
	id   int
}

// startFirefox starts a browser with an empty profile. It ends with the test.
func startFirefox(t *testing.T) *firefox {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "user.js"), []byte(`user_pref("marionette.port", 0);`), 0o600); err != nil {
		t.Fatal(err)
	}
	program := "firefox-esr"
	if _, err := exec.LookPath(program); err != nil {
		program = "firefox"
	}
	cmd := exec.Command(program, "--headless", "--marionette", "--profile", dir)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	line := await(t, linesOf(t, cmd), "Listening on port ")
	_, port, _ := strings.Cut(line, "Listening on port ")
	conn, err := net.Dial("tcp", "127.0.0.1:"+strings.TrimSpace(port))
	if err != nil {
		t.Fatal(err)
	}
	f := &firefox{T: t, conn: conn, in: bufio.NewReader(conn)}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	f.message(nil) // the greeting
	f.command("WebDriver:NewSession", map[string]any{}, nil)
	f.command("WebDriver:SetTimeouts", map[string]any{"script": 120_000, "pageLoad": 120_000}, nil)
	return f
}

// message reads a message.
func (f *firefox) message(to any) {
	f.Helper()
	size, err := f.in.ReadString(':')
	n, err2 := strconv.Atoi(strings.TrimSuffix(size, ":"))
	if err != nil || err2 != nil {
		f.Fatalf("read from Firefox: %q %v", size, err)
	}
	raw := make([]byte, n)
	if _, err = io.ReadFull(f.in, raw); err == nil && to != nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		f.Fatalf("read from Firefox: %v", err)
	}
}

// command does a command, and reads its value.
func (f *firefox) command(name string, params map[string]any, value any) {
	f.Helper()
	f.id++
	raw, err := json.Marshal([]any{0, f.id, name, params})
	if err == nil {
		_, err = fmt.Fprintf(f.conn, "%d:%s", len(raw), raw)
	}
	if err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	var answer [4]json.RawMessage // 1, id, error, result
	f.message(&answer)
	if string(answer[2]) != "null" {
		f.Fatalf("%s: %s", name, answer[2])
	}
	if value != nil {
		if err := json.Unmarshal(answer[3], &struct{ Value any }{value}); err != nil {
			f.Fatalf("%s: %v", name, err)
		}
	}
}

// examine loads pages, and reports those that show a problem or nothing, or are too wide.
func (f *firefox) examine(root string, pages []string) {
	f.Helper()
	for _, page := range pages {
		f.command("WebDriver:Navigate", map[string]any{"url": root + page}, nil)
		var never string
		f.command("WebDriver:ExecuteAsyncScript", map[string]any{"args": []any{}, "script": "const done = arguments[0]; " + waiting(shown) + ".then(done)"}, &never)
		if never != "" {
			f.Errorf("Firefox: /%s: %s", page, never)
			continue
		}
		var defect string
		f.command("WebDriver:ExecuteScript", map[string]any{"args": []any{}, "script": `
			const problem = document.querySelector(".problem, .banner");
			if (problem) return "it shows a problem: " + problem.innerText;
			if (document.querySelector("main").innerText.length < 40) return "it is empty: " + document.querySelector("main").innerText;
			const wide = document.documentElement.scrollWidth;
			return wide > innerWidth ? "it is " + wide + " px wide" : "";`}, &defect)
		if defect != "" && !strings.Contains(page, "stat:failed") {
			f.Errorf("Firefox: /%s: %s", page, defect)
		}
	}
}
