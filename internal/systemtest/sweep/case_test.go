package sweep_test

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// testCases lists all cases.
var testCases = slices.Concat(workCases, stepCases, waitCases, jobCases, budgetCases, operatorCases, timeCases, processCases, bucketCases, undoCases, scheduleCases, limitCases)

// The task types of the cases.
var (
	typeA = weaver.Define[string, string]("systemtest.sweep.a.v1")
	typeB = weaver.Define[string, string]("systemtest.sweep.b.v1")
	typeN = weaver.Define[int, int]("systemtest.sweep.n.v1")
)

// handles returns the handlers of a case with a single handler.
func handles[In, Out any](typ *weaver.Type[In, Out], fn func(ctx context.Context, fx *fixture, in In) (Out, error), opts ...weaver.HandlerOption) func(fx *fixture) []weaver.Handler {
	return func(fx *fixture) []weaver.Handler {
		return []weaver.Handler{typ.Handler(func(ctx context.Context, in In) (Out, error) { return fn(ctx, fx, in) }, opts...)}
	}
}

// handleBoth joins the handlers of two cases.
func handleBoth(a, b func(fx *fixture) []weaver.Handler) func(fx *fixture) []weaver.Handler {
	return func(fx *fixture) []weaver.Handler { return append(a(fx), b(fx)...) }
}

func echo(_ context.Context, _ *fixture, in string) (string, error) { return in, nil }

// step is weaver.Step with a check of the function's start.
func step[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error), opts ...weaver.StepOption) (T, error) {
	return weaver.Step(ctx, name, func(ctx context.Context) (T, error) {
		if err := started(ctx, name); err != nil {
			var none T
			return none, err
		}
		return fn(ctx)
	}, opts...)
}

// value is a step that only returns a value.
func value[T any](ctx context.Context, name string, v T) (T, error) {
	return step(ctx, name, func(context.Context) (T, error) { return v, nil })
}

// started records the start of a step function. A completed step must not start again. In a dead process no function
// starts.
func started(ctx context.Context, name string) error {
	p := processOf(ctx)
	fx, cur := p.fx, weaver.Current(ctx)
	h, err := fx.backend.observer.History(context.WithoutCancel(ctx), cur.Namespace, cur.TaskID)
	if p.fault.Died() { // check death last: until then no other process could complete the step
		return faultstore.ErrDead
	}
	if err != nil {
		fx.errorf("History: %v", err)
		return err
	}
	for _, s := range h.Steps {
		if s.Name == name && s.State == task.StepCompleted && !s.Past() && s.Kind != task.KindUndo {
			fx.errorf("step %q of task %s starts in attempt %d, and attempt %d completed it", name, cur.TaskID, cur.AttemptNo, s.AttemptNo)
		}
	}
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.counts["start of "+cur.Type+"/"+name]++
	return nil
}

// stepTx is weaver.StepTx for any store. insert inserts a row with a unique name into the user's table; in memory it
// does nothing.
func stepTx(ctx context.Context, name string, fn func(ctx context.Context, insert func(row string) error) (string, error)) (string, error) {
	if !processOf(ctx).fx.kind.sql {
		return weaver.StepTx(ctx, name, func(ctx context.Context, _ *memstore.Tx) (string, error) {
			if err := started(ctx, name); err != nil {
				return "", err
			}
			return fn(ctx, func(string) error { return nil })
		})
	}
	return weaver.StepTx(ctx, name, func(ctx context.Context, tx *sql.Tx) (string, error) {
		if err := started(ctx, name); err != nil {
			return "", err
		}
		return fn(ctx, func(row string) error {
			_, err := tx.ExecContext(ctx, processOf(ctx).fx.kind.insert, row)
			return err
		})
	})
}

// userDB is a store with tables of the user in the same database.
type userDB interface{ DB() *sql.DB }

// table creates the user's table.
func (fx *fixture) table() {
	if db, ok := fx.backend.observer.(userDB); ok {
		_, err := db.DB().ExecContext(fx.ctx, "CREATE TABLE IF NOT EXISTS sweep (name TEXT PRIMARY KEY)")
		fx.must(err)
	}
}

// rows checks the rows of the user's table.
func (fx *fixture) rows(want ...string) {
	db, ok := fx.backend.observer.(userDB)
	if !ok {
		return
	}
	rows, err := db.DB().QueryContext(fx.ctx, "SELECT name FROM sweep ORDER BY name")
	fx.must(err)
	var got []string
	for rows.Next() {
		var name string
		fx.must(rows.Scan(&name))
		got = append(got, name)
	}
	fx.must(rows.Err())
	fx.must(rows.Close())
	if !slices.Equal(got, want) {
		fx.errorf("the user's table holds %v, want %v", got, want)
	}
}

// rest makes a handler work for a while.
func rest(ctx context.Context, d time.Duration) error {
	if sleep(ctx, d); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// until makes a handler work until a mark is set.
func until(ctx context.Context, fx *fixture, mark string) error {
	select {
	case <-fx.marked(mark):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// marked returns a channel that is closed when a mark is set.
func (fx *fixture) marked(name string) chan struct{} {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.marks[name] == nil {
		fx.marks[name] = make(chan struct{})
	}
	return fx.marks[name]
}

// mark sets a mark permanently.
func (fx *fixture) mark(name string) {
	c := fx.marked(name)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// await waits for a mark.
func (fx *fixture) await(name string) {
	fx.Helper()
	select {
	case <-fx.marked(name):
	case <-fx.ctx.Done():
		fx.fatal("the mark %q was not set: %v%s", name, context.Cause(fx.ctx), fx.dump(weaver.TaskID{}))
	}
}

// note records the order of first occurrences.
func (fx *fixture) note(what string) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if !slices.Contains(fx.order, what) {
		fx.order = append(fx.order, what)
	}
}

// crashed reports whether a process died.
func (fx *fixture) crashed() bool {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return slices.ContainsFunc(fx.all, func(p *process) bool { return p.fault.Died() })
}

// hold checks that at most limit handlers of living processes hold a key. The handler calls the returned function to
// release the key.
func (fx *fixture) hold(ctx context.Context, key string, limit int) func() {
	p := processOf(ctx)
	h := &holder{p, key}
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.holders = append(fx.holders, h)
	n := 0
	for _, other := range fx.holders {
		if other.key == key && !other.p.fault.Died() {
			n++
		}
	}
	if n > limit {
		fx.errorf("%d handlers run with the key %q, at most %d may", n, key, limit)
	}
	return func() {
		fx.mu.Lock()
		defer fx.mu.Unlock()
		fx.holders = slices.DeleteFunc(fx.holders, func(o *holder) bool { return o == h })
	}
}

type holder struct {
	p   *process
	key string
}
