package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// superuser is the user of all URLs. It needs no password.
const superuser = "postgres"

// server is a server independent of a test: its methods return their errors.
type server struct {
	folder, data, bin string
	port              int

	mu      sync.Mutex
	process *process // nil before the first start
}

// initialized is a data folder made by initdb, the source of copies.
var initialized = sync.OnceValues(func() (string, error) {
	pg, err := find()
	if err != nil {
		return "", err
	}
	dir, err := folder("initdb")
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	initdb := func(more ...string) error {
		return run(filepath.Join(pg.bin, "initdb"), append([]string{
			"-D", data, "-U", superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
		}, more...)...)
	}
	if pg.major < 14 {
		// It supports neither providers nor --no-instructions.
		return data, run(filepath.Join(pg.bin, "initdb"), "-D", data, "-U", superuser, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	}
	if pg.major < 15 {
		return data, initdb()
	}
	// Users' databases seldom sort texts by their bytes. Those of tests do not either, if
	// PostgreSQL was built with ICU.
	if initdb("--locale-provider=icu", "--icu-locale=en-US") == nil {
		return data, nil
	}
	return data, initdb()
})

// newServer creates a server that is not started yet. Its data is a copy of the initialized
// folder.
func newServer(o Options) (*server, error) {
	source, err := initialized()
	if err != nil {
		return nil, err
	}
	s, err := emptyServer()
	if err != nil {
		return nil, err
	}
	if err := run("cp", "-R", source, s.data); err != nil {
		return nil, err
	}
	return s, s.configure(o)
}

// emptyServer returns a server with a folder and a port, and without data.
func emptyServer() (*server, error) {
	pg, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := folder("pg")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	return &server{folder: dir, data: filepath.Join(dir, "data"), bin: pg.bin, port: port}, err
}

// configure writes the configuration. Later lines win.
func (s *server) configure(o Options) error {
	lines := []string{
		"",
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", s.port),
		fmt.Sprintf("unix_socket_directories = '%s'", s.folder),
		"max_connections = 200",
		"shared_buffers = 32MB",
		"dynamic_shared_memory_type = mmap", // files of the data folder, which are removed with it
		"timezone = 'UTC'",
		"log_line_prefix = '%m [%p] %d '",
	}
	if !o.Fsync {
		lines = append(lines, "fsync = off", "full_page_writes = off")
	}
	file := filepath.Join(s.data, "postgresql.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text = append(text, strings.Join(append(lines, o.ConfigLines...), "\n")+"\n"...)
	if err := os.WriteFile(file, text, 0o600); err != nil || len(o.HBALines) == 0 {
		return err
	}
	file = filepath.Join(s.data, "pg_hba.conf")
	if text, err = os.ReadFile(file); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(strings.Join(o.HBALines, "\n")+"\n"), text...), 0o600)
}

// freePort returns a free port of 127.0.0.1. It is below the range of outgoing connections, so
// that it stays free while the server is stopped.
func freePort() (int, error) {
	for range 1000 {
		port := 10240 + rand.IntN(20000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port of 127.0.0.1 in 1,000 tries")
}

// start starts the server and waits until it answers.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.running() {
		return errors.New("the server runs already")
	}
	err := s.launch()
	// Processes of a killed server may take a moment to end.
	for i := 0; err != nil && strings.Contains(err.Error(), "pre-existing shared memory block") && i < 100; i++ {
		<-pause()
		err = s.launch()
	}
	return err
}

// pause is the poll interval for conditions without a signal.
func pause() <-chan time.Time { return time.After(5 * time.Millisecond) }

func (s *server) launch() error {
	p, err := launch(s.folder, "log", filepath.Join(s.bin, "postgres"), "-D", s.data)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.process = p
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		_, err := s.query(ctx, "postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("PostgreSQL ended as it started; the end of its log:\n%s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w; the end of its log:\n%s", err, s.logTail())
		case <-pause():
		}
	}
}

// end ends the process with how, if it runs, and waits for its end.
func (s *server) end(how func(pid int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.running() {
		return nil
	}
	if err := how(s.process.pid); err != nil {
		return err
	}
	select {
	case <-s.process.exited:
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("PostgreSQL does not end; the end of its log:\n%s", s.logTail())
	}
}

// during calls f with the process if it runs.
func (s *server) during(f func(pid int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.running() {
		return errors.New("the server does not run")
	}
	return f(s.process.pid)
}

// remove ends the server and deletes its files.
func (s *server) remove() error {
	err := s.end(slay)
	return errors.Join(err, s.freeSegment(), os.RemoveAll(s.folder))
}

// freeSegment frees the few bytes of System V shared memory that guard a data folder. A killed
// server leaves them, and their number is limited.
func (s *server) freeSegment() error {
	text, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// Line 7 has the key and the ID of the segment.
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return nil
	}
	fields := strings.Fields(lines[6])
	if len(fields) != 2 {
		return nil
	}
	_ = run("ipcrm", "-m", fields[1]) // it may be gone, or the system has no ipcrm
	return nil
}

// url returns the URL of a database.
func (s *server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: "sslmode=disable",
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
	}
	return u.String()
}

// query runs a statement in its own connection and returns the first value of its first row.
func (s *server) query(ctx context.Context, database, sql string) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, s.url(database)+"&connect_timeout=60")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", fmt.Errorf("%s: %w", sql, err)
	}
	if len(results) > 0 && len(results[0].Rows) > 0 && len(results[0].Rows[0]) > 0 {
		value = string(results[0].Rows[0][0])
	}
	return value, nil
}

// logTail returns the last lines of the log.
func (s *server) logTail() string {
	text, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "")
}
