// Package storehook lets a test observe and change the calls that reach a store, without
// a wrapper type for each test.
//
// [New] returns a store that forwards every method of the port to the store below it.
// Each call passes [Hooks].Around, which is the same for all methods, and then the
// method's own hook, which gets its arguments and result:
//
//	s := storehook.New(below, &storehook.Hooks{
//		Finish: func(ctx context.Context, fins []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
//			time.Sleep(time.Second)
//			return next()
//		},
//	})
//
// Hooks run on the goroutine of the caller and may run concurrently. The returned store
// has the capabilities of the store below, without those that the test hides.
//
// A method that is added to the port gets a hook in Hooks and a method in methods.go; no
// other code forwards the port by hand.
package storehook

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Hook replaces one method. next calls the method of the store below with the arguments
// of the call. A hook may call it any number of times; the method returns the hook's
// result.
type Hook[A, R any] func(ctx context.Context, args A, next func() (R, error)) (R, error)

// Hooks intercept the calls of a store. All of them may be nil.
type Hooks struct {
	// Around is called for every call with a context, except Warnings. next makes the
	// call, through the method's own hook, and returns its error. The caller gets the
	// error that Around returns. It also gets the result if that error is nil or wraps
	// the last error of next.
	Around func(ctx context.Context, c *Call, next func(context.Context) error) error

	Enqueue   Hook[Submission, []store.Enqueued]
	Operate   Hook[[]store.Command, []store.CommandResult]
	Join      Hook[store.WorkerInfo, None]
	Leave     Hook[store.WorkerID, None]
	Claim     Hook[store.ClaimRequest, store.ClaimResult]
	Heartbeat Hook[store.HeartbeatRequest, []store.Beat]
	Finish    Hook[[]store.Finish, []store.FinishResult]
	Record    Hook[[]store.Record, []store.RecordResult]
	Reap      Hook[store.ReapRequest, store.ReapResult]
	Collect   Hook[store.CollectRequest, store.CollectResult]
	Ready     Hook[None, None]
	Tasks     Hook[[]task.ID, []task.Task]
	List      Hook[store.Filter, Page[task.Task]]
	History   Hook[task.ID, store.History]
	Needs     Hook[task.ID, []store.Need]
	Jobs      Hook[store.JobFilter, Page[task.Job]]
	Overview  Hook[store.OverviewRequest, store.Overview]
	Graph     Hook[store.GraphRequest, store.Graph]
	Audit     Hook[store.AuditFilter, Page[store.AuditEntry]]
	Snapshot  Hook[None, *store.Snapshot]

	Blobs           Hook[store.BlobFilter, []store.BlobUse]
	Artifact        Hook[task.ID, task.Artifact]
	RewriteValues   Hook[Rewrite, Rewritten]
	Types           Hook[[]string, []store.AnnouncedType]
	Scan            Hook[func(*store.Part) error, None]
	Scrub           Hook[None, store.Scrubbed]
	Publish         Hook[store.PublishRequest, store.PublishResult]
	Schedules       Hook[store.ScheduleFilter, store.SchedulePage]
	Limits          Hook[store.LimitFilter, store.LimitPage]
	Migrate         Hook[None, None]
	MigrationStatus Hook[None, []store.MigrationStatus]
	Orphans         Hook[[]task.ID, []task.ID]
	Events          Hook[EventsAfter, []store.EventRow]
	Feed            Hook[store.FeedRequest, store.FeedPage]
	WriteStats      Hook[[]store.StatRow, None]
	ReadStats       Hook[store.StatsQuery, store.StatsPage]

	StepTx Hook[*StepTx, store.RecordResult]
	// Notify replaces Notify. next calls Notify of the store below without awaited tasks.
	Notify func(fn func(store.Notice), next func(func(store.Notice)) (func(), bool)) (stop func(), complete bool)

	Session func(id store.WorkerID) (store.Session, bool)

	Hide store.Capabilities // capabilities that the returned store lacks
}

// Call is one call as Around gets it.
type Call struct {
	Method string      // its name in the port
	Store  store.Store // the store that the call goes to; Around may replace it
}

// None is the type of missing arguments and results.
type None = struct{}

// Submission holds the arguments of Enqueue.
type Submission struct {
	Tx store.Tx
	store.Submission
}

// StepTx holds the arguments of StepTx. A hook may change them before it calls next.
type StepTx struct {
	Record store.Record
	Limit  time.Duration
	Func   func(context.Context, store.Tx) (json.RawMessage, error)
}

// Page is the result of a method that returns a cursor.
type Page[T any] struct {
	Rows []T
	Next string
}

// Rewrite holds the arguments of RewriteValues, and Rewritten its results.
type (
	Rewrite struct {
		After string
		Limit int
		Func  store.RewriteFunc
	}
	Rewritten struct {
		Swapped int
		Next    string
	}
)

// EventsAfter holds the arguments of Events.
type EventsAfter struct {
	Task  task.ID
	After int64
	Limit int
}

// New returns a store that calls the hooks and forwards to the store below, which may be
// nil if every called method has a hook. A test may set hooks after New, before the first
// call.
func New(below store.Store, h *Hooks) store.Store { return &hooked{below, h} }

// through makes one call through Around and the method's hook.
func through[A, R any](ctx context.Context, s *hooked, method string, hook Hook[A, R], ns string, args A,
	call func(below store.Store, ctx context.Context, ns string, args A) (R, error),
) (R, error) {
	var res R
	var last error
	c := &Call{Method: method, Store: s.Store}
	next := func(ctx context.Context) error {
		below := func() (R, error) { return call(c.Store, ctx, ns, args) }
		if hook != nil {
			res, last = hook(ctx, args, below)
		} else {
			res, last = below()
		}
		return last
	}
	if s.hooks.Around == nil {
		err := next(ctx)
		return res, err
	}
	err := s.hooks.Around(ctx, c, next)
	if err != nil && !errors.Is(err, last) {
		var none R
		return none, err
	}
	return res, err
}
