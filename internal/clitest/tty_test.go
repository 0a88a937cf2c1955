package clitest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// tty runs a program on a terminal of a given size and checks its exit code. It writes the final screen to the file
// screen, and all terminal output to the file raw:
//
//	tty 40 24 0 weaver run hello.yaml
func tty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: tty COLUMNS ROWS EXITCODE PROGRAM ARGS…")
	}
	columns, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	rows, err := strconv.ParseUint(args[1], 10, 16)
	ts.Check(err)
	want, err := strconv.Atoi(args[2])
	ts.Check(err)

	cmd := command(ts, args[3], args[4:]...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
	ts.Check(err)
	var raw bytes.Buffer
	if _, err := io.Copy(&raw, screen); err != nil && !errors.Is(err, syscall.EIO) {
		ts.Fatalf("read the terminal: %v", err)
	}
	ts.Check(screen.Close())
	code := exitCode(ts, cmd.Wait())
	shown := newScreen()
	shown.write(raw.String())
	ts.Check(os.WriteFile(ts.MkAbs("raw"), raw.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(shown.text()), 0o600))
	if code != want {
		ts.Fatalf("the exit code is %d, want %d; the screen shows\n%s", code, want, shown.text())
	}
	if shown.widest > int(columns) {
		ts.Fatalf("a line has %d columns, the terminal %d:\n%s", shown.widest, columns, shown.text())
	}
}

// command returns a program of the session with its folder and environment.
func command(ts *testscript.TestScript, name string, args ...string) *exec.Cmd {
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		ts.Fatalf("no program %q in the session's PATH", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "USER", "GORACE", "GOCOVERDIR", "NO_COLOR", "WEAVER_STORE", "WEAVER_NAMESPACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

// exitCode returns the exit code of a program; any other error fails the session.
func exitCode(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	ts.Fatalf("%v", err)
	return 0
}

// screen implements the part of a terminal that the tests need: lines, and a cursor that moves up and clears them.
type screen struct {
	lines  [][]rune
	row    int
	col    int
	cuts   bool // it does not wrap long lines
	widest int  // the widest line written so far
}

func newScreen() *screen { return &screen{lines: make([][]rune, 1)} }

func (s *screen) write(text string) {
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\n':
			s.row++
			if s.row == len(s.lines) {
				s.lines = append(s.lines, nil)
			}
		case '\r':
			s.col = 0
		case '\x1b':
			i = s.escape(runes, i)
		default:
			line := s.lines[s.row]
			for len(line) <= s.col {
				line = append(line, ' ')
			}
			line[s.col] = r
			s.lines[s.row] = line
			s.col++
			if s.cuts {
				s.widest = max(s.widest, s.col)
			}
		}
	}
}

// escape handles one control sequence and returns the position of its last rune.
func (s *screen) escape(runes []rune, i int) int {
	if i+1 >= len(runes) || runes[i+1] != '[' {
		return i
	}
	end := i + 2
	for end < len(runes) && (runes[end] < '@' || runes[end] > '~') {
		end++
	}
	if end == len(runes) {
		return end - 1
	}
	switch string(runes[i+2 : end+1]) {
	case "?7l":
		s.cuts = true
	case "?7h":
		s.cuts = false
	}
	n, err := strconv.Atoi(string(runes[i+2 : end]))
	if err != nil {
		n = 1
	}
	switch runes[end] {
	case 'A':
		s.row = max(0, s.row-n)
	case 'J':
		s.lines = append(s.lines[:s.row], nil)
	case 'K':
		s.lines[s.row] = nil
	}
	return end
}

// text returns the text on the screen.
func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
