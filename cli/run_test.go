package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// fresh creates a migrated store with one ready task and makes it the default.
func fresh(t *testing.T) weaver.TaskID {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weaver.db")
	for name, value := range map[string]string{"WEAVER_STORE": "sqlite:" + path, "WEAVER_NAMESPACE": "", "WEAVER_DELIVERY": "", "WEAVER_BUCKET": "", "NO_COLOR": "", "TERM": "xterm"} {
		t.Setenv(name, value)
	}
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := weaver.Define[int, int]("acme.billing.charge.v1").Enqueue(t.Context(), client, 1)
	if err != nil {
		t.Fatal(err)
	}
	return h.ID()
}

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.App{}, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun(t *testing.T) {
	id := fresh(t)
	code, stdout, stderr := run(t, "task", "ls")
	if code != 0 || stderr != "" || !strings.Contains(stdout, id.String()) {
		t.Errorf("task ls: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr = run(t, "task", "show", "nonsense")
	if code != 2 || stdout != "" || !strings.HasPrefix(stderr, `weaver: no task "nonsense" in namespace "default"`) {
		t.Errorf("task show nonsense: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestRunReportsThatItCouldNotWrite(t *testing.T) {
	fresh(t)
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), cli.App{}, []string{"task", "ls"}, strings.NewReader(""), brokenPipe{}, &stderr)
	if code != 1 || stderr.String() != "weaver: write the result: broken pipe\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

func TestRunInterrupted(t *testing.T) {
	fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, cli.App{}, []string{"task", "ls"}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || stdout.Len() != 0 || !strings.Contains(stderr.String(), "It was interrupted.") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

// An unreadable file is not an empty store.
func TestRunUnreadableFolder(t *testing.T) {
	fresh(t)
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := run(t, "--store", "sqlite:"+filepath.Join(dir, "weaver.db"), "task", "ls")
	if code != 3 || !strings.Contains(stderr, "cannot be read") && !strings.Contains(stderr, "does not exist") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestColours(t *testing.T) {
	id := fresh(t)
	on := func(args ...string) bool {
		t.Helper()
		screen, err := cli.RunOnTerminal(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.Contains(screen, "\x1b[")
	}
	verbs := [][]string{{"task", "ls"}, {"task", "show", id.String()}, {"why", id.String()}, {"doctor"}}
	for _, args := range verbs {
		if !on(args...) {
			t.Errorf("%v: no colours on a terminal", args)
		}
		if on(append(args, "--no-color")...) {
			t.Errorf("%v --no-color: colours", args)
		}
		if on(append(args, "-o", "json")...) {
			t.Errorf("%v -o json: colours", args)
		}
		if _, stdout, _ := run(t, args...); strings.Contains(stdout, "\x1b") {
			t.Errorf("%v: colours where there is no terminal", args)
		}
	}
	t.Setenv("NO_COLOR", "yes")
	if on(verbs[0]...) {
		t.Error("colours in spite of NO_COLOR")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if on(verbs[0]...) {
		t.Error("colours on a dumb terminal")
	}
}

// Commands suggested in an answer refer to the same store.
func TestCommandsCarryTheirFlags(t *testing.T) {
	t.Chdir(t.TempDir()) // no default store is found here
	t.Setenv("WEAVER_STORE", "")
	t.Setenv("WEAVER_NAMESPACE", "")
	for _, tt := range []struct{ store, namespace, want string }{
		{"", "", "weaver why X"},
		{"sqlite:weaver.db", "default", "weaver why X"},
		{"sqlite:my store.db", "", "weaver --store 'sqlite:my store.db' why X"},
		{"", "acme-dev", "weaver --namespace acme-dev why X"},
	} {
		if got := cli.Command(tt.store, tt.namespace, "why", "X"); got != tt.want {
			t.Errorf("--store %q --namespace %q: got %s, want %s", tt.store, tt.namespace, got, tt.want)
		}
	}
	t.Setenv("WEAVER_STORE", "sqlite:other.db")
	if got := cli.Command("sqlite:other.db", "", "why"); got != "weaver why" {
		t.Errorf("the variable says it already: got %s", got)
	}
	if got := cli.Command("sqlite:weaver.db", "", "why"); got != "weaver --store sqlite:weaver.db why" {
		t.Errorf("the variable says something else: got %s", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{errors.New("boom"), 1, "weaver: boom\n"},
		{fmt.Errorf("x: %w", store.ErrState), 2, "weaver: x: not possible in this state\n  `weaver why ID`"},
		{fmt.Errorf("x: %w", store.ErrBadCursor), 2, "weaver: x: bad cursor\n  Pass the cursor"},
		{fmt.Errorf("x: %w", store.ErrNotMigrated), 3, "weaver: x: the store's schema is not migrated\n  Run `weaver migrate up`.\n"},
		{fmt.Errorf("x: %w (run `weaver migrate up`)", store.ErrNotMigrated), 3, "weaver: x: the store's schema is not migrated (run `weaver migrate up`)\n"},
		{fmt.Errorf("x: %w: By: \"\" is not UTF-8", weaver.ErrInvalidOption), 2, "weaver: x: invalid option: By: \"\" is not UTF-8\n"},
		{fmt.Errorf("x: %w", store.ErrNewerSchema), 3, "weaver: x: the store's schema is newer than this program\n  `weaver migrate status` shows the versions"},
		{fmt.Errorf("x: %w", store.ErrBusy), 3, "weaver: x: the store is locked by another writer\n  Another process"},
		{fmt.Errorf("x: %w", store.ErrUnavailable), 3, "weaver: x: the store is unavailable\n"},
		{fmt.Errorf("x: %w", store.ErrUnknown), 3, "weaver: x: the outcome of the write is unknown\n  The outcome is unknown"},
		{errors.Join(errors.New("one"), errors.New("two")), 1, "weaver: one\nweaver: two\n"},
		{errors.New("red \x1b[31m"), 1, "weaver: red �[31m\n"},
	} {
		var w strings.Builder
		if code := cli.Report(&w, tt.err); code != tt.code || !strings.HasPrefix(w.String(), tt.text) || strings.HasSuffix(tt.text, "\n") && w.String() != tt.text {
			t.Errorf("%v: exit code %d and\n%s\nwant %d and\n%s", tt.err, code, w.String(), tt.code, tt.text)
		}
	}
}
