package soak_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goweaver/weaver"
)

// order is the input of every task here, receipt the output.
type order struct {
	N      int
	Kind   string
	Needs  []string `json:",omitempty"` // of a node: the names of its needs
	Parent string   `json:",omitempty"` // of a child: the parent task
	Token  string   `json:",omitempty"` // of a visit
}

type receipt struct {
	N     int
	Steps []stamp // in the order of the recipe
}

// stamp is the value of a step. It identifies the call that made it, so that a value of one call with effects of
// another is detected.
type stamp struct {
	N       int
	Step    string
	Attempt int
	Life    int
	Sum     int    `json:",omitempty"` // of a node: its number plus the sums of its needs
	Child   string `json:",omitempty"` // the task enqueued with it
}

var (
	workType  = weaver.Define[order, receipt]("systemtest.storm.work.v1", weaver.MaxAttempts(3), weaver.Backoff(20*time.Millisecond))
	childType = weaver.Define[order, receipt]("systemtest.storm.child.v1", weaver.NoRetry())
	nodeType  = weaver.Define[order, receipt]("systemtest.storm.node.v1", weaver.NoRetry())
)

// verb is the kind of a step in a recipe.
type verb int

const (
	doStep     verb = iota // one step
	doTx                   // a StepTx that writes to the user's table
	doSleep                // a Sleep
	doFail                 // the first attempt fails here
	doShaky                // a step whose first try fails in each attempt
	doStart                // Start of a child
	doHand                 // a StepTx that enqueues a child and writes to the user's table
	doTogether             // concurrent steps
	doSum                  // a step that adds up the outputs of the needs
)

type move struct {
	do    verb
	names []string // of steps
}

// recipes are the steps of the handlers, by kind.
var recipes = map[string][]move{
	"plain":    {{doStep, []string{"one"}}, {doStep, []string{"two"}}, {doStep, []string{"three"}}},
	"tx":       {{doStep, []string{"one"}}, {doTx, []string{"save"}}, {doStep, []string{"two"}}},
	"sleepy":   {{doStep, []string{"one"}}, {doSleep, []string{"nap"}}, {doTx, []string{"save"}}, {doSleep, []string{"rest"}}, {doStep, []string{"two"}}},
	"flaky":    {{doStep, []string{"one"}}, {doTx, []string{"save"}}, {doFail, nil}, {doStep, []string{"two"}}},
	"shaky":    {{doShaky, []string{"one"}}, {doStep, []string{"two"}}},
	"keyed":    {{doStep, []string{"one"}}, {doStep, []string{"two"}}},
	"parent":   {{doStart, []string{"child"}}, {doStep, []string{"one"}}},
	"hand":     {{doStep, []string{"one"}}, {doHand, []string{"give"}}, {doStep, []string{"two"}}},
	"together": {{doTogether, []string{"a", "b", "c"}}, {doStep, []string{"last"}}},
	"queue":    {{doTx, []string{"first"}}, {doTx, []string{"second"}}, {doTx, []string{"third"}}},
	"child":    {{doStep, []string{"only"}}},
	"visit":    {{doTx, []string{"save"}}},
	"node":     {{doSum, []string{"sum"}}, {doTx, []string{"save"}}},
}

// kinds are the kinds of the producer's tasks, by number. Tasks of the kind queue are adjacent, so that their step
// transactions wait for each other.
var kinds = []string{"plain", "tx", "keyed", "sleepy", "flaky", "shaky", "parent", "keyed", "hand", "together", "queue", "queue"}

func orderOf(n int) order { return order{N: n, Kind: kinds[n%len(kinds)]} }

// keyOf returns the concurrency key of a task and its limit; the key is "-" for tasks without one.
func keyOf(o order) (key string, limit int) {
	if o.Kind != "keyed" {
		return "-", 0
	}
	k := o.N / len(kinds) % keys
	return fmt.Sprint("key-", k), limitOfKey(k)
}

// keys is the number of concurrency keys.
const keys = 4

func limitOfKey(k int) int { return 1 + k/2 }

func draftOf(n int) weaver.Draft {
	o := orderOf(n)
	opts := []weaver.EnqueueOption{
		weaver.IdempotencyKey(fmt.Sprint("order-", n)), weaver.Queue(fmt.Sprint("queue-", n%3)), weaver.Priority(4 + n%2),
	}
	if key, limit := keyOf(o); limit > 0 {
		opts = append(opts, weaver.ConcurrencyKey(key, limit))
	}
	return workType.With(o, opts...)
}

// handlers returns the handlers of all kinds.
func (w *worker) handlers() []weaver.Handler {
	return []weaver.Handler{workType.Handler(w.handle), childType.Handler(w.handle), nodeType.Handler(w.handle)}
}

func (w *worker) handle(ctx context.Context, in order) (out receipt, err error) {
	cur, key := weaver.Current(ctx), "-"
	if in.Parent == "" {
		key, _ = keyOf(in)
	}
	w.log.task(lineEnter, cur.TaskID.String(), cur.AttemptNo, key)
	defer func() {
		how := "ok"
		if err != nil {
			how = "no"
		}
		w.log.task(lineExit, cur.TaskID.String(), cur.AttemptNo, how)
	}()
	out.N = in.N
	for _, m := range recipes[in.Kind] {
		stamps, err := w.move(ctx, in, m)
		if err != nil {
			return out, err
		}
		for _, s := range stamps {
			w.log.task(lineKept, cur.TaskID.String(), cur.AttemptNo, fmt.Sprintf("%s@%d", s.Step, s.Attempt))
		}
		out.Steps = append(out.Steps, stamps...)
	}
	return out, nil
}

