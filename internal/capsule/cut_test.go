package capsule_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/internal/capsule"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// A job has its tasks, with their children, in every state; nothing in the capsule can be claimed or changed.
func TestJob(t *testing.T) {
	t.Parallel()
	onStores(t, func(p *place) {
		j := weaver.NewJob("night")
		first := j.Add("pay", pay.With(payment{Card: card, Amount: 3}))
		j.Add("review", review.With("is it good"), weaver.Needs(first))
		j.Add("late", notify.With("later", weaver.Delay(time.Hour)))
		h, err := p.Submit(p.Context(), j)
		p.no(err)
		other, err := notify.Enqueue(p.Context(), p, "of another")
		p.no(err)
		p.work()

		path, _ := p.export(h.ID(), capsule.Options{})
		db, c, info := opened(p.T, path)
		whole := map[string]task.State{}
		list, _, err := c.List(p.Context(), weaver.Filter{})
		p.no(err)
		for i := range list {
			whole[list[i].Type+" "+list[i].Node] = list[i].State
			if list[i].ID == other.ID() {
				p.Error("the capsule has a task of another")
			}
		}
		want := map[string]task.State{"acme.shop.pay.v1 pay": task.Succeeded, "acme.shop.review.v1 review": task.Pending, "acme.shop.notify.v1 late": task.Pending, "acme.shop.notify.v1 pay/tell[0]": task.Succeeded}
		for k, state := range want {
			if whole[k] != state {
				p.Errorf("%s is %q, want %s; there are %v", k, whole[k], state, whole)
			}
		}
		if info.Tasks != 4 || info.Job != h.ID() {
			p.Errorf("info: %+v", info)
		}
		job, err := c.Job(p.Context(), h.ID())
		p.no(err)
		source, err := p.Job(p.Context(), h.ID())
		p.no(err)
		if job.State != source.State || job.Counters != source.Counters {
			p.Errorf("the job is %s %+v, at the source %s %+v", job.State, job.Counters, source.State, source.Counters)
		}
		noSecret(p.T, path)

		refused := func(what string, err error) {
			p.Helper()
			if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "it is a capsule") {
				p.Errorf("%s: %v, want store.ErrReadOnly", what, err)
			}
		}
		_, err = db.Claim(p.Context(), capsule.Namespace, store.ClaimRequest{Worker: "w", Name: "w", LeaseID: task.LeaseID{1}, TTL: time.Minute, Limit: 10, Types: map[string]int{"acme.shop.review.v1": 1, "acme.shop.notify.v1": 1}})
		refused("Claim", err)
		_, err = notify.Enqueue(p.Context(), c, "new")
		refused("Enqueue", err)
		refused("Cancel", c.Cancel(p.Context(), h.ID()))
		e, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{notify.Handler(notified)}, Logger: slog.New(slog.DiscardHandler)})
		p.no(err)
		refused("Run", e.RunUntilIdle(p.Context()))
	})
}

// A program that does not know the mark finds nothing to do.
func TestInertWithoutTheMark(t *testing.T) {
	t.Parallel()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p := newPlace(t, db)
	h, err := notify.Enqueue(t.Context(), p, "due")
	p.no(err)
	path, _ := p.export(h.ID(), capsule.Options{})
	capsuleDB, err := sqlite.Open(t.Context(), path)
	p.no(err)
	_, err = capsuleDB.DB().ExecContext(t.Context(), "DELETE FROM weaver_store_meta WHERE key = 'capsule'")
	p.no(errors.Join(err, capsuleDB.Close()))
	plain, err := sqlite.Open(t.Context(), path)
	p.no(err)
	t.Cleanup(func() { _ = plain.Close() })
	ran := false
	e, err := weaver.New(plain, weaver.Config{Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{
		notify.Handler(func(context.Context, string) (string, error) { ran = true; return "", nil }),
	}})
	p.no(err)
	p.no(e.RunUntilIdle(t.Context()))
	if info, err := p.Get(t.Context(), h.ID()); ran || err != nil || info.State != task.Ready {
		t.Errorf("it ran: %v; the task is %s, %v", ran, info.State, err)
	}
}

// A task that runs is exported with the steps that its row counts.
func TestRunning(t *testing.T) {
	t.Parallel()
	onStores(t, func(p *place) {
		at, goOn := make(chan struct{}), make(chan struct{})
		work := weaver.Define[int, int]("acme.shop.work.v1")
		h, err := work.Enqueue(p.Context(), p, 1)
		p.no(err)
		e, err := weaver.New(p.store, weaver.Config{Namespace: "shop", Logger: slog.New(slog.DiscardHandler), Handlers: []weaver.Handler{work.Handler(func(ctx context.Context, n int) (int, error) {
			if _, err := weaver.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			close(at)
			<-goOn
			return n, nil
		})}})
		p.no(err)
		done := make(chan error, 1)
		go func() { done <- e.RunUntilIdle(p.Context()) }()
		<-at
		path, _ := p.export(h.ID(), capsule.Options{})
		close(goOn)
		p.no(<-done)
		db, c, _ := opened(p.T, path)
		hist, err := c.History(p.Context(), h.ID())
		p.no(err)
		if hist.Task.State != task.Running || hist.Task.StepCount != 1 || len(hist.Steps) != 1 || len(hist.Attempts) != 1 || !hist.Attempts[0].FinishedAt.IsZero() {
			p.Errorf("task %s, %d steps, attempts %+v", hist.Task.State, hist.Task.StepCount, hist.Attempts)
		}
		whole(p.T, db)
	})
}

