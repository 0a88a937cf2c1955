package simtest_test

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// gate is a lock whose waiters let the bubble's clock go on. With a mutex they
// would not, and if its holder sleeps, nobody ever wakes up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// pass waits for the gate, and returns what opens it for the next one.
func (g gate) pass() (leave func()) {
	g <- struct{}{}
	return func() { <-g }
}

// gatedFile is a database file that is read by one at a time. SQLite sleeps
// while a connection is opened beside others' writes, and the pool of readers
// holds a mutex meanwhile: see gate.
type gatedFile struct {
	*sqlite.DB
	gate gate
}

func newGatedFile(db *sqlite.DB) gatedFile { return gatedFile{db, newGate()} }

// Reap implements store.Worker. It reads first.
func (f gatedFile) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	defer f.gate.pass()()
	return f.DB.Reap(ctx, ns, req)
}

// Ready implements store.Reader.
func (f gatedFile) Ready(ctx context.Context) error {
	defer f.gate.pass()()
	return f.DB.Ready(ctx)
}

// Tasks implements store.Reader.
func (f gatedFile) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	defer f.gate.pass()()
	return f.DB.Tasks(ctx, ns, ids...)
}

// List implements store.Reader.
func (f gatedFile) List(ctx context.Context, ns string, filter store.Filter) ([]task.Task, string, error) {
	defer f.gate.pass()()
	return f.DB.List(ctx, ns, filter)
}

// History implements store.Reader.
func (f gatedFile) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	defer f.gate.pass()()
	return f.DB.History(ctx, ns, id)
}

// Jobs implements store.Reader.
func (f gatedFile) Jobs(ctx context.Context, ns string, filter store.JobFilter) ([]task.Job, string, error) {
	defer f.gate.pass()()
	return f.DB.Jobs(ctx, ns, filter)
}

// Queues implements store.Reader.
func (f gatedFile) Queues(ctx context.Context, ns string) ([]store.Queue, error) {
	defer f.gate.pass()()
	return f.DB.Queues(ctx, ns)
}

// Snapshot implements store.Reader.
func (f gatedFile) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	defer f.gate.pass()()
	return f.DB.Snapshot(ctx, ns)
}
