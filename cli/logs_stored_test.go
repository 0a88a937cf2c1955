package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
)

// The log lines that the engine stored for a task are shown as its logs.
func TestLogsOfATaskThatIsNoCommand(t *testing.T) {
	t.Parallel()
	asks := weaver.Define[weaver.None, string]("test.logs.asks.v1")
	app := cli.App{
		Plugins: []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()},
		Handlers: []weaver.Handler{asks.Handler(func(ctx context.Context, _ weaver.None) (string, error) {
			weaver.Log(ctx).Info("ask", "model", "m\x1b[31m")
			return weaver.Stream(ctx, "tokens", func(_ context.Context, emit func(any) error) (string, error) { return "", emit("forty") })
		})},
	}
	store := "sqlite:" + filepath.Join(t.TempDir(), "weaver.db")
	run := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := cli.Run(t.Context(), app, append([]string{"--store", store}, args...), strings.NewReader(""), &stdout, &stderr); code != want {
			t.Fatalf("%q: exit code %d, want %d: %s", args, code, want, stderr.String())
		}
		return stdout.String() + stderr.String()
	}
	id := regexp.MustCompile("01[0-9A-Z]{24}").FindString(run(0, "submit", asks.Name(), "{}"))
	if said := run(2, "logs", id); !strings.Contains(said, "weaver.PersistLogs") {
		t.Errorf("a task without lines: %s", said)
	}
	run(0, "worker", "--until-idle", "-o", "json")
	const stamp = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} `
	want := regexp.MustCompile("^" + stamp + "INFO ask model=m[^\x1b\n]*\n" + stamp + `tokens\| forty\n$`)
	for _, args := range [][]string{{"logs", id}, {"logs", "-f", id}, {"logs", "--attempt", "1", id}} {
		if got := run(0, args...); !want.MatchString(got) {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := run(0, "logs", "-o", "json", id); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"event":"stream.chunk"`) || !strings.Contains(got, `"model":"m`) {
		t.Errorf("as JSON: %s", got)
	}
	run(2, "logs", "--attempt", "2", id)
}
