package weavertest

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// clock is the time of an environment. It is the time of the bubble that uses the store, and continues in the next
// one.
type clock struct {
	test *testing.T // the test for the bubbles of the client's calls; nil: a benchmark, whose calls make no bubbles
	turn sync.Mutex // held by the bubble that uses the store, so that everything it leaves there belongs to that bubble

	mu   sync.Mutex
	last time.Time // time of the store's last use in a bubble
}

// now returns the time of the store's next use.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last.After(now) {
		return c.last
	}
	return now
}

// use runs f, in a bubble, no earlier than the last use of the store.
func (c *clock) use(begin time.Time, f func()) {
	time.Sleep(time.Until(begin))
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.last) {
		c.last = now
	}
}

// bubble runs f in fake time: in the caller's bubble, or else in its own bubble, which begins at the end of the last
// one or at the present. f must not fail the test, because the failure would not show a line of the test.
func (c *clock) bubble(t *testing.T, f func(t *testing.T)) {
	begin := c.now()
	own := inOwnBubble(t, func(t *testing.T) {
		c.turn.Lock()
		defer c.turn.Unlock()
		if c.now().After(begin) { // the store was used while this waited for its turn
			begin = c.now()
		}
		// Use whole microseconds, the precision of stores.
		begin = begin.Add(time.Microsecond - 1).Truncate(time.Microsecond)
		c.use(begin, func() { f(t) })
	})
	if !own {
		c.use(begin, func() { f(t) })
	}
}

// inOwnBubble runs f in a bubble. It returns false without running f if the caller is in a bubble.
func inOwnBubble(t *testing.T, f func(t *testing.T)) (ran bool) {
	defer func() {
		if ran {
			return
		}
		if p := recover(); p != nil {
			if text, ok := p.(string); !ok || !strings.Contains(text, "within a synctest bubble") {
				panic(p)
			}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		ran = true
		f(t)
	})
	return ran
}

// at runs f, which uses the store with ctx, at the environment's time.
func (c *clock) at(ctx context.Context, f func()) {
	// Create the channel here: inside a bubble it would belong to that bubble.
	ctx.Done()
	if c.test == nil || c.test.Context().Err() != nil { // a test must not open a bubble during cleanup
		f()
		return
	}
	c.bubble(c.test, func(*testing.T) { f() })
}

// Now returns the environment's time: inside a bubble the bubble's, outside the time of the client's calls and of the
// start of the next call of this package. It is the present until time was advanced past that.
func (e *Env) Now() time.Time { return e.clock.now() }

// EnqueueTasks implements weaver.Enqueuer, at the environment's time.
func (e *Env) EnqueueTasks(ctx context.Context, drafts ...weaver.Draft) (got []weaver.Enqueued, err error) {
	e.clock.at(ctx, func() { got, err = e.Client.EnqueueTasks(ctx, drafts...) })
	return got, err
}

var _ weaver.Enqueuer = (*Env)(nil) // enqueues and submits

// Submit is weaver.Client.Submit, at the environment's time.
func (e *Env) Submit(ctx context.Context, j *weaver.Job, opts ...weaver.SubmitOption) (h *weaver.JobHandle, err error) {
	e.clock.at(ctx, func() { h, err = e.Client.Submit(ctx, j, opts...) })
	return h, err
}

// clientStore is the store of the environment's client: it runs calls at the environment's time.
type clientStore struct {
	*sqlite.DB
	env *Env
}

// at calls the store at the environment's time.
func at[R any](ctx context.Context, s clientStore, call func() (R, error)) (res R, err error) {
	s.env.clock.at(ctx, func() { res, err = call() })
	return res, err
}

// Enqueue implements store.Core.
func (s clientStore) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if tx != nil {
		if own, ok := tx.Handle().(*sql.Tx); ok && own != nil {
			// Create the channel of the transaction's context here, as at does for ctx. An error is returned again
			// below.
			_ = own.QueryRowContext(context.WithoutCancel(ctx), "SELECT 1").Scan(new(int))
		}
	}
	return at(ctx, s, func() ([]store.Enqueued, error) { return s.DB.Enqueue(ctx, ns, tx, sub) })
}

// Operate implements store.Ops.
func (s clientStore) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	return at(ctx, s, func() ([]store.CommandResult, error) { return s.DB.Operate(ctx, ns, cmds...) })
}

// Tasks implements store.Observe.
func (s clientStore) Tasks(ctx context.Context, ns string, ids ...weaver.TaskID) ([]weaver.TaskInfo, error) {
	return at(ctx, s, func() ([]weaver.TaskInfo, error) { return s.DB.Tasks(ctx, ns, ids...) })
}

// List implements store.Observe.
func (s clientStore) List(ctx context.Context, ns string, f store.Filter) (list []weaver.TaskInfo, next string, err error) {
	s.env.clock.at(ctx, func() { list, next, err = s.DB.List(ctx, ns, f) })
	return list, next, err
}

// History implements store.Observe.
func (s clientStore) History(ctx context.Context, ns string, id weaver.TaskID) (store.History, error) {
	return at(ctx, s, func() (store.History, error) { return s.DB.History(ctx, ns, id) })
}

// Needs implements store.Flow.
func (s clientStore) Needs(ctx context.Context, ns string, id weaver.TaskID) ([]store.Need, error) {
	return at(ctx, s, func() ([]store.Need, error) { return s.DB.Needs(ctx, ns, id) })
}

// Jobs implements store.Flow.
func (s clientStore) Jobs(ctx context.Context, ns string, f store.JobFilter) (list []weaver.JobInfo, next string, err error) {
	s.env.clock.at(ctx, func() { list, next, err = s.DB.Jobs(ctx, ns, f) })
	return list, next, err
}

// Overview implements store.Observe.
func (s clientStore) Overview(ctx context.Context, ns string, req store.OverviewRequest) (store.Overview, error) {
	return at(ctx, s, func() (store.Overview, error) { return s.DB.Overview(ctx, ns, req) })
}

// Graph implements store.Flow.
func (s clientStore) Graph(ctx context.Context, ns string, req store.GraphRequest) (store.Graph, error) {
	return at(ctx, s, func() (store.Graph, error) { return s.DB.Graph(ctx, ns, req) })
}

// Audit implements store.Observe.
func (s clientStore) Audit(ctx context.Context, ns string, f store.AuditFilter) (list []store.AuditEntry, next string, err error) {
	s.env.clock.at(ctx, func() { list, next, err = s.DB.Audit(ctx, ns, f) })
	return list, next, err
}

// Types implements store.Data.
func (s clientStore) Types(ctx context.Context, ns string, names ...string) ([]store.AnnouncedType, error) {
	return at(ctx, s, func() ([]store.AnnouncedType, error) { return s.DB.Types(ctx, ns, names...) })
}

// Schedules implements store.Observe.
func (s clientStore) Schedules(ctx context.Context, ns string, f store.ScheduleFilter) (store.SchedulePage, error) {
	return at(ctx, s, func() (store.SchedulePage, error) { return s.DB.Schedules(ctx, ns, f) })
}

// Limits implements store.Observe.
func (s clientStore) Limits(ctx context.Context, ns string, f store.LimitFilter) (store.LimitPage, error) {
	return at(ctx, s, func() (store.LimitPage, error) { return s.DB.Limits(ctx, ns, f) })
}

// Snapshot implements store.Data.
func (s clientStore) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	return at(ctx, s, func() (*store.Snapshot, error) { return s.DB.Snapshot(ctx, ns) })
}
