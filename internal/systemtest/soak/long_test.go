package soak_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// TestLongRun keeps an engine of 8 slots busy while a program does everything else to its store. It samples the
// process: goroutines, open files, memory and the files of the database must not grow. It is not parallel, because it
// cannot distinguish the resources of other tests of this process from its own.
func TestLongRun(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	length := lengthOfRun(t)
	s := newSoak(t)
	empty := s.rows()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.startUsers(ctx)
	s.sample(length)
	stop()
	s.users.Wait()
	s.leave()
	if n := s.rows(); n != empty {
		t.Errorf("%d rows are left of tasks that were deleted", n-empty)
	}
	for _, g := range growths(s.samples) {
		t.Error(g)
	}
}

// soak is a file with two handles on it and their users.
type soak struct {
	testing.TB
	path  string
	begun time.Time

	db, second       *sqlite.DB
	clientA, clientB *weaver.Client // of the two handles, in the same namespace
	jobs             *weaver.Client // in a namespace of its own: jobs cannot be deleted

	users   sync.WaitGroup
	engines []func() error // each ends an engine and returns the result of Run
	handles sync.Mutex     // held while a third handle is open and while the process is sampled: that handle is not a leak
	numbers atomic.Int64
	done    atomic.Int64
	samples []sample
}

const jobsNamespace = "jobs"

func newSoak(t testing.TB) *soak {
	t.Helper()
	s := &soak{TB: t, path: filepath.Join(t.TempDir(), "weaver.db"), begun: time.Now()}
	s.db, s.second = s.open(), s.open()
	s.must(s.db.Migrate(t.Context()))
	_, err := s.db.DB().ExecContext(t.Context(), "CREATE TABLE seen (n INTEGER NOT NULL)")
	s.must(err)
	client := func(db *sqlite.DB, ns string) *weaver.Client {
		c, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: ns, Logger: stderrLog()})
		s.must(err)
		return c
	}
	s.clientA, s.clientB, s.jobs = client(s.db, ""), client(s.second, ""), client(s.second, jobsNamespace)
	return s
}

func (s *soak) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *soak) open() *sqlite.DB {
	s.Helper()
	db, err := sqlite.Open(s.Context(), s.path, sqlite.BusyTimeout(busy))
	s.must(err)
	return db
}

// run starts an engine.
func (s *soak) run(db *sqlite.DB, ns string, slots int) {
	s.Helper()
	eng, err := weaver.New(db, weaver.Config{Namespace: ns, Handlers: s.handlers(), Concurrency: slots, Logger: stderrLog()})
	s.must(err)
	ctx, stop := context.WithCancel(s.Context())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	s.engines = append(s.engines, func() error {
		stop()
		return <-ran
	})
}

// leave ends the engines and closes the handles.
func (s *soak) leave() {
	s.Helper()
	for _, end := range s.engines {
		if err := end(); err != nil {
			s.Errorf("Run: %v", err)
		}
	}
	s.Cleanup(func() {
		if err := errors.Join(s.second.Close(), s.db.Close()); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
}

// every repeats an action until ctx ends. An action in progress completes, with a separate, much longer timeout.
func (s *soak) every(ctx context.Context, pause time.Duration, what string, do func(ctx context.Context) error) {
	s.users.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			own, cancel := context.WithTimeout(s.Context(), timeout)
			err := do(own)
			cancel()
			if err != nil {
				s.Errorf("%s, after %s: %v", what, time.Since(s.begun), err)
				return
			}
		}
	})
}

// sample samples the process for a duration, and until there are enough samples for a check.
func (s *soak) sample(length time.Duration) {
	s.Helper()
	s.Log(sampleHead)
	tick := time.NewTicker(min(length/48, 5*time.Second))
	defer tick.Stop()
	for len(s.samples) < leastSamples || time.Since(s.begun) < length {
		<-tick.C
		look := s.sampleNow()
		s.samples = append(s.samples, look)
		s.Log(look)
	}
}

func (s *soak) sampleNow() (l sample) {
	s.Helper()
	s.handles.Lock()
	defer s.handles.Unlock()
	l.at, l.done = time.Since(s.begun), s.done.Load()
	l.goroutines = int64(runtime.NumGoroutine())
	fds, err := descriptors()
	s.must(err)
	l.fds = int64(fds)
	l.rss, err = resident()
	s.must(err)
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	l.heap = int64(mem.HeapAlloc)
	l.wal, l.file = s.sizeOf("-wal"), s.sizeOf("")
	l.rows = s.rows()
	l.kept = s.count("SELECT count(*) FROM weaver_tasks WHERE namespace = ?", jobsNamespace)
	return l
}

func (s *soak) sizeOf(suffix string) int64 {
	s.Helper()
	info, err := os.Stat(s.path + suffix)
	s.must(err)
	return info.Size()
}

// rows counts the rows in the namespace where tasks are deleted. It excludes workers (the engines, which come and
// go), statistics and the audit.
func (s *soak) rows() int64 {
	s.Helper()
	names, err := s.db.DB().QueryContext(s.Context(),
		"SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'namespace' WHERE m.type = 'table' AND m.name NOT IN ('weaver_audit', 'weaver_stats', 'weaver_workers')")
	s.must(err)
	defer names.Close()
	var parts []string
	for names.Next() {
		var name string
		s.must(names.Scan(&name))
		parts = append(parts, fmt.Sprintf("(SELECT count(*) FROM %s WHERE namespace = ?1)", name))
	}
	s.must(names.Err())
	return s.count("SELECT "+strings.Join(parts, "+"), weaver.DefaultNamespace)
}

func (s *soak) count(query string, args ...any) (n int64) {
	s.Helper()
	s.must(s.db.DB().QueryRowContext(s.Context(), query, args...).Scan(&n))
	return n
}