// Encrypted values are decrypted and masked; without the key they are left out, and said.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	key, err := aesgcm.NewKey("k1")
	if err != nil {
		t.Fatal(err)
	}
	codec, err := aesgcm.New(key)
	if err != nil {
		t.Fatal(err)
	}
	s, bucket := memstore.New(), blob.NewMemory()
	with, err := weaver.NewClient(s, weaver.ClientConfig{Namespace: "shop", Bucket: bucket, Codec: codec, InlineLimit: 200})
	if err != nil {
		t.Fatal(err)
	}
	h, err := pay.Enqueue(t.Context(), with, payment{Card: card, Amount: 3, Note: strings.Repeat("a long note ", 50)})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, s)
	p.bucket, p.Client = bucket, with
	path, _ := p.export(h.ID(), capsule.Options{})
	_, c, info := opened(t, path)
	got, err := c.Get(t.Context(), h.ID())
	if err != nil || !strings.Contains(string(got.Input), "a long note") || !strings.Contains(string(got.Input), "[redacted]") || len(info.LeftOut) > 0 {
		t.Errorf("with the key: input %s, left out %v, %v", got.Input, info.LeftOut, err)
	}
	noSecret(t, path)

	without, err := weaver.NewClient(s, weaver.ClientConfig{Namespace: "shop", Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	p.Client = without
	path, _ = p.export(h.ID(), capsule.Options{})
	if _, _, info = opened(t, path); len(info.LeftOut) != 1 || !strings.Contains(info.LeftOut[0].What, "the input") {
		t.Errorf("without the key: left out %+v", info.LeftOut)
	}
}

// What cannot be opened is said, and no file is left.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t, memstore.New())
	h, err := notify.Enqueue(t.Context(), p, "x")
	p.no(err)
	good, _ := p.export(h.ID(), capsule.Options{})
	data, err := os.ReadFile(good)
	p.no(err)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		p.no(os.WriteFile(path, data, 0o600))
		return path
	}
	changed := func(name, sql string) string {
		path := file(name, data)
		db, err := sqlite.Open(t.Context(), path)
		p.no(err)
		_, err = db.DB().ExecContext(t.Context(), sql)
		p.no(errors.Join(err, db.Close()))
		return path
	}
	for _, c := range []struct {
		path string
		want error
		says string
	}{
		{file("text", []byte("hello, this is a text")), capsule.ErrNotCapsule, "does not begin as a file of SQLite"},
		{file("empty", nil), capsule.ErrNotCapsule, "does not begin as a file of SQLite"},
		{file("cut", data[:len(data)/2]), store.ErrNotDatabase, "cut off"},
		{filepath.Join(dir, "none"), fs.ErrNotExist, "none"},
		{changed("store", "DELETE FROM weaver_store_meta WHERE key = 'capsule'"), capsule.ErrNotCapsule, "not a capsule"},
		{changed("format", `UPDATE weaver_store_meta SET value = '{"format": 99}' WHERE key = 'capsule'`), capsule.ErrNewer, "format 99"},
		{changed("schema", "INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (9999, 'future', 'x', 1)"), capsule.ErrNewer, "or later"},
	} {
		o, err := capsule.OpenCopy(t.Context(), openFile, c.path)
		if err == nil {
			t.Errorf("%s was opened: %v", c.path, o.Close())
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v and %q", c.path, err, c.want, c.says)
		}
	}
	o, err := capsule.OpenCopy(t.Context(), openFile, good)
	p.no(err)
	p.no(o.Close())
}

// An export that is cut off leaves no file under the name.
func TestInterruptedWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.capsule")
	cause := errors.New("the machine stops")
	open := func(ctx context.Context, path string) (capsule.DB, error) {
		if _, err := os.Lstat(filepath.Join(dir, "run.capsule")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the name exists while the file is made: %v", err)
		}
		db, err := sqlite.Open(ctx, path)
		return stopping{db, cause}, err
	}
	if _, err := capsule.Write(t.Context(), open, path, false, &capsule.Content{}); !errors.Is(err, cause) {
		t.Errorf("Write: %v", err)
	}
	if list, _ := fs.Glob(os.DirFS(dir), "*"); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// stopping fails before the rows are written.
type stopping struct {
	database
	cause error
}

type database interface{ capsule.DB }

// Migrate implements store.Ops.
func (s stopping) Migrate(context.Context) error { return s.cause }
