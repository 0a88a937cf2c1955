package events_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task/event"
)

// size is the size of a run.
type size struct {
	events  int // minimum number
	readers int
	cuts    int // per reader
	kills   int // of the API, and of the worker
	limit   time.Duration
}

func sizeOf(t *testing.T) size {
	t.Helper()
	switch text := os.Getenv("WEAVER_EVENTS"); text {
	case "":
		return size{events: 600, readers: 10, cuts: 10, kills: 2, limit: 15 * time.Minute}
	case "full":
		return size{events: 100_000, readers: 50, cuts: 20, kills: 3, limit: 50 * time.Minute}
	default:
		t.Fatalf("WEAVER_EVENTS is %q: want full, or nothing", text)
		return size{}
	}
}

// Readers that are cut off again and again see each event once, and those of a task in order, while the serving and
// writing processes are killed.
func TestEventsThroughKills(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weaver.db")
	run(t, path, sizeOf(t))
}

func TestEventsThroughKillsOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	t.Parallel()
	run(t, pgtest.Migrated(t, "events", func(url string) error {
		ctx := pgharness.With(context.Background(), pgharness.Settings{FsyncOff: true})
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(db.Migrate(ctx), db.Close(), pgtest.CheckTasks(url, "weaver"))
	}), sizeOf(t))
}

