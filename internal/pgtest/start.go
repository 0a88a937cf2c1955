package pgtest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// Options configure a server that belongs to one test.
type Options struct {
	Fsync       bool     // also full_page_writes: a user's setting, and slower
	ConfigLines []string // lines of postgresql.conf, such as "max_connections = 20"
	HBALines    []string // lines of pg_hba.conf, before the lines that trust every user
}

// Server is a server that belongs to one test. Failures are reported to the test, so that any
// goroutine of the test may call the methods.
type Server struct {
	t testing.TB
	s *server
	o Options
}

// Mode is the way in which a server stops.
type Mode syscall.Signal

// Modes of [Server.Stop].
const (
	Fast      = Mode(interrupt) // ends its connections, then itself
	Immediate = Mode(quit)      // without a checkpoint: it recovers at the next start
)

// Start starts a server, which is removed at the end of the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	skipShort(t)
	s := &Server{t: t, o: o}
	if err := s.do(func() (err error) {
		s.s, err = boot(o)
		return err
	}); err != nil {
		t.Fatalf("a server for the test: %v", err)
	}
	s.removeAtEnd()
	return s
}

// boot creates and starts a server.
func boot(o Options) (s *server, err error) {
	for range 5 {
		if s, err = newServer(o); err != nil {
			return nil, err
		}
		if err = s.start(); err == nil || !strings.Contains(s.logTail(), "could not create any TCP/IP sockets") {
			break // otherwise another process took the port
		}
	}
	return s, err
}

func (s *Server) removeAtEnd() {
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the end of the server's log:\n%s", s.s.logTail())
		}
		s.report("remove the server", s.s.remove)
	})
}

// do calls f outside of a bubble.
func (s *Server) do(f func() error) error {
	err := errors.New("it did not return")
	outside(func() { err = f() })
	return err
}

func (s *Server) report(what string, f func() error) {
	s.t.Helper()
	if err := s.do(f); err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

// URL returns the URL of a database of the server; "postgres" always exists.
func (s *Server) URL(database string) string { return s.s.url(database) }

// SocketURL is URL for the server's Unix socket.
func (s *Server) SocketURL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database}
	u.RawQuery = url.Values{"host": {s.s.folder}, "port": {strconv.Itoa(s.s.port)}}.Encode()
	return u.String()
}

// Database creates a database and returns its URL.
func (s *Server) Database() string {
	s.t.Helper()
	var name string
	s.report("make a database", func() (err error) {
		name, err = s.s.create("template1")
		return err
	})
	return s.s.url(name)
}

// Stop stops the server, paused or not, and waits for its end. It has no effect if the server
// does not run.
func (s *Server) Stop(mode Mode) {
	s.t.Helper()
	s.report("stop the server", func() error {
		return s.s.end(func(pid int) error { return errors.Join(signal(pid, syscall.Signal(mode)), thaw(pid)) })
	})
}

// Kill ends the server's processes like a loss of power, except that the system's buffers
// survive.
func (s *Server) Kill() {
	s.t.Helper()
	s.report("kill the server", func() error { return s.s.end(slay) })
}

// Start starts the server again, on its port, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.report("start the server again", s.s.start)
}

// Pause stops the server's processes without ending them. The system still accepts connections
// for them.
func (s *Server) Pause() {
	s.t.Helper()
	s.report("pause the server", func() error { return s.s.during(freeze) })
}

// Resume ends a pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.report("resume the server", func() error { return s.s.during(thaw) })
}

// Log returns the content of the server's log.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.s.folder, "log"))
	if err != nil {
		s.t.Errorf("read the server's log: %v", err)
	}
	return string(text)
}

// standbys counts standbys, for the names of their replication slots.
var standbys atomic.Int64

// Standby starts a standby, which follows the server by asynchronous streaming replication.
// Its name in synchronous_standby_names is walreceiver. It is removed at the end of the test.
func (s *Server) Standby() *Server {
	s.t.Helper()
	standby := &Server{t: s.t, o: s.o}
	if err := s.do(func() (err error) {
		standby.s, err = s.s.standby(s.o)
		return err
	}); err != nil {
		s.t.Fatalf("a standby for the test: %v", err)
	}
	standby.removeAtEnd()
	return standby
}

func (s *server) standby(o Options) (*server, error) {
	standby, err := emptyServer()
	if err != nil {
		return nil, err
	}
	slot := "standby" + strconv.FormatInt(standbys.Add(1), 10)
	if err := run(filepath.Join(s.bin, "pg_basebackup"), "-D", standby.data, "-d", s.url("postgres"),
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync", "--create-slot", "--slot="+slot); err != nil {
		return nil, err
	}
	o.HBALines = nil // it has them
	if err := standby.configure(o); err != nil {
		return nil, err
	}
	return standby, standby.start()
}

// Promote makes a standby writable. It does not stop the former primary.
func (s *Server) Promote() {
	s.t.Helper()
	s.report("promote the standby", func() error {
		promoted, err := s.s.query(context.Background(), "postgres", "SELECT pg_promote(true, 60)")
		if err == nil && promoted != "t" {
			err = errors.New("not within a minute")
		}
		return err
	})
}

// Serve is Start for programs other than tests, such as benchmarks. It returns the URL of the
// server's database postgres, and a function that removes the server.
func Serve(o Options) (url string, remove func() error, err error) {
	s, err := boot(o)
	if err != nil {
		return "", nil, err
	}
	return s.url("postgres"), s.remove, nil
}
