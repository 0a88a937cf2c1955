package capsule_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A capsule of a task has everything that readers of the store see, and reads as it does there.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	onStores(t, func(p *place) {
		h, err := pay.Enqueue(p.Context(), p, payment{Card: card, Amount: 7, Note: "hello"}, weaver.Label("shop", "north"), weaver.IdempotencyKey("order-7"))
		p.no(err)
		p.work()
		info, err := p.Get(p.Context(), h.ID())
		p.no(err)
		if info.State != task.Succeeded {
			p.Fatalf("the task is %s: %+v", info.State, info.Error)
		}

		path, made := p.export(h.ID(), capsule.Options{Weaver: "v1"})
		db, c, mark := opened(p.T, path)
		got, err := capsule.Read(p.Context(), c, mark)
		p.no(err)
		stripped(made)
		stripped(got)
		if d := differ(lines(p.T, made), lines(p.T, got)); d != "" {
			p.Errorf("the capsule differs from what was exported: %s", d)
		}
		if len(made.Tasks) != 2 || len(made.Tasks[0].Attempts) < 2 || len(made.Tasks[0].Steps) != 4 {
			p.Errorf("exported: %d tasks, %d attempts, %d steps", len(made.Tasks), len(made.Tasks[0].Attempts), len(made.Tasks[0].Steps))
		}
		if p.store.Capabilities().Has(store.CanKeepEvents) && len(got.Tasks[0].Events) == 0 {
			p.Error("no event or log line was exported")
		}

		// Artifacts: one is in it, one holds a masked value.
		list, err := c.Artifacts(p.Context(), h.ID())
		p.no(err)
		if len(list) != 2 {
			p.Fatalf("artifacts: %+v", list)
		}
		for _, a := range list {
			r, err := c.OpenArtifact(p.Context(), a.Ref())
			if a.Name == "secret.txt" {
				if err == nil {
					p.Error("secret.txt is in the capsule")
				}
				continue
			}
			p.no(err)
			data, err := io.ReadAll(r)
			p.no(errors.Join(err, r.Close()))
			if string(data) != "a slip" {
				p.Errorf("slip.txt holds %q", data)
			}
		}
		said := ""
		for i := range mark.LeftOut {
			said += mark.LeftOut[i].String() + "\n"
		}
		if !strings.Contains(said, `the artifact "secret.txt"`) || !strings.Contains(said, "it holds a masked value") {
			p.Errorf("left out: %s", said)
		}

		whole(p.T, db)
		noSecret(p.T, path)
	})
}

// stripped removes what belongs to one store: the other side of edges, numbers of the audit.
func stripped(c *capsule.Content) {
	c.Blobs = nil
	for i := range c.Tasks {
		t := &c.Tasks[i]
		t.Dependents, t.Limits = nil, nil
	}
	for i := range c.Types {
		c.Types[i].AnnouncedBy = ""
	}
}

// whole checks the file and the rows that one task shows.
func whole(t *testing.T, db capsule.DB) {
	t.Helper()
	var said string
	if err := db.DB().QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity_check: %q, %v", said, err)
	}
	snap, err := db.Snapshot(t.Context(), capsule.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Errorf("violation: %s", v)
	}
}

// noSecret looks for the masked values in the bytes of a file.
func noSecret(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{card, pin} {
		if contains(data, secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	if !contains(data, "[redacted]") {
		t.Error("nothing is masked: the test shows nothing")
	}
}

func TestWriteReplacesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.capsule")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &capsule.Content{}
	if _, err := capsule.Write(t.Context(), openFile, path, false, c); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Write over a file: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file holds %q", data)
	}
	if _, err := capsule.Write(t.Context(), openFile, path, true, c); err != nil {
		t.Errorf("Write with replace: %v", err)
	}
	if list, _ := fs.Glob(os.DirFS(dir), "*"); len(list) != 1 {
		t.Errorf("the folder holds %v", list)
	}
}
