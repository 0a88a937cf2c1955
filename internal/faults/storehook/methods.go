package storehook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// hooked is the store below; each call with a context passes through the hooks.
type hooked struct {
	store.Store
	hooks *Hooks
}

// Capabilities implements store.Core.
func (s *hooked) Capabilities() store.Capabilities {
	if s.Store == nil {
		return 0
	}
	return s.Store.Capabilities() &^ s.hooks.Hide
}

// Notify implements store.Observe. With a hook the store below awaits no tasks: the test
// sends the notices itself.
func (s *hooked) Notify(ns string, awaited func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	switch {
	case !s.Capabilities().Has(store.CanNotify):
		return store.Unsupported{}.Notify(ns, awaited, fn)
	case s.hooks.Notify == nil:
		return s.Store.Notify(ns, awaited, fn)
	}
	return s.hooks.Notify(fn, func(fn func(store.Notice)) (func(), bool) { return s.Store.Notify(ns, nil, fn) })
}

// Session implements store.Ops.
func (s *hooked) Session(ns string, id store.WorkerID) (store.Session, bool) {
	if s.hooks.Session != nil { // it has no context to pass to Around
		return s.hooks.Session(id)
	}
	return s.Store.Session(ns, id)
}

// Enqueue implements store.Core.
func (s *hooked) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	return through(ctx, s, "Enqueue", s.hooks.Enqueue, ns, Submission{tx, sub},
		func(below store.Store, ctx context.Context, ns string, a Submission) ([]store.Enqueued, error) {
			return below.Enqueue(ctx, ns, a.Tx, a.Submission)
		})
}

// Operate implements store.Ops.
func (s *hooked) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	return through(ctx, s, "Operate", s.hooks.Operate, ns, cmds, batch(store.Store.Operate))
}

// Join implements store.Core.
func (s *hooked) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	_, err := through(ctx, s, "Join", s.hooks.Join, ns, w, noAnswer(store.Store.Join))
	return err
}

// Leave implements store.Core.
func (s *hooked) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	_, err := through(ctx, s, "Leave", s.hooks.Leave, ns, id, noAnswer(store.Store.Leave))
	return err
}

// Claim implements store.Core.
func (s *hooked) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return through(ctx, s, "Claim", s.hooks.Claim, ns, req, store.Store.Claim)
}

// Heartbeat implements store.Core.
func (s *hooked) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	return through(ctx, s, "Heartbeat", s.hooks.Heartbeat, ns, req, store.Store.Heartbeat)
}

// Finish implements store.Core.
func (s *hooked) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	return through(ctx, s, "Finish", s.hooks.Finish, ns, fins, batch(store.Store.Finish))
}

// Record implements store.Core.
func (s *hooked) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	return through(ctx, s, "Record", s.hooks.Record, ns, recs, batch(store.Store.Record))
}

// Reap implements store.Core.
func (s *hooked) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	return through(ctx, s, "Reap", s.hooks.Reap, ns, req, store.Store.Reap)
}

// Collect implements store.Ops.
func (s *hooked) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	return through(ctx, s, "Collect", s.hooks.Collect, ns, req, store.Store.Collect)
}

// Ready implements store.Core.
func (s *hooked) Ready(ctx context.Context) error {
	_, err := through(ctx, s, "Ready", s.hooks.Ready, "", None{}, bare(store.Store.Ready))
	return err
}

// Tasks implements store.Observe.
func (s *hooked) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	return through(ctx, s, "Tasks", s.hooks.Tasks, ns, ids, batch(store.Store.Tasks))
}

// List implements store.Observe.
func (s *hooked) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	p, err := through(ctx, s, "List", s.hooks.List, ns, f, paged(store.Store.List))
	return p.Rows, p.Next, err
}

// History implements store.Observe.
func (s *hooked) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	return through(ctx, s, "History", s.hooks.History, ns, id, store.Store.History)
}

// Needs implements store.Flow.
func (s *hooked) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	return through(ctx, s, "Needs", s.hooks.Needs, ns, id, store.Store.Needs)
}

