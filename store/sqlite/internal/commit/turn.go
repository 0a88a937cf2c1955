package commit

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Turn waits for the turn to write, in this process and between processes, for a transaction
// on another connection. It returns the function that releases the turn, which may be called
// more than once. It returns the cause of ctx if ctx ends first, and a HeldError if one holder
// that is not Bounded keeps the turn for longer than the busy timeout.
func (w *Writer) Turn(ctx context.Context, h *Holder) (giveBack func(), err error) {
	here, err := w.turns.take(ctx, h, w.cfg.Busy)
	if err != nil {
		return nil, err
	}
	between, err := w.processes.take(ctx, false)
	if err != nil {
		here()
		return nil, err
	}
	return func() { between(); here() }, nil
}

// HeldError means that a transaction of this program kept the turn for too long.
type HeldError struct{ Holder string }

// Error names the transaction, its age, and the line that began it.
func (e *HeldError) Error() string { return "an open transaction of the caller writes: " + e.Holder }

// turns is the queue of this process's writers: the leader of the group commit, and
// transactions on other connections. SQLite allows one of them to write. Waiting for its lock
// means polling, which favours the most frequent poller.
//
// The leader is next after each other transaction, so that heartbeats, which come first in its
// group, wait for at most one of them. The others come in the order of their requests. The
// leader asks anew for each group, so groups and other transactions alternate under load.
//
// The zero value is ready for use.
type turns struct {
	mu     sync.Mutex
	holder *Holder
	leader *waiter   // nil: the leader does not wait
	others []*waiter // in the order of their requests
}

// Holder describes the holder of the turn, for the errors of waiters.
type Holder struct {
	// What is the kind of the holder, such as "a transaction of DB()".
	What string
	// Bounded means that the holder releases the turn within its own limit, however long that
	// is.
	Bounded bool

	since   time.Time // when it got the turn
	callers []uintptr
}

type waiter struct {
	holder *Holder
	got    chan struct{} // closed when it has the turn
}

// NewHolder returns a holder for the calling goroutine.
func NewHolder(what string, bounded bool) *Holder {
	callers := make([]uintptr, 32)
	return &Holder{What: what, Bounded: bounded, since: time.Now(), callers: callers[:runtime.Callers(2, callers)]}
}

// Since returns the time when it began, or got the turn.
func (h *Holder) Since() time.Time { return h.since }

// String describes the holder: its kind, the time for which it has the turn, and the line that
// began it.
func (h *Holder) String() string {
	text := fmt.Sprintf("%s, open for %v", h.What, time.Since(h.since).Round(time.Millisecond))
	if at := h.BegunAt(); at != "" {
		text += ", begun at " + at
	}
	return text
}

const module = "github.com/goweaver/weaver/"

// BegunAt returns the innermost line of the program itself as file:line, skipping the packages
// through which the transaction began.
func (h *Holder) BegunAt() string {
	if len(h.callers) == 0 {
		return ""
	}
	for frames := runtime.CallersFrames(h.callers); ; {
		f, more := frames.Next()
		dir, last := path.Split(f.Function)
		name, _, _ := strings.Cut(last, ".")
		switch dir + name {
		case "", "database/sql", module + "store/sqlite", module + "store/sqlite/internal/commit", module + "store/sqlite/internal/conn":
		default:
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

func (t *turns) take(ctx context.Context, h *Holder, busy time.Duration) (giveBack func(), err error) {
	w := &waiter{holder: h, got: make(chan struct{})}
	t.mu.Lock()
	free := t.holder == nil
	if free {
		t.give(w)
	} else {
		t.others = append(t.others, w)
	}
	t.mu.Unlock()
	if !free {
		if err := t.wait(ctx, w, busy); err != nil {
			return nil, err
		}
	}
	return sync.OnceFunc(t.release), nil
}

// groupCommit holds the turn for the leader.
var groupCommit = &Holder{What: "the group commit", Bounded: true}

// lead waits for the leader's turn, which is next. release gives the turn back.
func (t *turns) lead(ctx context.Context, busy time.Duration) error {
	t.mu.Lock()
	if t.holder == nil {
		t.holder = groupCommit
		t.mu.Unlock()
		return nil
	}
	w := &waiter{holder: groupCommit, got: make(chan struct{})}
	t.leader = w
	t.mu.Unlock()
	return t.wait(ctx, w, busy)
}

// wait waits for a requested turn.
func (t *turns) wait(ctx context.Context, w *waiter, busy time.Duration) (err error) {
	timer := time.NewTimer(busy)
	defer timer.Stop()
	seen := t.current()
	for err == nil {
		select {
		case <-w.got:
			return nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timer.C:
			now := t.current()
			if now != nil && now == seen && !now.Bounded {
				err = &HeldError{now.String()}
			}
			seen = now
			timer.Reset(busy)
		}
	}
	if !t.leave(w) {
		t.release() // it has just received the turn
	}
	return err
}

// give makes w the holder. The mutex is held.
func (t *turns) give(w *waiter) {
	t.holder = w.holder
	if w.holder != groupCommit {
		w.holder.since = time.Now()
	}
	close(w.got)
}

func (t *turns) current() *Holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder
}

// leave removes a waiter from the queue. It returns false if the waiter has the turn.
func (t *turns) leave(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leader == w {
		t.leader = nil
		return true
	}
	i := slices.Index(t.others, w)
	if i >= 0 {
		t.others = slices.Delete(t.others, i, i+1)
	}
	return i >= 0
}

// release releases the turn.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holder = nil
	switch {
	case t.leader != nil:
		w := t.leader
		t.leader = nil
		t.give(w)
	case len(t.others) > 0:
		w := t.others[0]
		t.others = slices.Delete(t.others, 0, 1)
		t.give(w)
	}
}
