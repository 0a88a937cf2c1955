package storehook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// hooked implements store.Store.
type hooked struct {
	below store.Store
	hooks *Hooks
}

// Enqueue implements store.Producer.
func (s *hooked) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	return through(ctx, s, "Enqueue", s.hooks.Enqueue, ns, Submission{tx, sub},
		func(below store.Store, ctx context.Context, ns string, a Submission) ([]store.Enqueued, error) {
			return below.Enqueue(ctx, ns, a.Tx, a.Submission)
		})
}

// Operate implements store.Producer.
func (s *hooked) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	return through(ctx, s, "Operate", s.hooks.Operate, ns, cmds, batch(store.Store.Operate))
}

// Join implements store.Worker.
func (s *hooked) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	_, err := through(ctx, s, "Join", s.hooks.Join, ns, w, noAnswer(store.Store.Join))
	return err
}

// Leave implements store.Worker.
func (s *hooked) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	_, err := through(ctx, s, "Leave", s.hooks.Leave, ns, id, noAnswer(store.Store.Leave))
	return err
}

// Claim implements store.Worker.
func (s *hooked) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return through(ctx, s, "Claim", s.hooks.Claim, ns, req, store.Store.Claim)
}

// Heartbeat implements store.Worker.
func (s *hooked) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	return through(ctx, s, "Heartbeat", s.hooks.Heartbeat, ns, req, store.Store.Heartbeat)
}

// Finish implements store.Worker.
func (s *hooked) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	return through(ctx, s, "Finish", s.hooks.Finish, ns, fins, batch(store.Store.Finish))
}

// Record implements store.Worker.
func (s *hooked) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	return through(ctx, s, "Record", s.hooks.Record, ns, recs, batch(store.Store.Record))
}

// Reap implements store.Worker.
func (s *hooked) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	return through(ctx, s, "Reap", s.hooks.Reap, ns, req, store.Store.Reap)
}

// Collect implements store.Worker.
func (s *hooked) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	return through(ctx, s, "Collect", s.hooks.Collect, ns, req, store.Store.Collect)
}

// Ready implements store.Reader.
func (s *hooked) Ready(ctx context.Context) error {
	_, err := through(ctx, s, "Ready", s.hooks.Ready, "", None{},
		func(below store.Store, ctx context.Context, _ string, _ None) (None, error) {
			return None{}, below.Ready(ctx)
		})
	return err
}

// Tasks implements store.Reader.
func (s *hooked) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	return through(ctx, s, "Tasks", s.hooks.Tasks, ns, ids, batch(store.Store.Tasks))
}

// List implements store.Reader.
func (s *hooked) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	p, err := through(ctx, s, "List", s.hooks.List, ns, f, paged(store.Store.List))
	return p.Rows, p.Next, err
}

// History implements store.Reader.
func (s *hooked) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	return through(ctx, s, "History", s.hooks.History, ns, id, store.Store.History)
}

// Needs implements store.Reader.
func (s *hooked) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	return through(ctx, s, "Needs", s.hooks.Needs, ns, id, store.Store.Needs)
}

// Jobs implements store.Reader.
func (s *hooked) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	p, err := through(ctx, s, "Jobs", s.hooks.Jobs, ns, f, paged(store.Store.Jobs))
	return p.Rows, p.Next, err
}

// Overview implements store.Reader.
func (s *hooked) Overview(ctx context.Context, ns string, req store.OverviewRequest) (store.Overview, error) {
	return through(ctx, s, "Overview", s.hooks.Overview, ns, req, store.Store.Overview)
}

// Graph implements store.Reader.
func (s *hooked) Graph(ctx context.Context, ns string, req store.GraphRequest) (store.Graph, error) {
	return through(ctx, s, "Graph", s.hooks.Graph, ns, req, store.Store.Graph)
}

// Audit implements store.Reader.
func (s *hooked) Audit(ctx context.Context, ns string, f store.AuditFilter) ([]store.AuditEntry, string, error) {
	p, err := through(ctx, s, "Audit", s.hooks.Audit, ns, f, paged(store.Store.Audit))
	return p.Rows, p.Next, err
}

// Snapshot implements store.Reader.
func (s *hooked) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	return through(ctx, s, "Snapshot", s.hooks.Snapshot, ns, None{}, noArgs(store.Store.Snapshot))
}

// Transient implements store.TransientErrors, for any store below.
func (s *hooked) Transient(err error) bool { return store.Transient(s.below, err) }

type notifier struct{ s *hooked }

// Events implements store.EventReader. A store below that is none keeps no events.
func (s *hooked) Events(ctx context.Context, ns string, id task.ID, after int64, limit int) ([]store.EventRow, error) {
	return through(ctx, s, "Events", nil, ns, id, func(below store.Store, ctx context.Context, ns string, id task.ID) ([]store.EventRow, error) {
		reader, ok := below.(store.EventReader)
		if !ok {
			return nil, nil
		}
		return reader.Events(ctx, ns, id, after, limit)
	})
}

