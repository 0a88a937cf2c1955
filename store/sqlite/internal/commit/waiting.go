package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/batch"
)

// WaitingClaim is a claim that found nothing due and waits. A group that makes a task due runs
// it in its own transaction.
type WaitingClaim struct {
	op   *Op
	done chan error // its answer; buffered

	taken   bool      // a transaction that is not committed yet runs it
	takenAt time.Time // start of the last such transaction
	givenUp bool      // given up while taken: it does not wait again if it gets nothing
}

// errGivenUp answers a claim that was given up while a transaction ran it, and got no tasks.
var errGivenUp = errors.New("the claim was given up")

// NewWaitingClaim returns a claim that run executes.
func NewWaitingClaim(ns string, run func(*Tx) error) *WaitingClaim {
	return &WaitingClaim{op: &Op{NS: ns, Run: run}, done: make(chan error, 1)}
}

// TakenAt returns the start of the transaction that answered the claim.
func (c *WaitingClaim) TakenAt() time.Time { return c.takenAt }

// Wait makes c wait from the operation's commit on, so that it misses no group in between.
func (tx *Tx) Wait(c *WaitingClaim) { tx.op.waiting = c }

// Wait waits for the answer of a claim, until limit, a wake-up, or the end of ctx. Without an
// answer it returns false, and the claim is given up. batch.ErrClosed means that the writer
// was closed. batch.ErrTaken means that ctx ended, or the commit panicked, while the claim
// was being committed.
func (w *Writer) Wait(ctx context.Context, c *WaitingClaim, limit time.Duration, wake <-chan struct{}) (answered bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-c.done:
		return true, err
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	if w.waiting.giveUp(c) {
		return false, nil
	}
	// It is in a transaction, whose commit takes a moment.
	select {
	case err := <-c.done:
		if errors.Is(err, errGivenUp) {
			return false, nil
		}
		return true, err
	case <-ctx.Done():
		return true, fmt.Errorf("%w: %w", batch.ErrTaken, context.Cause(ctx))
	}
}

// piggyback runs waiting claims after the operations of a group, in the group's transaction,
// each in its own savepoint. It returns the claims that it answers: they got tasks, or reached
// their row limit. It returns false if the transaction is lost.
func (w *Writer) piggyback(ops ...*Op) (claims []*WaitingClaim, ok bool) {
	var done []string // handled namespaces
	for _, o := range ops {
		if !o.fx.Notice.Due || slices.Contains(done, o.NS) {
			continue
		}
		done = append(done, o.NS)
		claims = append(claims, w.waiting.take(o.NS)...)
	}
	for i := 0; i < len(claims); {
		c := claims[i]
		var err error
		ok := w.inSavepoint(func() error {
			err = w.run(c.op)
			return err
		})
		if !ok {
			w.conn.Reset()
			w.waiting.putBack(claims...)
			return nil, false
		}
		if err == nil && c.op.fx.Answered() {
			i++
			continue
		}
		w.waiting.putBack(c)
		claims = slices.Delete(claims, i, i+1)
	}
	return claims, true
}

// waitingClaims holds the claims that wait.
type waitingClaims struct {
	mu   sync.Mutex
	list []*WaitingClaim
}

// add makes a claim wait. The caller has the lead, so the claim misses no group.
func (l *waitingClaims) add(c *WaitingClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, c)
}

// take returns the claims of a namespace, for the open transaction.
func (l *waitingClaims) take(ns string) []*WaitingClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	var claims []*WaitingClaim
	for _, c := range l.list {
		if c.op.NS == ns && !c.taken {
			c.taken, c.takenAt = true, time.Now()
			claims = append(claims, c)
		}
	}
	return claims
}

// putBack makes claims wait again that got nothing, or whose transaction is lost, unless they
// were given up meanwhile.
func (l *waitingClaims) putBack(claims ...*WaitingClaim) {
	if len(claims) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		if c.taken = false; c.givenUp {
			l.list = slices.DeleteFunc(l.list, func(o *WaitingClaim) bool { return o == c })
			c.done <- errGivenUp
		}
	}
}

// answer answers claims whose transaction is committed.
func (l *waitingClaims) answer(claims []*WaitingClaim) {
	if len(claims) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(c *WaitingClaim) bool { return slices.Contains(claims, c) })
	for _, c := range claims {
		c.done <- nil
	}
}

// giveUp ends the wait of a claim. It returns false if a transaction runs or answered the
// claim: then its answer comes.
func (l *waitingClaims) giveUp(c *WaitingClaim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.list, c)
	if i < 0 || c.taken {
		c.givenUp = true
		return false
	}
	l.list = slices.Delete(l.list, i, i+1)
	return true
}

// closeAll answers all claims, because the writer is closing.
func (l *waitingClaims) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		c.done <- batch.ErrClosed
	}
	l.list = nil
}

// fail answers the claims whose transaction ended in a panic. The outcome of their commit is
// unknown.
func (l *waitingClaims) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(c *WaitingClaim) bool {
		if c.taken {
			c.done <- batch.ErrTaken
		}
		return c.taken
	})
}
