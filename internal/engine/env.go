package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/internal/build"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// env is the shared state of the roles of one Run. It is complete before the first role starts; after that only the
// slots and the troubles change, which have their own mutex.
type env struct {
	Config
	worker    store.WorkerID
	name      string
	host      string
	handled   []string                                       // task types, sorted
	schemas   map[string]int                                 // newest readable schema version, by task type
	drafts    map[string]func(*task.Draft) (task.New, error) // Handler.Draft by task type
	repairs   map[string]json.RawMessage                     // Handler.Schema of the types whose inputs are repaired here
	origin    time.Time                                      // zero of the monotonic clock for offsets kept in atomics
	work      context.Context                                // for handlers and calls that a drain must not interrupt; ends at the hard stop
	complete  bool                                           // the store's notices are complete: no polling
	leaving   atomic.Bool                                    // attempts end at their next step: a drain with LeaveAtSteps
	repeats   repeats                                        // warnings of loops
	unnoticed bool                                           // the store does not notify
	slots     *slots
	troubles  *troubles
	questions *questions
	stats     *stats // nil: the store keeps no statistics
	unknown   *unknownTypes
	hints     *hintCounts
}

// offset returns an instant as an offset from the origin.
func (e *env) offset(t time.Time) int64 { return int64(t.Sub(e.origin)) }

// lease returns the clock of this worker's leases.
func (e *env) lease() rules.LeaseClock { return rules.LeaseClock(e.TTL) }

// SessionGrace returns the default Config.SessionGrace for a lease duration.
func SessionGrace(ttl time.Duration) time.Duration { return rules.LeaseClock(ttl).SessionGrace() }

// called reports a store call to the plug-ins.
func (e *env) called(op string, began time.Time, err error) {
	if e.StoreCall != nil {
		e.StoreCall(op, time.Since(began), err)
	}
}

// join registers this worker in the store. It has a timeout: while it hangs, leases are neither renewed nor reaped.
func (e *env) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.lease().Join())
	defer cancel()
	began := time.Now()
	err := e.Store.Join(ctx, e.Namespace, store.WorkerInfo{
		ID: e.worker, Name: e.name, TTL: e.TTL, Types: e.handled, SessionGrace: e.SessionGrace,
		Announcement: store.Announcement{Host: e.host, PID: os.Getpid(), Version: build.Version(), Queues: slices.Sorted(maps.Keys(e.Queues)), Slots: e.Slots, Troubles: e.troubles.announced(), Program: e.Program, CodeVersion: e.CodeVersion},
	})
	e.called("join", began, err)
	return err
}

// joinAtStart joins as a worker before anything else. While another writer holds the store it retries, as a running
// worker does.
func (e *env) joinAtStart(ctx context.Context) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := e.join(ctx)
		busy := errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnknown) || errors.Is(err, context.DeadlineExceeded)
		if !busy || ctx.Err() != nil {
			return err
		}
		e.Log.Warn("join as a worker", "error", err, "retry_in", pause)
		wait(ctx, pause, nil)
	}
}

// leave removes this worker from the store.
func (e *env) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := e.Store.Leave(ctx, e.Namespace, e.worker); err != nil {
		return fmt.Errorf("leave as a worker: %w", err)
	}
	return nil
}

// checkSize refuses a value that fits neither in a row nor in the bucket.
func (e *env) checkSize(what string, size int) error {
	if e.Values.Bucket != nil {
		return nil
	}
	return e.checkInline(what, size)
}

// checkInline refuses a value that does not fit in a row.
func (e *env) checkInline(what string, size int) error {
	if size <= e.InlineLimit {
		return nil
	}
	return &KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s is %d bytes, over the inline limit of %d: set Config.Bucket to keep it there, return less, or raise Config.InlineLimit", what, size, e.InlineLimit)}
}
