package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/batch"
)

// parking holds claims that found nothing due (ClaimRequest.Wait). A group
// that makes something due runs them in its own transaction: the task is
// durable and leased by one commit instead of two.
type parking struct {
	mu   sync.Mutex
	held []*parked
}

// parked is one claim that waits.
type parked struct {
	o    *op
	done chan error // its answer; buffered

	riding  bool      // runs in a transaction that is not committed yet
	boarded time.Time // when it last did
}

// add parks a claim. The caller leads, so no group can have been missed.
func (p *parking) add(c *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, c)
}

// board takes the claims of a namespace along.
func (p *parking) board(ns string) []*parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	var riders []*parked
	for _, c := range p.held {
		if c.o.ns == ns && !c.riding {
			c.riding, c.boarded = true, time.Now()
			riders = append(riders, c)
		}
	}
	return riders
}

// back parks claims again that got nothing, or whose transaction is lost.
func (p *parking) back(riders ...*parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range riders {
		c.riding = false
	}
}

// answer ends the waiting of claims whose transaction is committed.
func (p *parking) answer(riders []*parked) {
	if len(riders) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(c *parked) bool { return slices.Contains(riders, c) })
	for _, c := range riders {
		c.done <- nil
	}
}

// leave gives a claim up. It reports false when the claim rides or was
// answered: then its answer comes.
func (p *parking) leave(c *parked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.held, c)
	if i < 0 || c.riding {
		return false
	}
	p.held = slices.Delete(p.held, i, i+1)
	return true
}

// closeAll answers everybody: the database is closing.
func (p *parking) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.held {
		c.done <- batch.ErrClosed
	}
	p.held = nil
}

// lose answers claims whose transaction ended in a panic: nobody knows how.
func (p *parking) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = slices.DeleteFunc(p.held, func(c *parked) bool {
		if c.riding {
			c.done <- batch.ErrTaken
		}
		return c.riding
	})
}

// await waits for a parked claim to be answered. It reports false when
// nothing came in time, before a wake-up, or before the caller's context
// ended.
func (db *DB) await(ctx context.Context, c *parked, wait time.Duration, wake <-chan struct{}, next time.Duration) (answered bool, err error) {
	if next > 0 {
		wait = min(wait, next)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-c.done:
		return true, err
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	if db.parking.leave(c) {
		return false, nil
	}
	// It rides: its commit takes a moment.
	select {
	case err := <-c.done:
		return true, err
	case <-ctx.Done():
		return true, fmt.Errorf("%w: %w", batch.ErrTaken, context.Cause(ctx))
	}
}

// ride runs parked claims behind the operations of a group, in the group's
// transaction, each in its own savepoint, and returns those that got tasks.
// It reports false when the transaction is lost.
func (db *DB) ride(ops ...*op) (riders []*parked, ok bool) {
	w := &db.w
	var told []string
	for _, o := range ops {
		if !o.fx.notice.Due || slices.Contains(told, o.ns) {
			continue
		}
		told = append(told, o.ns)
		riders = append(riders, db.parking.board(o.ns)...)
	}
	for i := 0; i < len(riders); {
		c := riders[i]
		got, ok := db.rideOne(c.o)
		if !ok {
			w.conn.Reset()
			db.parking.back(riders...)
			return nil, false
		}
		if got {
			i++
			continue
		}
		db.parking.back(c)
		riders = slices.Delete(riders, i, i+1)
	}
	return riders, true
}

// rideOne runs one claim and reports whether it got something. A claim that
// fails stays parked: it asks again by itself.
func (db *DB) rideOne(o *op) (got, ok bool) {
	w := &db.w
	if w.conn.Stmt(sqlSavepoint).Run() != nil {
		return false, false
	}
	err := db.runOp(o)
	if w.conn.Autocommit() {
		return false, false
	}
	if err != nil && w.conn.Stmt(sqlUndo).Run() != nil {
		return false, false
	}
	if w.conn.Stmt(sqlRelease).Run() != nil {
		return false, false
	}
	return err == nil && len(o.fx.claimed) > 0, true
}