func (w *worker) move(ctx context.Context, in order, m move) (stamps []stamp, err error) {
	var s stamp
	switch m.do {
	case doStep:
		s, err = w.step(ctx, in, m.names[0], w.work)
	case doShaky:
		first := true
		s, err = w.step(ctx, in, m.names[0], func(ctx context.Context) error {
			if first {
				first = false
				return errShaky
			}
			return w.work(ctx)
		}, weaver.StepRetry(3, time.Millisecond))
	case doTx, doHand:
		s, err = w.stepTx(ctx, in, m)
	case doSleep:
		return nil, weaver.Sleep(ctx, m.names[0], 20*time.Millisecond+rand.N(60*time.Millisecond))
	case doFail:
		if weaver.Current(ctx).AttemptCount == 0 {
			return nil, errors.New("the first attempt fails")
		}
		return nil, nil
	case doStart:
		_, err = weaver.Start(ctx, m.names[0], childType, order{N: in.N, Kind: "child", Parent: weaver.Current(ctx).TaskID.String()})
		return nil, err
	case doTogether:
		return w.together(ctx, in, m.names)
	case doSum:
		sum, err := w.sum(ctx, in)
		if err != nil {
			return nil, err
		}
		s, err = weaver.Step(ctx, m.names[0], func(ctx context.Context) (stamp, error) {
			return w.logged(ctx, in, m.names[0], func(s *stamp) error {
				s.Sum = sum
				return w.work(ctx)
			})
		})
		return []stamp{s}, err
	}
	return []stamp{s}, err
}

var errShaky = errors.New("the first try fails")

// logged wraps the function of a step: it logs its start and its return, and stamps its value.
func (w *worker) logged(ctx context.Context, in order, name string, fn func(s *stamp) error) (stamp, error) {
	cur := weaver.Current(ctx)
	id := cur.TaskID.String()
	w.log.task(lineStart, id, cur.AttemptNo, name)
	s := stamp{N: in.N, Step: name, Attempt: cur.AttemptNo, Life: w.log.life}
	if err := fn(&s); err != nil {
		w.log.task(lineFail, id, cur.AttemptNo, name)
		return s, err
	}
	w.log.task(lineReturn, id, cur.AttemptNo, name)
	return s, nil
}

func (w *worker) step(ctx context.Context, in order, name string, fn func(context.Context) error, opts ...weaver.StepOption) (stamp, error) {
	return weaver.Step(ctx, name, func(ctx context.Context) (stamp, error) {
		return w.logged(ctx, in, name, func(*stamp) error { return fn(ctx) })
	}, opts...)
}

// stepTx writes a row to the user's table and works a little in the middle of the transaction, so that kills can hit
// it there.
func (w *worker) stepTx(ctx context.Context, in order, m move) (stamp, error) {
	name := m.names[0]
	return weaver.StepTx(ctx, name, func(ctx context.Context, tx *sql.Tx) (stamp, error) {
		return w.logged(ctx, in, name, func(s *stamp) error {
			cur := weaver.Current(ctx)
			if m.do == doHand {
				got, err := weaver.InStepTx(ctx).EnqueueTasks(ctx, childType.With(order{N: in.N, Kind: "child", Parent: cur.TaskID.String()}))
				if err != nil {
					return err
				}
				s.Child = got[0].ID.String()
			}
			if err := w.effect(ctx, tx, cur.TaskID.String(), *s); err != nil {
				return err
			}
			return pause(ctx, w.pause/8)
		})
	})
}

const sqlEffect = `INSERT INTO effects (task, step, attempt, life) VALUES (?, ?, ?, ?)`

func insertEffect(ctx context.Context, tx *sql.Tx, task string, s stamp) error {
	_, err := tx.ExecContext(ctx, sqlEffect, task, s.Step, s.Attempt, s.Life)
	return err
}

func (w *worker) together(ctx context.Context, in order, names []string) ([]stamp, error) {
	stamps, errs := make([]stamp, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { stamps[i], errs[i] = w.step(ctx, in, name, w.work) })
	}
	wg.Wait()
	return stamps, errors.Join(errs...)
}

// sum adds up a node's number and the sums of its needs.
func (w *worker) sum(ctx context.Context, in order) (int, error) {
	sum := in.N
	for _, name := range in.Needs {
		got, err := nodeType.Output(ctx, name)
		if err != nil {
			return 0, err
		}
		sum = addSums(sum, got.Steps[0].Sum)
	}
	return sum, nil
}

// addSums adds modulo a prime, so that sums stay small.
func addSums(a, b int) int { return (a + b) % 1_000_003 }

// work is the body of a step's function: it takes a while.
func (w *worker) work(ctx context.Context) error { return pause(ctx, w.pause) }

// pause waits for up to longest.
func pause(ctx context.Context, longest time.Duration) error {
	timer := time.NewTimer(rand.N(longest + 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
