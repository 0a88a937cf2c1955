package session_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/session"
)

// rows runs each statement on its own connection.
func (d *database) rows(ctx context.Context, sql string, params ...string) ([][][]byte, error) {
	cfg := server(d.T, d.url)
	c, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	r := c.Raw().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// workers returns the Workers of a process that looks for locks in a folder.
func (d *database) workers(dir string, direct bool) (w *session.Workers, found chan string) {
	d.Helper()
	folder, err := session.OpenFolder(dir, "generation")
	if err != nil {
		d.Fatal(err)
	}
	found = make(chan string, 100)
	o := session.Options{
		Rows: d.rows, Announce: announce, Folder: folder, Log: slog.New(slog.DiscardHandler),
		Found: func(ns string) {
			select {
			case found <- ns:
			default:
			}
		},
	}
	if direct {
		o.Server = server(d.T, d.url)
	}
	w = session.Open(o)
	d.Cleanup(func() {
		if err := w.Close(); err != nil {
			d.Error(err)
		}
	})
	return w, found
}

// join joins a worker with a claim.
func (d *database) join(w *session.Workers, id store.WorkerID) session.Proof {
	d.Helper()
	p, err := w.Join(d.Context(), ns, &store.WorkerInfo{ID: id, TTL: 3 * time.Second, SessionGrace: testGrace})
	if err != nil {
		d.Fatal(err)
	}
	d.joined(id, p.Grace, p.Place)
	w.Joined(d.Context())
	return p
}

func TestWorkersOfTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"direct": true, "pooled": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			dir := filepath.Join(t.TempDir(), "locks")
			one, _ := d.workers(dir, direct)
			two, found := d.workers(dir, direct)
			p := d.join(one, "one")
			d.join(two, "two")
			if p.Place.Path == "" || (p.Grace == testGrace) != direct || d.locks() == 0 == direct {
				t.Errorf("the proof is %+v, %d session locks are held", p, d.locks())
			}
			if _, ok := one.Session(ns, "one"); ok != direct {
				t.Errorf("the worker has a session: %t", ok)
			}
			if _, err := two.Join(t.Context(), ns, &store.WorkerInfo{ID: "one", SessionGrace: testGrace}); !errors.Is(err, store.ErrConflict) {
				t.Errorf("a second process under the same id: %v, want ErrConflict", err)
			}
			if err := one.BeforeClaim(t.Context()); err != nil {
				t.Error(err)
			}
			ran := false
			err := one.Heartbeat(t.Context(), ns, "one", func(ctx context.Context, c session.Conn) error { ran = true; return c.Answer(ctx) })
			if ran != direct || errors.Is(err, session.ErrDown) == direct {
				t.Errorf("the heartbeat ran on the session: %t, %v", ran, err)
			}
			if ids := two.Dead(t.Context(), ns).IDs(); len(ids)+len(found) != 0 {
				t.Errorf("found dead: %v", ids)
			}
			if err := one.Close(); err != nil { // as its process ends
				t.Fatal(err)
			}
			<-found
			dead := two.Dead(t.Context(), ns)
			defer dead.Close()
			if ids := dead.IDs(); len(ids) != 1 || ids[0] != "one" {
				t.Fatalf("dead are %v, want one", ids)
			}
			dead.Forget(dead.IDs())
			if _, err := os.Lstat(p.Place.Path); !os.IsNotExist(err) {
				t.Errorf("the lock file of a worker that was forgotten: %v", err)
			}
		})
	}
}

// A worker that leaves releases its locks, and is not dead.
func TestAWorkerThatLeft(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	dir := filepath.Join(t.TempDir(), "locks")
	one, _ := d.workers(dir, true)
	two, found := d.workers(dir, true)
	p := d.join(one, "one")
	two.Dead(t.Context(), ns).Close()
	d.exec(`DELETE FROM weaver.weaver_workers`)
	one.Left(t.Context(), ns, "one")
	d.until("the session's lock is given back", func() bool { return d.locks() == 0 })
	if _, err := os.Lstat(p.Place.Path); !os.IsNotExist(err) {
		t.Errorf("the lock file: %v", err)
	}
	if ids := two.Dead(t.Context(), ns).IDs(); len(ids)+len(found) != 0 {
		t.Errorf("found dead: %v", ids)
	}
	if err := one.BeforeClaim(t.Context()); err != nil {
		t.Errorf("without workers: %v", err)
	}
}

// Join succeeds without a session and without a lock on this machine.
func TestJoinWithoutProofs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, dial := range map[string]func() (net.Conn, error){
		"refused": func() (net.Conn, error) { return nil, errors.New("refused") },
		"not answered": func() (net.Conn, error) {
			client, silent := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, silent) }()
			return client, nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := server(t, "postgres://u@127.0.0.1/d?sslmode=disable")
			s.Config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return dial() }
			w := session.Open(session.Options{
				Server: s, Announce: announce, Found: func(string) {}, Log: slog.New(slog.DiscardHandler),
				Folder: workerlock.In(filepath.Join(file, "locks")),
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			p, err := w.Join(ctx, ns, &store.WorkerInfo{ID: "w", SessionGrace: testGrace})
			if err != nil || p != (session.Proof{}) {
				t.Errorf("%s: the proof is %+v, %v", what, p, err)
			}
			if err := w.BeforeClaim(ctx); err != nil {
				t.Errorf("%s: before a claim: %v", what, err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := session.OpenFolder(file, "g"); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("a file: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "locks")
	a, err := session.OpenFolder(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := session.OpenFolder(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	if a.Path(ns, "w") == b.Path(ns, "w") || !strings.HasPrefix(a.Path(ns, "w"), dir+"/") {
		t.Errorf("two databases have the lock files %s and %s", a.Path(ns, "w"), b.Path(ns, "w"))
	}
}