// Jobs implements store.Flow.
func (s *hooked) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	p, err := through(ctx, s, "Jobs", s.hooks.Jobs, ns, f, paged(store.Store.Jobs))
	return p.Rows, p.Next, err
}

// Overview implements store.Observe.
func (s *hooked) Overview(ctx context.Context, ns string, req store.OverviewRequest) (store.Overview, error) {
	return through(ctx, s, "Overview", s.hooks.Overview, ns, req, store.Store.Overview)
}

// Graph implements store.Flow.
func (s *hooked) Graph(ctx context.Context, ns string, req store.GraphRequest) (store.Graph, error) {
	return through(ctx, s, "Graph", s.hooks.Graph, ns, req, store.Store.Graph)
}

// Audit implements store.Observe.
func (s *hooked) Audit(ctx context.Context, ns string, f store.AuditFilter) ([]store.AuditEntry, string, error) {
	p, err := through(ctx, s, "Audit", s.hooks.Audit, ns, f, paged(store.Store.Audit))
	return p.Rows, p.Next, err
}

// Snapshot implements store.Data.
func (s *hooked) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	return through(ctx, s, "Snapshot", s.hooks.Snapshot, ns, None{}, noArgs(store.Store.Snapshot))
}

// StepTx implements store.Flow.
func (s *hooked) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	return through(ctx, s, "StepTx", s.hooks.StepTx, ns, &StepTx{rec, limit, fn},
		func(below store.Store, ctx context.Context, ns string, a *StepTx) (store.RecordResult, error) {
			return below.StepTx(ctx, ns, a.Record, a.Limit, a.Func)
		})
}

// Blobs implements store.Data.
func (s *hooked) Blobs(ctx context.Context, ns string, f store.BlobFilter) ([]store.BlobUse, error) {
	return through(ctx, s, "Blobs", s.hooks.Blobs, ns, f, store.Store.Blobs)
}

// Artifact implements store.Data.
func (s *hooked) Artifact(ctx context.Context, ns string, id task.ID) (task.Artifact, error) {
	return through(ctx, s, "Artifact", s.hooks.Artifact, ns, id, store.Store.Artifact)
}

// RewriteValues implements store.Data.
func (s *hooked) RewriteValues(ctx context.Context, ns, after string, limit int, fn store.RewriteFunc) (int, string, error) {
	got, err := through(ctx, s, "RewriteValues", s.hooks.RewriteValues, ns, Rewrite{after, limit, fn},
		func(below store.Store, ctx context.Context, ns string, a Rewrite) (r Rewritten, err error) {
			r.Swapped, r.Next, err = below.RewriteValues(ctx, ns, a.After, a.Limit, a.Func)
			return r, err
		})
	return got.Swapped, got.Next, err
}

// Types implements store.Data.
func (s *hooked) Types(ctx context.Context, ns string, names ...string) ([]store.AnnouncedType, error) {
	return through(ctx, s, "Types", s.hooks.Types, ns, names, batch(store.Store.Types))
}

// Scan implements store.Data.
func (s *hooked) Scan(ctx context.Context, ns string, fn func(*store.Part) error) error {
	_, err := through(ctx, s, "Scan", s.hooks.Scan, ns, fn, noAnswer(store.Store.Scan))
	return err
}

// Scrub implements store.Data.
func (s *hooked) Scrub(ctx context.Context, ns string) (store.Scrubbed, error) {
	return through(ctx, s, "Scrub", s.hooks.Scrub, ns, None{}, noArgs(store.Store.Scrub))
}

// Publish implements store.Ops.
func (s *hooked) Publish(ctx context.Context, ns string, req store.PublishRequest) (store.PublishResult, error) {
	return through(ctx, s, "Publish", s.hooks.Publish, ns, req, store.Store.Publish)
}

// Schedules implements store.Observe.
func (s *hooked) Schedules(ctx context.Context, ns string, f store.ScheduleFilter) (store.SchedulePage, error) {
	return through(ctx, s, "Schedules", s.hooks.Schedules, ns, f, store.Store.Schedules)
}

