//go:build unix

package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/store/postgres/internal/session"
)

// child is a process with a worker.
type child struct {
	*exec.Cmd
	t *testing.T
}

// start starts a process whose worker holds its locks.
func (d *database) start(dir string) *child {
	d.Helper()
	c := &child{exec.Command(os.Args[0], "-test.run=^TestChild$"), d.T}
	c.Env = append(os.Environ(), "SESSION_TEST_URL="+d.url, "SESSION_TEST_FOLDER="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := c.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(c.kill)
	var p workerlock.Place
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "joined %q %q %q", &p.Host, &p.Path, &p.File); n == 3 {
			d.joined("w", testGrace, p)
			return c
		}
	}
	d.Fatal("the child did not join")
	return nil
}

func (c *child) kill() { _ = c.Process.Kill(); _ = c.Wait() }

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// TestChild is the program of start.
func TestChild(t *testing.T) {
	url := os.Getenv("SESSION_TEST_URL")
	if url == "" {
		return
	}
	folder := workerlock.In(os.Getenv("SESSION_TEST_FOLDER"))
	k := session.New(session.Config{Dial: server(t, url).Dial, Announce: announce, Log: slog.Default()})
	if err := errors.Join(folder.Hold(t.Context(), ns, "w"), k.Join(t.Context(), ns, "w", testGrace)); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	p := folder.Place(ns, "w")
	fmt.Printf("joined %q %q %q\n", p.Host, p.Path, p.File)
	select {}
}

// A process that is killed is found dead: at once on its machine, after the grace and
// a second elsewhere. One that is stopped is not.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	t.Run("on another machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"))
		o, found := d.observer(nil) // it sees no folder
		time.Sleep(2 * time.Second)
		c.signal(syscall.SIGSTOP)
		time.Sleep(4 * time.Second)
		if ids := o.Dead(t.Context(), ns).IDs(); len(found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that is stopped is found dead: %v", ids)
		}
		c.kill()
		killed := time.Now()
		after := (<-found).Sub(killed)
		if least, most := testGrace+session.Margin-100*time.Millisecond, testGrace+session.Margin+10*time.Second; after < least || after > most {
			t.Errorf("found dead %s after the kill, want from %s to %s", after, least, most)
		}
		d.confirm(o)
	})
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"))
		o, found := d.observer(workerlock.In(t.TempDir()))
		time.Sleep(2 * time.Second)
		if ids := o.Dead(t.Context(), ns).IDs(); len(found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that lives is found dead: %v", ids)
		}
		c.kill()
		killed := time.Now()
		if after := (<-found).Sub(killed); after >= testGrace+session.Margin {
			t.Errorf("found dead %s after the kill, which its session would show, too", after)
		}
		dead := o.Dead(t.Context(), ns)
		defer dead.Close()
		if ids := dead.IDs(); len(ids) != 1 || ids[0] != "w" {
			t.Errorf("dead are %v", ids)
		}
	})
}

// confirm checks that the death of the worker w is confirmed while its row is as it
// was seen, that a worker that comes back waits for the transaction, and that its
// death is not confirmed once it was seen.
func (d *database) confirm(o *session.Observer) {
	d.Helper()
	cfg, err := pgconn.ParseConfig(d.url)
	if err != nil {
		d.Fatal(err)
	}
	c, err := conn.Connect(d.Context(), cfg, conn.Settings{})
	if err != nil {
		d.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	dead := o.Dead(d.Context(), ns)
	defer dead.Close()
	if ids := dead.IDs(); len(ids) != 1 || ids[0] != "w" {
		d.Fatalf("dead are %v", ids)
	}
	confirmed := func() int {
		d.Helper()
		if err := c.Begin(d.Context(), false); err != nil {
			d.Fatal(err)
		}
		ids, err := dead.Confirm(sqlstore.NewTx(nil, c, &sqlstore.Effects{NS: ns}, time.Now()))
		if err != nil {
			d.Fatal(err)
		}
		return len(ids)
	}
	if confirmed() != 1 {
		d.Error("a death is not confirmed")
	}
	back := make(chan error, 1)
	go func() {
		_, err := d.conn.Exec(d.Context(), `UPDATE weaver.weaver_workers SET last_seen = last_seen + 1`)
		back <- err
	}()
	select {
	case err := <-back:
		d.Errorf("a worker comes back beside the transaction that takes its leases: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := c.Commit(); err != nil {
		d.Fatal(err)
	}
	if err := <-back; err != nil {
		d.Fatal(err)
	}
	if confirmed() != 0 {
		d.Error("the death of a worker that came back is confirmed")
	}
	c.Rollback()
}
