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

// env is what the roles of one Run share. It is complete before the first of
// them starts; after that only the slots and the troubles change, which have their own mutex.
type env struct {
	Config
	worker    store.WorkerID
	name      string
	host      string
	handled   []string                                       // task types, sorted
	schemas   map[string]int                                 // the newest schema version that is read, by task type
	drafts    map[string]func(*task.Draft) (task.New, error) // Handler.Draft by task type
	repairs   map[string]json.RawMessage                     // Handler.Schema of the types whose inputs are repaired here
	origin    time.Time                                      // the monotonic clock's zero for offsets that are kept in atomics
	work      context.Context                                // of handlers and of calls that a drain must not cut short; it ends at the hard stop
	complete  bool                                           // the store's notices miss nothing: no polling
	leaving   atomic.Bool                                    // attempts end at their next step: a drain with LeaveAtSteps
	repeats   repeats                                        // warnings of loops
	unnoticed bool                                           // the store gives no notices
	slots     *slots
	troubles  *troubles
	questions *questions
	stats     *stats // nil: the store keeps none
	unknown   *unknownTypes
}

// offset returns an instant as an offset from the origin.
func (e *env) offset(t time.Time) int64 { return int64(t.Sub(e.origin)) }

// lease returns the clock of this worker's leases.
func (e *env) lease() rules.LeaseClock { return rules.LeaseClock(e.TTL) }

// SessionGrace is the default Config.SessionGrace for leases of a length.
func SessionGrace(ttl time.Duration) time.Duration { return rules.LeaseClock(ttl).SessionGrace() }

// called tells the plug-ins of a call of the store that began then.
func (e *env) called(op string, began time.Time, err error) {
	if e.StoreCall != nil {
		e.StoreCall(op, time.Since(began), err)
	}
}

// join makes this worker known to the store. It has a limit: while it hangs,
// no lease is renewed and none is reaped.
func (e *env) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.lease().Join())
	defer cancel()
	began := time.Now()
	err := e.Store.Join(ctx, e.Namespace, store.WorkerInfo{
		ID: e.worker, Name: e.name, TTL: e.TTL, Types: e.handled, SessionGrace: e.SessionGrace,
		Announcement: store.Announcement{Host: e.host, PID: os.Getpid(), Version: build.Version(), Queues: slices.Sorted(maps.Keys(e.Queues)), Slots: e.Slots, Troubles: e.troubles.announced()},
	})
	e.called("join", began, err)
	return err
}

// joinAtStart joins as a worker before anything else is done. While another
// writer has the store it tries again, as a worker that runs does.
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

// leave makes the store forget this worker.
func (e *env) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := e.Store.Leave(ctx, e.Namespace, e.worker); err != nil {
		return fmt.Errorf("leave as a worker: %w", err)
	}
	return nil
}

// checkSize refuses a value that may be stored neither in a row nor in the bucket.
func (e *env) checkSize(what string, size int) error {
	if e.Values.Bucket != nil {
		return nil
	}
	return e.checkInline(what, size)
}

// checkInline refuses a value that may not be stored in a row.
func (e *env) checkInline(what string, size int) error {
	if size <= e.InlineLimit {
		return nil
	}
	return &KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s is %d bytes, over the inline limit of %d: set Config.Bucket to keep it there, return less, or raise Config.InlineLimit", what, size, e.InlineLimit)}
}