// Types implements store.TypeReader. A store below that is none knows no type.
func (s *hooked) Types(ctx context.Context, ns string, names ...string) ([]store.AnnouncedType, error) {
	return through(ctx, s, "Types", nil, ns, names, func(below store.Store, ctx context.Context, ns string, names []string) ([]store.AnnouncedType, error) {
		return store.TypesOf(ctx, below, ns, names...)
	})
}

// Notify implements store.Notifier.
func (n notifier) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	next := func(fn func(store.Notice)) (func(), bool) { return n.s.below.(store.Notifier).Notify(ns, fn) }
	if n.s.hooks.Notify != nil {
		return n.s.hooks.Notify(fn, next)
	}
	return next(fn)
}

// Await implements store.Awaiter, unless the test hides notices or makes them itself: the
// store below may not do it.
func (s *hooked) Await(ns string, ids func() []task.ID, fn func(store.Notice)) (stop func(), ok bool) {
	if a, is := s.below.(store.Awaiter); is && s.hooks.Notify == nil && s.hooks.Hide&Notifier == 0 {
		return a.Await(ns, ids, fn)
	}
	return nil, false
}

// Wake implements store.Waker, for any store below.
func (s *hooked) Wake(ns string) {
	if w, ok := s.below.(store.Waker); ok {
		w.Wake(ns)
	}
}

type stepTxer struct{ s *hooked }

// StepTx implements store.StepTxer.
func (x stepTxer) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	return through(ctx, x.s, "StepTx", x.s.hooks.StepTx, ns, &StepTx{rec, limit, fn},
		func(below store.Store, ctx context.Context, ns string, a *StepTx) (store.RecordResult, error) {
			return below.(store.StepTxer).StepTx(ctx, ns, a.Record, a.Limit, a.Func)
		})
}

type waitingClaimer struct{ s *hooked }

// ClaimOrWait implements store.WaitingClaimer.
func (w waitingClaimer) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, wait time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	return through(ctx, w.s, "Claim", w.s.hooks.Claim, ns, req,
		func(below store.Store, ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
			return below.(store.WaitingClaimer).ClaimOrWait(ctx, ns, req, wait, wake)
		})
}

// batch, noAnswer, paged and noArgs give methods the shape that through wants.

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

// Scrub implements store.Scrubber: a store below that is none has nothing to do.
func (s *hooked) Scrub(ctx context.Context, ns string) (store.Scrubbed, error) {
	return through(ctx, s, "Scrub", nil, ns, None{}, func(below store.Store, ctx context.Context, ns string, _ None) (store.Scrubbed, error) {
		if b, ok := below.(store.Scrubber); ok {
			return b.Scrub(ctx, ns)
		}
		return store.Scrubbed{}, nil
	})
}

// Warnings implements store.Warner: there are none when the store below does not.
func (s *hooked) Warnings(ctx context.Context) []store.Warning {
	if w, ok := s.below.(store.Warner); ok {
		return w.Warnings(ctx)
	}
	return nil
}

// Session implements store.SessionKeeper: there is none when the store below keeps none.
func (s *hooked) Session(ns string, id store.WorkerID) (store.Session, bool) {
	if s.hooks.Session != nil { // it has no context that Around could be given
		return s.hooks.Session(id)
	}
	return store.SessionOf(s.below, ns, id)
}

// Stats is what keeps the statistics of the store below, if that does. Their calls pass
// Around.
func (s *hooked) Stats() (store.StatsKeeper, bool) {
	if _, ok := store.StatsOf(s.below); !ok {
		return nil, false
	}
	return statsKeeper{s}, true
}

type statsKeeper struct{ s *hooked }

// keeperOf is that of the store that Around named.
func keeperOf(below store.Store) store.StatsKeeper {
	keeper, _ := store.StatsOf(below)
	return keeper
}

// WriteStats implements store.StatsKeeper.
func (k statsKeeper) WriteStats(ctx context.Context, ns string, rows ...store.StatRow) error {
	_, err := through(ctx, k.s, "WriteStats", nil, ns, rows, func(below store.Store, ctx context.Context, ns string, rows []store.StatRow) (None, error) {
		return None{}, keeperOf(below).WriteStats(ctx, ns, rows...)
	})
	return err
}

// ReadStats implements store.StatsKeeper.
func (k statsKeeper) ReadStats(ctx context.Context, ns string, q store.StatsQuery) (store.StatsPage, error) {
	return through(ctx, k.s, "ReadStats", nil, ns, q, func(below store.Store, ctx context.Context, ns string, q store.StatsQuery) (store.StatsPage, error) {
		return keeperOf(below).ReadStats(ctx, ns, q)
	})
}

// MergeStats implements store.StatsKeeper.
func (k statsKeeper) MergeStats(ctx context.Context, ns string, keep time.Duration) (store.StatsMerged, error) {
	return through(ctx, k.s, "MergeStats", nil, ns, keep, func(below store.Store, ctx context.Context, ns string, keep time.Duration) (store.StatsMerged, error) {
		return keeperOf(below).MergeStats(ctx, ns, keep)
	})
}