func run(t *testing.T, at string, size size) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), size.limit, errors.New("the time is up"))
	defer cancel()
	db, err := open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if m, ok := db.(interface{ Migrate(context.Context) error }); ok {
		if err := m.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.KeepEvents(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	addr := freeAddress(t)
	served, works := orders{"api", at, addr}, orders{"worker", at, ""}
	api, worker := start(t, served), start(t, works)
	readers := make([]*reader, size.readers)
	var reading sync.WaitGroup
	for i := range readers {
		r := &reader{no: i, addr: addr, cuts: cutsOf(rnd, size.cuts, size.events)}
		if i%5 == 4 { // the others read over HTTP
			r.client = client
		}
		readers[i] = r
		reading.Go(func() { r.run(ctx) })
	}

	release := func() error { return nil }
	if pg, ok := db.(*postgres.DB); ok {
		release = hold(ctx, pg, client)
	}
	began := time.Now()
	tasks := size.events / 3
	if err := enqueue(ctx, client, tasks); err != nil {
		t.Fatal(err)
	}
	for n := range size.kills {
		for first(readers) < int64((n+1)*size.events/(size.kills+1)) && ctx.Err() == nil {
			wait(ctx, 5*time.Millisecond)
		}
		t.Logf("kill %d after %s", n+1, time.Since(began).Round(time.Millisecond))
		api.kill()
		worker.kill()
		if n == 0 && strings.HasPrefix(at, "postgres://") {
			// Until the server has analyzed the table, each page of a reader scans the whole feed.
			if err := pgtest.Analyze(at); err != nil {
				t.Fatal(err)
			}
		}
		api, worker = start(t, served), start(t, works)
	}
	t.Logf("all were killed after %s", time.Since(began).Round(time.Millisecond))
	truth := settled(ctx, t, client, tasks)
	t.Logf("all succeeded after %s", time.Since(began).Round(time.Millisecond))
	if err := errors.Join(release(), ctx.Err()); err != nil {
		t.Fatal(err)
	}
	if _, err := end.Enqueue(ctx, client, 1); err != nil {
		t.Fatal(err)
	}
	want := kept(ctx, t, client, truth)
	reading.Wait()
	for _, r := range readers {
		switch at := difference(r.ids, want); {
		case r.err != nil:
			t.Errorf("reader %d: %v", r.no, r.err)
		case at >= 0:
			t.Errorf("reader %d saw %d events of %d; they differ at number %d", r.no, len(r.ids), len(want), at)
		case len(r.cuts) > 0:
			t.Errorf("reader %d has %d cuts left", r.no, len(r.cuts))
		}
	}
	t.Logf("%d events of %d tasks, %d readers, %s", len(want), tasks, len(readers), time.Since(began).Round(time.Millisecond))
}

// hold has transactions of a user enqueue tasks and stay open while others commit behind them. Until release is
// called, nearly always one is open. Their events come late, and no reader may have skipped them.
func hold(ctx context.Context, db *postgres.DB, c *weaver.Client) (release func() error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			err := heldBack(ctx, db, c, n)
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() error { stop(); return <-ended }
}

// heldBack enqueues a task and commits after a while.
func heldBack(ctx context.Context, db *postgres.DB, c *weaver.Client, n int) error {
	whole := context.WithoutCancel(ctx)
	tx, err := db.Pool().Begin(whole)
	if err != nil {
		return err
	}
	if _, err := held.Enqueue(whole, c.InTx(postgres.Tx(tx)), n); err != nil {
		return errors.Join(err, tx.Rollback(whole))
	}
	wait(ctx, 50*time.Millisecond)
	return tx.Commit(whole)
}

// first returns the number of events seen by the reader that is furthest.
func first(readers []*reader) (most int64) {
	for _, r := range readers {
		most = max(most, r.seen.Load())
	}
	return most
}

// difference returns the index of the first difference of two lists, or -1.
func difference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func enqueue(ctx context.Context, c *weaver.Client, n int) error {
	for from := 0; from < n; from += 100 {
		var drafts []weaver.Draft
		for i := from; i < min(n, from+100); i++ {
			drafts = append(drafts, ping.With(i))
		}
		if _, err := c.EnqueueTasks(ctx, drafts...); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until all tasks succeeded and returns the number of attempts of each.
func settled(ctx context.Context, t *testing.T, c *weaver.Client, n int) map[weaver.TaskID]int {
	t.Helper()
	for ctx.Err() == nil {
		attempts := map[weaver.TaskID]int{}
		for f := (weaver.Filter{States: []weaver.State{weaver.StateSucceeded}, Limit: 1000}); ; {
			page, next, err := c.List(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				attempts[page[i].ID] = page[i].AttemptNo
			}
			if f.After = next; next == "" {
				break
			}
		}
		if len(attempts) == n {
			return attempts
		}
		wait(ctx, 100*time.Millisecond)
	}
	left, _, err := c.List(context.WithoutCancel(ctx), weaver.Filter{States: []weaver.State{
		weaver.StatePending, weaver.StateReady, weaver.StateRunning, weaver.StateBlocked, weaver.StateFailed, weaver.StateCancelled,
	}, Limit: 10})
	for i := range left {
		t.Logf("task %s is %s after attempt %d and %d crashes: %+v", left[i].ID, left[i].State, left[i].AttemptNo, left[i].CrashCount, left[i])
	}
	t.Fatalf("the tasks did not end: %v", errors.Join(context.Cause(ctx), err))
	return nil
}

// kept reads all events again and compares them with the rows of the tasks. It returns their cursors.
func kept(ctx context.Context, t *testing.T, c *weaver.Client, attempts map[weaver.TaskID]int) (ids []string) {
	t.Helper()
	lives := map[weaver.TaskID][]string{}
	numbers := map[weaver.TaskID][]int64{}
	for ev, err := range c.Events(ctx, event.FeedRequest{After: event.FeedOldest}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ev.Cursor)
		h := ev.Event.Head()
		if h.TaskType == end.Name() {
			break
		}
		if h.TaskType == held.Name() {
			continue
		}
		lives[h.TaskID] = append(lives[h.TaskID], ev.Event.Type())
		numbers[h.TaskID] = append(numbers[h.TaskID], h.Sequence)
	}
	if len(lives) != len(attempts) {
		t.Errorf("there are events of %d tasks, want %d", len(lives), len(attempts))
	}
	for id, n := range attempts {
		if problem := badLife(lives[id], n); problem != "" {
			t.Errorf("task %s: %s: %v", id, problem, lives[id])
		}
		if !slices.IsSorted(numbers[id]) {
			t.Errorf("task %s: the numbers of its events are %v", id, numbers[id])
		}
	}
	position := func(id string) int64 { n, _ := strconv.ParseInt(id, 10, 64); return n }
	if !slices.IsSortedFunc(ids, func(a, b string) int { return int(position(a) - position(b)) }) {
		t.Error("cursors do not rise")
	}
	return ids
}

// badLife describes the error in the events of a task that succeeded in a number of attempts, or returns "".
func badLife(life []string, attempts int) string {
	count := map[string]int{}
	open := false
	for _, name := range life {
		count[name]++
		switch name {
		case "task.started":
			if open {
				return "an attempt starts before the one before has ended"
			}
			open = true
		case "log.written":
			if !open {
				return "a line outside an attempt"
			}
		case "task.succeeded", "task.retrying", "task.lease_lost", "task.released":
			if !open {
				return "an attempt ends that did not start"
			}
			open = false
		case "task.enqueued":
		default:
			return "an event that cannot be: " + name
		}
	}
	switch {
	case len(life) == 0 || life[0] != "task.enqueued" || count["task.enqueued"] != 1:
		return "it does not begin with task.enqueued, once"
	case life[len(life)-1] != "task.succeeded" || count["task.succeeded"] != 1:
		return "it does not end with task.succeeded, once"
	case count["task.started"] != attempts:
		return fmt.Sprintf("%d attempts start, want %d", count["task.started"], attempts)
	}
	return ""
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
