package sweep_test

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faultstore"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// sweepScenes are all scenes.
var sweepScenes = slices.Concat(sweepWork, sweepSteps, sweepJobs, sweepVerbs, sweepTime, sweepFate)

// The task types of the scenes.
var (
	sweepA = weaver.Define[string, string]("simtest.sweep.a.v1")
	sweepB = weaver.Define[string, string]("simtest.sweep.b.v1")
	sweepN = weaver.Define[int, int]("simtest.sweep.n.v1")
)

// runs makes the handlers of a scene that has one.
func runs[In, Out any](typ *weaver.Type[In, Out], fn func(ctx context.Context, w *sweepWorld, in In) (Out, error), opts ...weaver.HandlerOption) func(w *sweepWorld) []weaver.Handler {
	return func(w *sweepWorld) []weaver.Handler {
		return []weaver.Handler{typ.Handler(func(ctx context.Context, in In) (Out, error) { return fn(ctx, w, in) }, opts...)}
	}
}

// both joins the handlers of scenes.
func both(a, b func(w *sweepWorld) []weaver.Handler) func(w *sweepWorld) []weaver.Handler {
	return func(w *sweepWorld) []weaver.Handler { return append(a(w), b(w)...) }
}

func echo(_ context.Context, _ *sweepWorld, in string) (string, error) { return in, nil }

// step is weaver.Step of a function whose start is watched.
func step[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error), opts ...weaver.StepOption) (T, error) {
	return weaver.Step(ctx, name, func(ctx context.Context) (T, error) {
		if err := started(ctx, name); err != nil {
			var none T
			return none, err
		}
		return fn(ctx)
	}, opts...)
}

// value is a step that does nothing but give a value.
func value[T any](ctx context.Context, name string, v T) (T, error) {
	return step(ctx, name, func(context.Context) (T, error) { return v, nil })
}

// started notes that a step function begins. It must not if the step is
// completed already, and it does not in a dead process.
func started(ctx context.Context, name string) error {
	p := processOf(ctx)
	w, cur := p.w, weaver.Current(ctx)
	h, err := w.ground.eyes.History(context.WithoutCancel(ctx), cur.Namespace, cur.TaskID)
	if p.fault.Died() { // asked last: until then nobody else could complete the step
		return faultstore.ErrDead
	}
	if err != nil {
		w.wrong("History: %v", err)
		return err
	}
	for _, s := range h.Steps {
		if s.Name == name && s.State == task.StepCompleted {
			w.wrong("step %q of task %s starts in attempt %d, and attempt %d completed it", name, cur.TaskID, cur.AttemptNo, s.AttemptNo)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told["start of "+cur.Type+"/"+name]++
	return nil
}

// stepTx is weaver.StepTx on whichever store it is. insert puts a row into
// the user's table, which takes each name once; in memory there is none.
func stepTx(ctx context.Context, name string, fn func(ctx context.Context, insert func(row string) error) (string, error)) (string, error) {
	if !processOf(ctx).w.kind.sql {
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
			_, err := tx.ExecContext(ctx, "INSERT INTO sweep (name) VALUES (?)", row)
			return err
		})
	})
}

// table makes the user's table.
func (w *sweepWorld) table() {
	if db, ok := w.ground.eyes.(*sqlite.DB); ok {
		_, err := db.DB().ExecContext(w.ctx, "CREATE TABLE sweep (name TEXT PRIMARY KEY)")
		w.must(err)
	}
}

// rows checks what is in the user's table.
func (w *sweepWorld) rows(want ...string) {
	db, ok := w.ground.eyes.(*sqlite.DB)
	if !ok {
		return
	}
	rows, err := db.DB().QueryContext(w.ctx, "SELECT name FROM sweep ORDER BY name")
	w.must(err)
	var got []string
	for rows.Next() {
		var name string
		w.must(rows.Scan(&name))
		got = append(got, name)
	}
	w.must(rows.Err())
	w.must(rows.Close())
	if !slices.Equal(got, want) {
		w.wrong("the user's table holds %v, want %v", got, want)
	}
}

// rest lets a handler work for a while.
func rest(ctx context.Context, d time.Duration) error {
	if sleep(ctx, d); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// until lets a handler work until a mark is set.
func until(ctx context.Context, w *sweepWorld, mark string) error {
	select {
	case <-w.marked(mark):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// marked is closed when a mark is set.
func (w *sweepWorld) marked(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marks[name] == nil {
		w.marks[name] = make(chan struct{})
	}
	return w.marks[name]
}

// mark sets a mark, for good.
func (w *sweepWorld) mark(name string) {
	c := w.marked(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// await lets the play wait for a mark.
func (w *sweepWorld) await(name string) {
	w.Helper()
	select {
	case <-w.marked(name):
	case <-w.ctx.Done():
		w.giveUp("nobody sets the mark %q: %v%s", name, context.Cause(w.ctx), w.tell(weaver.TaskID{}))
	}
}

// note keeps in which order things happened first.
func (w *sweepWorld) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.order, what) {
		w.order = append(w.order, what)
	}
}

// crashed reports whether a process died.
func (w *sweepWorld) crashed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.all, func(p *sweepProcess) bool { return p.fault.Died() })
}

// hold checks that at most limit handlers of living processes hold a key. The
// handler calls what it returns when it lets go.
func (w *sweepWorld) hold(ctx context.Context, key string, limit int) func() {
	p := processOf(ctx)
	h := &sweepHolder{p, key}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holders = append(w.holders, h)
	n := 0
	for _, other := range w.holders {
		if other.key == key && !other.p.fault.Died() {
			n++
		}
	}
	if n > limit {
		w.wrong("%d handlers run with the key %q, at most %d may", n, key, limit)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.holders = slices.DeleteFunc(w.holders, func(o *sweepHolder) bool { return o == h })
	}
}

type sweepHolder struct {
	p   *sweepProcess
	key string
}