// Limits implements store.Observe.
func (s *hooked) Limits(ctx context.Context, ns string, f store.LimitFilter) (store.LimitPage, error) {
	return through(ctx, s, "Limits", s.hooks.Limits, ns, f, store.Store.Limits)
}

// Migrate implements store.Ops.
func (s *hooked) Migrate(ctx context.Context) error {
	_, err := through(ctx, s, "Migrate", s.hooks.Migrate, "", None{}, bare(store.Store.Migrate))
	return err
}

// MigrationStatus implements store.Ops.
func (s *hooked) MigrationStatus(ctx context.Context) ([]store.MigrationStatus, error) {
	return through(ctx, s, "MigrationStatus", s.hooks.MigrationStatus, "", None{},
		func(below store.Store, ctx context.Context, _ string, _ None) ([]store.MigrationStatus, error) {
			return below.MigrationStatus(ctx)
		})
}

// Orphans implements store.Observe.
func (s *hooked) Orphans(ctx context.Context, ns string, ids ...task.ID) ([]task.ID, error) {
	return through(ctx, s, "Orphans", s.hooks.Orphans, ns, ids, batch(store.Store.Orphans))
}

// Events implements store.Observe.
func (s *hooked) Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]store.EventRow, error) {
	return through(ctx, s, "Events", s.hooks.Events, ns, EventsAfter{id, after, limit},
		func(below store.Store, ctx context.Context, ns string, a EventsAfter) ([]store.EventRow, error) {
			return below.Events(ctx, ns, a.Task, a.After, a.Limit)
		})
}

// Feed implements store.Observe.
func (s *hooked) Feed(ctx context.Context, ns string, req store.FeedRequest) (store.FeedPage, error) {
	return through(ctx, s, "Feed", s.hooks.Feed, ns, req, store.Store.Feed)
}

// WriteStats implements store.Observe.
func (s *hooked) WriteStats(ctx context.Context, ns string, rows ...store.StatRow) error {
	_, err := through(ctx, s, "WriteStats", s.hooks.WriteStats, ns, rows, func(below store.Store, ctx context.Context, ns string, rows []store.StatRow) (None, error) {
		return None{}, below.WriteStats(ctx, ns, rows...)
	})
	return err
}

// ReadStats implements store.Observe.
func (s *hooked) ReadStats(ctx context.Context, ns string, q store.StatsQuery) (store.StatsPage, error) {
	return through(ctx, s, "ReadStats", s.hooks.ReadStats, ns, q, store.Store.ReadStats)
}

// batch, noAnswer, paged, noArgs and bare adapt methods to the signature that through requires.

func batch[A, R any](f func(store.Store, context.Context, string, ...A) (R, error)) func(store.Store, context.Context, string, []A) (R, error) {
	return func(s store.Store, ctx context.Context, ns string, args []A) (R, error) {
		return f(s, ctx, ns, args...)
	}
}

func noAnswer[A any](f func(store.Store, context.Context, string, A) error) func(store.Store, context.Context, string, A) (None, error) {
	return func(s store.Store, ctx context.Context, ns string, args A) (None, error) {
		return None{}, f(s, ctx, ns, args)
	}
}

func paged[A, T any](f func(store.Store, context.Context, string, A) ([]T, string, error)) func(store.Store, context.Context, string, A) (Page[T], error) {
	return func(s store.Store, ctx context.Context, ns string, args A) (Page[T], error) {
		rows, next, err := f(s, ctx, ns, args)
		return Page[T]{rows, next}, err
	}
}

func noArgs[R any](f func(store.Store, context.Context, string) (R, error)) func(store.Store, context.Context, string, None) (R, error) {
	return func(s store.Store, ctx context.Context, ns string, _ None) (R, error) { return f(s, ctx, ns) }
}

func bare(f func(store.Store, context.Context) error) func(store.Store, context.Context, string, None) (None, error) {
	return func(s store.Store, ctx context.Context, _ string, _ None) (None, error) { return None{}, f(s, ctx) }
}
