package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// A type unknown to this program may be submitted while a worker of the same namespace handles it.
func TestSubmitTypesThatAWorkerAnnounced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, file := filepath.Join(dir, "weaver.db"), filepath.Join(dir, "p.yaml")
	if err := os.WriteFile(file, []byte("name: p\ntasks: {a: {type: acme.far.away.v1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path)
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	submit := func(what string, args ...string) (code int, stderr string) {
		var errs bytes.Buffer
		code = cli.Run(t.Context(), cli.App{}, append([]string{"--store", "sqlite:" + path, "submit", what}, args...), strings.NewReader(""), new(bytes.Buffer), &errs)
		return code, errs.String()
	}
	for _, what := range []string{"acme.far.away.v1", file} {
		if code, stderr := submit(what); code != 2 || !strings.Contains(stderr, "which neither this program knows nor a worker of the store") {
			t.Errorf("%s before a worker announced it: exit code %d, %s", what, code, stderr)
		}
	}
	worker := store.WorkerInfo{ID: "far", Name: "far:1", TTL: time.Minute, Types: []string{"acme.far.away.v1", "acme.far.other.v1"}}
	if err := db.Join(t.Context(), weaver.DefaultNamespace, worker); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"acme.far.away.v1", file} {
		if code, stderr := submit(what); code != 0 {
			t.Errorf("%s with a worker that announced it: exit code %d, %s", what, code, stderr)
		}
	}
	if code, stderr := submit("acme.far.othre.v1"); code != 2 || !strings.Contains(stderr, "did you mean acme.far.other.v1?") {
		t.Errorf("a typo: exit code %d, %s", code, stderr)
	}
	if code, stderr := submit("acme.far.away.v1", "--namespace", "other"); code != 2 {
		t.Errorf("in another namespace: exit code %d, %s", code, stderr)
	}
}

// The type descriptions announced by a worker validate the inputs from programs without these types, and set the
// options of their tasks.
func TestSubmitByTheSchemaThatAWorkerAnnounced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weaver.db")
	type order struct {
		ID int64 `json:"id"`
	}
	app := cli.App{Handlers: []weaver.Handler{
		weaver.Define[order, weaver.None]("acme.far.pack.v1", weaver.Queue("packing"), weaver.MaxAttempts(9), weaver.SchemaVersion(2)).
			Handler(func(context.Context, order) (weaver.None, error) { return weaver.None{}, nil }),
	}}
	exec := func(app cli.App, args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = cli.Run(t.Context(), app, append([]string{"--store", "sqlite:" + path}, args...), strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	if code, _, stderr := exec(app, "worker", "--until-idle"); code != 0 {
		t.Fatalf("worker: exit code %d, %s", code, stderr)
	}
	submit := func(args ...string) (code int, stdout, stderr string) {
		return exec(cli.App{}, append([]string{"submit", "acme.far.pack.v1"}, args...)...)
	}
	for input, want := range map[string]string{
		`{"id":"seven"}`: "the input does not fit the type acme.far.pack.v1 that its workers announced: /id: it is a string, want an integer",
		`{"di":7}`:       `/di: the field is not known; there are "id"`,
	} {
		if code, _, stderr := submit(input); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("submit %s: exit code %d, %s, want %q", input, code, stderr, want)
		}
	}
	if code, _, stderr := submit(`{"di":7}`, "--force-unknown-type", "--queue", "forced"); code != 0 {
		t.Errorf("submit unchecked: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := submit(`{"id":9007199254740993}`, "--priority", "2"); code != 0 {
		t.Errorf("submit: exit code %d, %s", code, stderr)
	}
	code, list, stderr := exec(cli.App{}, "task", "ls", "--queue", "packing", "-o", "json")
	for _, want := range []string{`"max_attempts": 9`, `"schema_version": 2`, `"priority": 2`} {
		if code != 0 || !strings.Contains(list, want) {
			t.Errorf("task ls: exit code %d, %s%s, want %s", code, list, stderr, want)
		}
	}
	if code, _, stderr := exec(cli.App{}, "submit", "acme.far.pakc.v1"); code != 2 || !strings.Contains(stderr, "did you mean acme.far.pack.v1?") {
		t.Errorf("a typo: exit code %d, %s", code, stderr)
	}
}
