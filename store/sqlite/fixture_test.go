package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// The suite in storetest specifies every store. The other tests cover the specific risks of
// this store: files, processes, transactions of callers, the group commit and the plans of
// statements.

const (
	fixNS   = "acme-test"
	fixType = "acme.test.own.v1"
	fixTTL  = 30 * time.Second
	// waitLimit is the maximum wait for an expected event before a test fails.
	waitLimit = time.Minute
)

// fixture is a store with short methods for tests.
type fixture struct {
	*testing.T
	db  *sqlite.DB
	ids *task.IDs
}

func fixtureOn(t *testing.T, db *sqlite.DB) *fixture {
	return &fixture{T: t, db: db, ids: task.NewIDs(nil)}
}

// fileFixture returns a fixture on a new file.
func fileFixture(t *testing.T, opts ...sqlite.Option) *fixture {
	t.Helper()
	return fixtureOn(t, openFile(t, filepath.Join(t.TempDir(), "weaver.db"), opts...))
}

func (f *fixture) draft(change ...func(*task.New)) task.New {
	n := task.New{
		ID: f.ids.New(), Type: fixType, Queue: task.DefaultQueue, Input: json.RawMessage(`{"n":1}`), SchemaVersion: 1,
		Priority: task.DefaultPriority, MaxAttempts: task.DefaultMaxAttempts, MaxRepairs: task.DefaultMaxRepairs,
		Backoff: task.DefaultBackoff, BackoffMax: task.DefaultBackoffMax,
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func (f *fixture) drafts(n int, change ...func(*task.New)) store.Submission {
	tasks := make([]task.New, n)
	for i := range tasks {
		tasks[i] = f.draft(change...)
	}
	return store.Submission{Tasks: tasks}
}

// bulky gives a task some pages of its own.
func bulky(n *task.New) {
	n.Input = json.RawMessage(`"` + strings.Repeat("x", 20_000) + `"`)
}

func (f *fixture) submit(ctx context.Context, sub store.Submission) error {
	_, err := f.db.Enqueue(ctx, fixNS, nil, sub)
	return err
}

// enqueue stores n tasks.
func (f *fixture) enqueue(n int, change ...func(*task.New)) []task.ID {
	f.Helper()
	sub := f.drafts(n, change...)
	if err := f.submit(f.Context(), sub); err != nil {
		f.Fatalf("Enqueue: %v", err)
	}
	return idsOf(sub)
}

func idsOf(sub store.Submission) []task.ID {
	var ids []task.ID
	for i := range sub.Tasks {
		ids = append(ids, sub.Tasks[i].ID)
	}
	return ids
}

// fixClaim returns a claim request of up to n tasks by a worker.
func fixClaim(worker store.WorkerID, n int) store.ClaimRequest {
	return store.ClaimRequest{
		Worker: worker, Name: "host:1", LeaseID: task.NewLeaseID(), TTL: fixTTL, Limit: n, Slots: n,
		Types: map[string]int{fixType: 1},
	}
}

// claim leases up to n tasks.
func (f *fixture) claim(worker store.WorkerID, n int) []store.Claimed {
	f.Helper()
	got, err := f.db.Claim(f.Context(), fixNS, fixClaim(worker, n))
	if err != nil {
		f.Fatalf("Claim: %v", err)
	}
	return got.Tasks
}

func (f *fixture) finish(claimed ...store.Claimed) {
	f.Helper()
	fins := make([]store.Finish, len(claimed))
	for i := range claimed {
		fins[i] = store.Finish{Lease: claimed[i].Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage(`null`), CodeVersion: 1}
	}
	got, err := f.db.Finish(f.Context(), fixNS, fins...)
	if err != nil {
		f.Fatalf("Finish: %v", err)
	}
	for _, r := range got {
		if r.Err != nil {
			f.Fatalf("Finish: %v", r.Err)
		}
	}
}

func (f *fixture) join(worker store.WorkerID) {
	f.Helper()
	if err := f.db.Join(f.Context(), fixNS, store.WorkerInfo{ID: worker, Name: "host:1", TTL: fixTTL}); err != nil {
		f.Fatalf("Join: %v", err)
	}
}

// sound checks that the store is consistent and holds exactly these tasks.
func (f *fixture) sound(want ...task.ID) {
	f.Helper()
	snap, err := f.db.Snapshot(f.Context(), fixNS)
	if err != nil {
		f.Fatalf("Snapshot: %v", err)
	}
	for _, v := range store.Check(snap) {
		f.Errorf("store.Check: %v", v)
	}
	stored := make(map[task.ID]bool, len(snap.Tasks))
	for i := range snap.Tasks {
		stored[snap.Tasks[i].ID] = true
	}
	for _, id := range want {
		if !stored[id] {
			f.Errorf("task %v is missing", id)
		}
		delete(stored, id)
	}
	for id := range stored {
		f.Errorf("task %v is stored, and should not be", id)
	}
}

// begin starts a transaction of a caller.
func (f *fixture) begin() *sql.Tx {
	f.Helper()
	tx, err := f.db.DB().BeginTx(f.Context(), nil)
	if err != nil {
		f.Fatalf("BeginTx: %v", err)
	}
	f.Cleanup(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			f.Errorf("Rollback: %v", err)
		}
	})
	return tx
}

// exec runs SQL of the user.
func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	if _, err := f.db.DB().ExecContext(f.Context(), query, args...); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
}

// count returns the only value of a query of the user.
func (f *fixture) count(query string, args ...any) (n int) {
	f.Helper()
	if err := f.db.DB().QueryRowContext(f.Context(), query, args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

// says checks that an error is of a kind and that its message has these parts.
func says(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v, want %q", err, kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message does not say %q:\n%v", part, err)
		}
	}
}

// notices subscribes to a store and returns a channel of its notices.
func (f *fixture) notices() <-chan store.Notice {
	f.Helper()
	ch := make(chan store.Notice, 1000)
	stop, _ := f.db.Notify(fixNS, nil, func(n store.Notice) {
		select {
		case ch <- n:
		default: // a test with more notices reads the first ones only
		}
	})
	f.Cleanup(stop)
	return ch
}

// await returns the first notice that ok accepts.
func (f *fixture) await(ch <-chan store.Notice, what string, ok func(store.Notice) bool) store.Notice {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), waitLimit)
	defer cancel()
	for {
		select {
		case n := <-ch:
			if ok(n) {
				return n
			}
		case <-ctx.Done():
			f.Fatalf("no notice of %s came", what)
		}
	}
}

// one returns the only value of a query of the user, as text.
func (f *fixture) one(query string) (text string) {
	f.Helper()
	if err := f.db.DB().QueryRowContext(f.Context(), query).Scan(&text); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return text
}

// fixHint returns a claim request for one task by its ID.
func fixHint(worker store.WorkerID, id task.ID) store.ClaimRequest {
	req := fixClaim(worker, 1)
	req.IDs = []task.ID{id}
	return req
}

// works runs a worker on the store. log returns its log since the last call; stop ends it and
// returns the error of Run.
func (f *fixture) works(cfg weaver.Config) (log func() string, stop func() error) {
	f.Helper()
	var text lockedText
	cfg.Namespace, cfg.Logger = fixNS, slog.New(slog.NewTextHandler(&text, nil))
	eng, err := weaver.New(f.db, cfg)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	return text.take, sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// lockedText is a buffer for a logger.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the text written since the last call.
func (l *lockedText) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// memoryFixture returns a fixture on a new database in memory.
func memoryFixture(t *testing.T) *fixture {
	t.Helper()
	db, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, db) })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fixtureOn(t, db)
}
