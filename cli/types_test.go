package cli_test

import (
	"bytes"
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

// A type that this program does not know may be submitted while a worker of the
// same namespace handles it.
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
