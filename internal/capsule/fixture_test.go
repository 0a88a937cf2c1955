package capsule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

const (
	card = "4929-1234-5678"
	pin  = "pin-987654"
)

type payment struct {
	Card   string `json:"card" weaver:"redact"`
	Amount int    `json:"amount"`
	Note   string `json:"note"`
}

type receipt struct {
	Pin   string `json:"pin" weaver:"redact"`
	Lines int    `json:"lines"`
}

var (
	pay    = weaver.Define[payment, receipt]("acme.shop.pay.v1", weaver.Backoff(time.Microsecond))
	notify = weaver.Define[string, string]("acme.shop.notify.v1")
	review = weaver.Define[string, string]("acme.shop.review.v1")
	ok     = weaver.DefineSignal[string]("ok")
)

// paid leaves a record of every kind. Its first attempt fails.
func paid(ctx context.Context, in payment) (out receipt, err error) {
	weaver.Log(ctx).Info("pays", "note", in.Note)
	if out, err = weaver.Step(ctx, "charge", func(context.Context) (receipt, error) { return receipt{Pin: pin, Lines: in.Amount}, nil }); err != nil {
		return out, err
	}
	if err := weaver.Checkpoint(ctx, "at", in.Amount); err != nil {
		return out, err
	}
	failed := false
	if _, ok, err := weaver.LoadCheckpoint[bool](ctx, "failed"); err == nil && !ok {
		failed = true
		if err := weaver.Checkpoint(ctx, "failed", true); err != nil {
			return out, err
		}
	}
	if failed {
		return out, weaver.WithCode("busy", errors.New("the bank is busy for "+in.Card))
	}
	if _, err := weaver.PutArtifact(ctx, "slip.txt", strings.NewReader("a slip")); err != nil {
		return out, err
	}
	if _, err := weaver.PutArtifact(ctx, "secret.txt", strings.NewReader("paid with "+in.Card)); err != nil {
		return out, err
	}
	if _, err := weaver.Call(ctx, "tell", notify, "paid with "+in.Card); err != nil {
		return out, err
	}
	return out, weaver.Progress(ctx, 1, 2, "done with "+in.Card)
}

func notified(_ context.Context, in string) (string, error) { return "told: " + in, nil }

func reviewed(ctx context.Context, in string) (string, error) {
	word, _, err := ok.Wait(ctx, "word", 0)
	return in + word, err
}

// place is a store with a client of it and the bucket.
type place struct {
	*testing.T
	store  store.Store
	bucket *blob.Memory
	*weaver.Client
}

func newPlace(t *testing.T, s store.Store) *place {
	t.Helper()
	p := &place{T: t, store: s, bucket: blob.NewMemory()}
	var err error
	p.Client, err = weaver.NewClient(s, weaver.ClientConfig{Namespace: "shop", Bucket: p.bucket})
	p.no(err)
	return p
}

func (p *place) no(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// work runs everything that is due.
func (p *place) work(more ...weaver.Handler) {
	p.Helper()
	plugins := []weaver.Plugin{weaver.PersistLogs(), weaver.PersistEvents()}
	if !p.store.Capabilities().Has(store.CanKeepEvents) {
		plugins = nil
	}
	e, err := weaver.New(p.store, weaver.Config{
		Namespace: "shop", Bucket: p.bucket, Logger: slog.New(slog.DiscardHandler), Plugins: plugins,
		Handlers: append([]weaver.Handler{pay.Handler(paid), notify.Handler(notified), review.Handler(reviewed)}, more...),
	})
	p.no(err)
	p.no(e.RunUntilIdle(p.Context()))
}

// export writes a capsule and returns its path.
func (p *place) export(id task.ID, opts capsule.Options) (path string, c *capsule.Content) {
	p.Helper()
	c, err := capsule.Collect(p.Context(), p.Client, id, opts)
	p.no(err)
	path = filepath.Join(p.TempDir(), "run.capsule")
	_, err = capsule.Write(p.Context(), openFile, path, false, c)
	p.no(err)
	return path, c
}

func openFile(ctx context.Context, path string) (capsule.DB, error) {
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// opened opens a capsule with a client.
func opened(t *testing.T, path string) (*sqlite.DB, *weaver.Client, capsule.Info) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	info, err := capsule.ParseInfo(db.Capsule())
	if err != nil {
		t.Fatal(err)
	}
	c, err := weaver.NewClient(db, weaver.ClientConfig{Bucket: capsule.Bucket(db)})
	if err != nil {
		t.Fatal(err)
	}
	return db, c, info
}

// onStores runs a test on every kind of store.
func onStores(t *testing.T, test func(p *place)) {
	t.Helper()
	t.Run("memstore", func(t *testing.T) {
		t.Parallel()
		test(newPlace(t, memstore.New()))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, err := sqlite.OpenMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(newPlace(t, db))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		ctx := pgharness.With(context.Background(), pgharness.Settings{FsyncOff: true})
		url := pgtest.Migrated(t, "capsule", func(url string) error {
			db, err := postgres.Open(ctx, url)
			if err != nil {
				return err
			}
			return errors.Join(db.Migrate(ctx), db.Close())
		})
		db, err := postgres.Open(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(newPlace(t, db))
	})
}

// lines returns the content as JSON, a line for each field.
func lines(t *testing.T, c *capsule.Content) []string {
	t.Helper()
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

// differ returns the first lines that differ, or "".
func differ(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\n%s\nafter\n%s", i, a[i], b[i], strings.Join(a[max(0, i-8):i], "\n"))
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d and %d lines", len(a), len(b))
	}
	return ""
}

func contains(data []byte, text string) bool { return bytes.Contains(data, []byte(text)) }
