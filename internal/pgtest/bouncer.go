package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Bouncer starts PgBouncer in front of the server of a URL and returns the URL of the same
// database through it. The mode is session, transaction or statement. lines are further lines
// of its configuration, such as "default_pool_size = 2". It ends at the end of the test.
func Bouncer(t testing.TB, url, mode string, lines ...string) string {
	t.Helper()
	skipShort(t)
	var through, dir string
	var p *process
	err := errors.New("it did not return")
	outside(func() { through, dir, p, err = startBouncer(url, mode, lines) })
	if err != nil {
		t.Fatalf("PgBouncer for the test: %v", err)
	}
	t.Cleanup(func() {
		outside(func() { err = errors.Join(stopBouncer(p), os.RemoveAll(dir)) })
		if err != nil {
			t.Errorf("stop PgBouncer: %v", err)
		}
	})
	return through
}

// ServeBouncer is Bouncer for programs other than tests. remove ends it.
func ServeBouncer(url, mode string, lines ...string) (through string, remove func() error, err error) {
	through, dir, p, err := startBouncer(url, mode, lines)
	if err != nil {
		return "", nil, err
	}
	return through, func() error { return errors.Join(stopBouncer(p), os.RemoveAll(dir)) }, nil
}

func startBouncer(of, mode string, lines []string) (through, dir string, p *process, err error) {
	u, err := url.Parse(of)
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		return "", "", nil, fmt.Errorf("%q is not the URL of a server on a port", of)
	}
	program, err := findBouncer()
	if err != nil {
		return "", "", nil, err
	}
	if dir, err = folder("bouncer"); err != nil {
		return "", "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", "", nil, err
	}
	password, _ := u.User.Password()
	config := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", u.Hostname(), u.Port()),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", port),
		"unix_socket_dir =",
		"auth_type = trust",
		"auth_file = " + filepath.Join(dir, "users"),
		"pidfile = " + filepath.Join(dir, "pgbouncer.pid"),
		"admin_users = " + u.User.Username(),
		"pool_mode = " + mode,
		"max_client_conn = 1000",
	}
	for name, text := range map[string]string{
		"users": fmt.Sprintf("%s %s\n", quoted(u.User.Username()), quoted(password)),
		"ini":   strings.Join(append(config, lines...), "\n") + "\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), own(file)); err != nil {
			return "", "", nil, err
		}
	}
	if p, err = launch(dir, "log", program, filepath.Join(dir, "ini")); err != nil {
		return "", "", nil, err
	}
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err = p.answers(u.String()); err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		err = errors.Join(err, stopBouncer(p), fmt.Errorf("its log:\n%s", text))
	}
	return u.String(), dir, p, err
}

// quoted returns a text in the syntax of PgBouncer's user file.
func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// findBouncer returns the path of the program, even if the user's PATH has no sbin.
func findBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no pgbouncer on this machine: " + install)
}

// answers waits until a database answers queries through the process.
func (p *process) answers(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgconn.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("it ended as it started: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-pause():
		}
	}
}

func stopBouncer(p *process) error {
	if !p.running() {
		return nil
	}
	if err := signal(p.pid, kill); err != nil {
		return err
	}
	<-p.exited
	return nil
}
