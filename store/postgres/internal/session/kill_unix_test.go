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
func (d *database) start(dir string, grace time.Duration) *child {
	d.Helper()
	c := &child{exec.Command(os.Args[0], "-test.run=^TestChild$"), d.T}
	c.Env = append(os.Environ(), "SESSION_TEST_URL="+d.url, "SESSION_TEST_FOLDER="+dir, "SESSION_TEST_GRACE="+grace.String())
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
			d.joined("w", grace, p)
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
	grace, err := time.ParseDuration(os.Getenv("SESSION_TEST_GRACE"))
	if err != nil {
		t.Fatal(err)
	}
	k := session.New(session.Config{Dial: server(t, url).Dial, Announce: announce, Log: slog.Default()})
	if err := errors.Join(folder.Hold(t.Context(), ns, "w"), k.Join(t.Context(), ns, "w", grace)); err != nil {
		t.Fatal(err)
	}
	k.Leased(time.Hour)
	p := folder.Place(ns, "w")
	fmt.Printf("joined %q %q %q\n", p.Host, p.Path, p.File)
	select {}
}

// A killed process is found dead: on its own machine by its lock, elsewhere after the grace
// and a second. A stopped process is not.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	t.Run("on another machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"), testGrace)
		o := d.observer(nil) // it sees no folder
		<-o.looks
		c.signal(syscall.SIGSTOP)
		for range 4 { // the first may be earlier; the others exceed the grace
			if s := <-o.looks; !s.Held {
				t.Fatal("a process that is stopped has lost its session")
			}
		}
		if ids := o.Dead(t.Context(), ns).IDs(); len(o.found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that is stopped is found dead: %v", ids)
		}
		killed := time.Now()
		c.kill()
		if after := (<-o.found).Sub(killed); after < testGrace+session.Margin {
			t.Errorf("found dead %s after the kill, want %s or more", after, testGrace+session.Margin)
		}
		d.confirm(o.Observer)
	})
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		c := d.start(filepath.Join(t.TempDir(), "workers"), time.Hour) // its session proves nothing in this time
		o := d.observer(workerlock.In(t.TempDir()))
		<-o.looks
		if ids := o.Dead(t.Context(), ns).IDs(); len(o.found) != 0 || len(ids) != 0 {
			t.Fatalf("a process that lives is found dead: %v", ids)
		}
		c.kill()
		<-o.found
		dead := o.Dead(t.Context(), ns)
		defer dead.Close()
		if ids := dead.IDs(); len(ids) != 1 || ids[0] != "w" {
			t.Errorf("dead are %v", ids)
		}
	})
}

// confirm checks that the death of the worker w is confirmed while its row is unchanged. A
// worker that comes back waits for the transaction. Its death is not confirmed once it was
// seen.
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
	other := open(d.T, d.url)
	other.until("the worker that comes back waits for the transaction that takes its leases", func() bool {
		return other.number(`SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`, int64(d.conn.PgConn().PID())) == 1
	})
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
