// Package redistest starts Redis servers for tests: on a free port of the loopback interface, in a temporary folder,
// without persistence. Every server ends with its test, and also when the program of the test dies.
package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const install = "install it with: sudo apt-get install -y --no-install-recommends redis-server (or: make services)"

// Server is a running Redis server. Its methods are not safe for concurrent use.
type Server struct {
	Addr string // host:port

	program  string
	dir      string
	args     []string
	sentinel string // configuration, "" for a server
	cmd      *exec.Cmd
	ended    chan struct{} // closed when the server has ended
	guard    *exec.Cmd     // kills the server when the test's program dies
}

// Start starts a server with further arguments, such as "--requirepass", "secret". It ends at the end of the test. With
// "--tls-cert-file" its port takes TLS only.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return startNew(t, "", args)
}

// Sentinel starts a Sentinel that monitors a server under a name.
func Sentinel(t testing.TB, name string, of *Server) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(of.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return startNew(t, fmt.Sprintf("sentinel monitor %s %s %s 1\n", name, host, port), nil)
}

// Serve is Start for programs other than tests, such as benchmarks. remove kills the server and removes its folder.
func Serve(args ...string) (s *Server, remove func() error, err error) {
	if s, err = boot("", args); err != nil {
		return nil, nil, err
	}
	return s, s.remove, nil
}

func startNew(t testing.TB, sentinel string, args []string) *Server {
	t.Helper()
	s, err := boot(sentinel, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Errorf("remove the folder of the Redis server: %v", err)
		}
	})
	return s
}

func boot(sentinel string, args []string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("no redis-server on this machine: %s", install)
	}
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, dir: dir, args: args, sentinel: sentinel}
	for range 20 { // another program may take a port first
		if s.Addr, err = freePort(); err == nil {
			err = s.start()
		}
		if err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("start redis-server: %w", err), s.remove())
}

func (s *Server) remove() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}

// URL returns the URL of the server without credentials.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Kill kills the server as kill -9 does. Connections to it break.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.guard.Process.Kill()
	_ = s.guard.Wait() // "signal: killed"
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
}

// Restart starts the server again at the same address, without data. It must have been killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("restart redis-server: %v", err)
	}
}

// Pause stops the server without breaking its connections, until Kill or the end of the test.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("kill", "-STOP", strconv.Itoa(s.cmd.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("pause redis-server: %v: %s", err, out)
	}
}

// Do sends one command over a connection of its own and returns the first line of the reply, in the syntax of RESP.
func (s *Server) Do(t testing.TB, args ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	line, err := do(conn, args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return line
}

func do(conn net.Conn, args []string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := conn.Write(b.Bytes()); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// start starts the server and returns when it accepts connections.
func (s *Server) start() error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	ports := []string{"--port", port}
	if slices.Contains(s.args, "--tls-cert-file") {
		ports = []string{"--port", "0", "--tls-port", port}
	}
	var args []string
	if s.sentinel != "" { // it writes into its file
		file := filepath.Join(s.dir, "sentinel.conf")
		if err := os.WriteFile(file, []byte(s.sentinel), 0o600); err != nil {
			return err
		}
		args = append(append([]string{file}, ports...), "--bind", host, "--dir", s.dir, "--sentinel")
	} else {
		args = slices.Concat(ports, []string{
			"--bind", host, "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "notice",
		}, s.args)
	}
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.dir
	ready := &readiness{done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = ready, ready
	if err := cmd.Start(); err != nil {
		return err
	}
	// The guard's input ends with this program. Kill ends the guard before the server, so it never kills another process.
	guard := exec.Command("/bin/sh", "-c", `trap '' HUP INT TERM QUIT; cat >/dev/null; kill -9 "$0"; rm -rf "$1"`, strconv.Itoa(cmd.Process.Pid), s.dir)
	pipe, err := guard.StdinPipe()
	if err == nil {
		hold(pipe)
		err = guard.Start()
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return errors.Join(err, cmd.Wait())
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // "signal: killed"
		close(ended)
	}()
	s.cmd, s.ended, s.guard = cmd, ended, guard
	select {
	case <-ready.done:
		return nil
	case <-ended:
		s.Kill()
		return fmt.Errorf("it ended as it started; its log:\n%s", ready.text())
	}
}

// readiness is the log of a starting server.
type readiness struct {
	mu   sync.Mutex
	log  bytes.Buffer
	seen bool
	done chan struct{} // closed when the server accepts connections
}

func (r *readiness) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen {
		return len(p), nil
	}
	r.log.Write(p)
	if bytes.Contains(r.log.Bytes(), []byte("eady to accept connections")) || bytes.Contains(r.log.Bytes(), []byte("Sentinel ID is")) {
		r.seen = true
		close(r.done)
	}
	return len(p), nil
}

func (r *readiness) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

var held struct {
	sync.Mutex
	pipes []io.Closer
}

func hold(pipe io.Closer) {
	held.Lock()
	defer held.Unlock()
	held.pipes = append(held.pipes, pipe)
}

// freePort returns an address below the ports that the system gives to clients: a client that connects to such a port
// while the server is down could connect to itself.
func freePort() (string, error) {
	var errs error
	for range 50 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(12_000+rand.IntN(20_000)))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
		errs = errors.Join(errs, err)
	}
	return "", errs
}
