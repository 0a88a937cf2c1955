//go:build unix && !aix

package builtin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
)

// kept is an in-memory log.
type kept struct {
	bytes.Buffer
	info   weaver.CurrentInfo
	closed int
	err    error
}

func (k *kept) Write(p []byte) (int, error) {
	_, _ = k.Buffer.Write(p)
	return len(p), k.err
}

func (k *kept) Close() error { k.closed++; return k.err }

// A log has every byte of a command's output, in the order of both streams, and is
// closed at the end of the attempt.
func TestRunLogs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shell string
		err   error
		logs  string // "none": not requested
	}{
		"bytes":         {`printf 'a\000\377\033[31mred\r\n'; printf 'half \342'`, nil, "a\x00\xff\x1b[31mred\r\nhalf \xe2"},
		"both streams":  {"echo out; sleep 0.1; echo err >&2; sleep 0.1; echo out", nil, "out\nerr\nout\n"},
		"much":          {"seq 1 200000; exit 1", nil, seq(1, 200000) + "\n"},
		"nothing":       {"true", nil, "none"},
		"a full folder": {"echo x; sleep 0.1; echo y", errors.New("full"), "x\ny\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs []*kept
			h := builtin.RunWith(builtin.Config{Logs: func(info weaver.CurrentInfo) io.WriteCloser {
				logs = append(logs, &kept{info: info, err: c.err})
				return logs[len(logs)-1]
			}})
			_, err := h(context.Background(), builtin.RunInput{Shell: c.shell})
			if failed := strings.Contains(c.shell, "exit 1"); failed != (err != nil) {
				t.Errorf("it returned %v", err)
			}
			if c.logs == "none" {
				if len(logs) > 0 {
					t.Error("a log was asked for")
				}
				return
			}
			if len(logs) != 1 || logs[0].closed != 1 {
				t.Fatalf("%d logs: %+v", len(logs), logs)
			}
			if got := logs[0].String(); got != c.logs {
				t.Errorf("the log has %d bytes, want %d: %.80q", len(got), len(c.logs), got)
			}
		})
	}
}

// Without a writer from Logs there is no log, and Logs is called once.
func TestRunLogsOfNobody(t *testing.T) {
	t.Parallel()
	asked := 0
	h := builtin.RunWith(builtin.Config{Logs: func(weaver.CurrentInfo) io.WriteCloser { asked++; return nil }})
	out, err := h(context.Background(), builtin.RunInput{Shell: "echo a; sleep 0.1; echo b"})
	if err != nil || out.Stdout != "a\nb\n" || asked != 1 {
		t.Errorf("%+v, %v, asked %d times", out, err, asked)
	}
}
