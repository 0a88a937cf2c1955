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

// Turn waits for the turn to write, in this process and between processes, for a
// transaction on another connection, and returns the function that gives it back, which may be called
// more than once. It returns the cause of ctx when that ends first, and a
// HeldError when one holder that is not Bounded keeps the turn for longer than
// the busy timeout.
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

// HeldError says that a transaction of this program kept the turn for long.
type HeldError struct{ Holder string }

// Error names the transaction, its age, and the line that began it.
func (e *HeldError) Error() string { return "an open transaction of the caller writes: " + e.Holder }

// turns is the queue of those in this process that want to write: the leader
// of the group commit, and transactions on other connections. SQLite lets only
// one of them write, and waiting for its lock is polling, in which whoever asks
// most often wins.
//
// The leader is next after each other transaction, so that heartbeats, which
// come first in its group, wait for one of those at most; the others come in
// the order in which they asked. As the leader asks anew for each group, groups
// and other transactions alternate when there are many of both.
//
// The zero value is ready for use.
type turns struct {
	mu     sync.Mutex
	holder *Holder
	leader *waiter   // waits; nil: it does not
	others []*waiter // in the order in which they asked
}

// Holder is who has the turn, for the errors of those who wait.
type Holder struct {
	// What it is, as in "a transaction of DB()".
	What string
	// Bounded says that the holder gives the turn back within a limit of its
	// own, however long that is.
	Bounded bool

	since   time.Time // it has the turn
	callers []uintptr
}

type waiter struct {
	holder *Holder
	got    chan struct{} // closed when it has the turn
}

// NewHolder returns a holder that the calling goroutine will be.
func NewHolder(what string, bounded bool) *Holder {
	callers := make([]uintptr, 32)
	return &Holder{What: what, Bounded: bounded, since: time.Now(), callers: callers[:runtime.Callers(2, callers)]}
}

// Since returns when it began, or got the turn.
func (h *Holder) Since() time.Time { return h.since }

// String says what the holder is, since when it has the turn, and which line of
// the program began it.
func (h *Holder) String() string {
	text := fmt.Sprintf("%s, open for %v", h.What, time.Since(h.since).Round(time.Millisecond))
	if at := h.BegunAt(); at != "" {
		text += ", begun at " + at
	}
	return text
}

const module = "github.com/goweaver/weaver/"

// BegunAt returns the innermost line of the program itself, not of the packages
// through which it began, as file:line.
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

// lead waits for the leader's turn, which is next; release gives it back.
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

// wait waits for a turn that was asked for.
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
		t.release() // it has just been given the turn
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

// leave takes a waiter out of the queue. It reports false when the waiter has
// the turn.
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

// release gives the turn back.
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
