package weaver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// waitPoll is the polling interval of a waiter whose store cannot notify of every change.
const waitPoll = time.Second

// waits wakes the callers that wait for a task or job to end. It is registered with the store only
// while there are waiters.
type waits struct {
	store store.Store
	ns    string
	log   *slog.Logger

	// listening guards the registration with the store. Notices never lock it, so the store may hold
	// its own locks while it calls notice.
	listening sync.Mutex
	waiters   int
	stop      func()
	complete  bool // waiters need not poll

	mu   sync.Mutex
	byID map[task.ID][]chan struct{}
}

func (w *waits) init(s store.Store, ns string, log *slog.Logger) {
	w.store, w.ns, w.log = s, ns, log
	w.byID = make(map[task.ID][]chan struct{})
}

// until calls check until it is done: once now, and again whenever the task or job may have changed.
// It returns check's error, except that an unreachable store is logged once and retried at the polling
// interval.
func (w *waits) until(ctx context.Context, id task.ID, check func(context.Context) (bool, error)) error {
	changed, complete := w.add(id)
	defer w.remove(id, changed)
	warned := false
	for {
		// Registered before the check: a change in between is not missed.
		done, err := check(ctx)
		away := !done && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy))
		if done || err != nil && !away {
			return err
		}
		if away && !warned && ctx.Err() == nil {
			w.log.Warn("the store cannot be read; the wait goes on", "id", id, "error", err)
			warned = true
		}
		if _, ended := w.pause(ctx, changed, complete && !away, waitPoll); ended != nil {
			if away {
				return fmt.Errorf("%w; the last look: %w", ended, err)
			}
			return ended
		}
	}
}

// pause returns when the task or job may have changed. polled reports that no notice came and a poll
// is due.
func (w *waits) pause(ctx context.Context, changed <-chan struct{}, complete bool, every time.Duration) (polled bool, err error) {
	var poll <-chan time.Time
	if !complete {
		timer := time.NewTimer(every)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-changed:
	case <-poll:
		polled = true
	}
	return polled, nil
}

func (w *waits) add(id task.ID) (changed chan struct{}, complete bool) {
	changed = make(chan struct{}, 1)
	w.mu.Lock()
	w.byID[id] = append(w.byID[id], changed)
	w.mu.Unlock()

	w.listening.Lock()
	defer w.listening.Unlock()
	w.waiters++
	if w.waiters == 1 {
		w.stop, w.complete = w.store.Notify(w.ns, w.ids, w.notice)
	}
	return changed, w.complete
}

// ids returns the awaited tasks and jobs.
func (w *waits) ids() []task.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.byID))
}

func (w *waits) remove(id task.ID, changed chan struct{}) {
	w.mu.Lock()
	list := slices.DeleteFunc(w.byID[id], func(c chan struct{}) bool { return c == changed })
	if len(list) == 0 {
		delete(w.byID, id)
	} else {
		w.byID[id] = list
	}
	w.mu.Unlock()

	w.listening.Lock()
	defer w.listening.Unlock()
	if w.waiters--; w.waiters == 0 && w.stop != nil {
		w.stop() // waits for running notices
		w.stop = nil
	}
}

// notice runs after commits and must not block.
func (w *waits) notice(n store.Notice) {
	if n.External {
		w.recheck()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ids := range [][]task.ID{n.Tasks, n.Jobs, n.Events} {
		for _, id := range ids {
			w.signal(w.byID[id])
		}
	}
}

func (w *waits) recheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.byID {
		w.signal(list)
	}
}

func (w *waits) signal(list []chan struct{}) {
	for _, c := range list {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
