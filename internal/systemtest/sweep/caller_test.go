package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// courier is the store as a stubborn caller uses it. A request that got no
// answer, or whose process died, is made once more: the same submission with
// the same ids, to whichever process lives. It takes any other answer as it is.
type courier struct{ w *sweepWorld }

func carry[R any](ctx context.Context, c courier, ask func(s store.Store, again bool) (R, error)) (R, error) {
	for try := 1; ; try++ {
		p, err := c.w.living(ctx)
		if err != nil {
			var none R
			return none, err
		}
		res, err := ask(p.fault.Store(), try > 1)
		if !ours(err) || ctx.Err() != nil {
			return res, err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// Enqueue implements store.Producer.
func (c courier) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	got, err := carry(ctx, c, func(s store.Store, _ bool) ([]store.Enqueued, error) { return s.Enqueue(ctx, ns, tx, sub) })
	if err == nil {
		c.w.watch.ack(got)
	}
	return got, err
}

// Operate implements store.Producer. A verb asked again may find its work
// done: then the state no longer allows it, or the task is gone.
func (c courier) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	return carry(ctx, c, func(s store.Store, again bool) ([]store.CommandResult, error) {
		got, err := s.Operate(ctx, ns, cmds...)
		for i := range got {
			if again && (errors.Is(got[i].Err, store.ErrState) || errors.Is(got[i].Err, store.ErrChanged) || errors.Is(got[i].Err, store.ErrNotFound)) {
				got[i].Err = nil
			}
		}
		return got, err
	})
}

// Tasks implements store.Reader.
func (c courier) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	return carry(ctx, c, func(s store.Store, _ bool) ([]task.Task, error) { return s.Tasks(ctx, ns, ids...) })
}

// List implements store.Reader.
func (c courier) List(ctx context.Context, ns string, f store.Filter) (rows []task.Task, next string, err error) {
	_, err = carry(ctx, c, func(s store.Store, _ bool) (_ struct{}, err error) {
		rows, next, err = s.List(ctx, ns, f)
		return struct{}{}, err
	})
	return rows, next, err
}

// History implements store.Reader.
func (c courier) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	return carry(ctx, c, func(s store.Store, _ bool) (store.History, error) { return s.History(ctx, ns, id) })
}

// Needs implements store.Reader.
func (c courier) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	return carry(ctx, c, func(s store.Store, _ bool) ([]store.Need, error) { return s.Needs(ctx, ns, id) })
}

// Job implements store.Reader.
func (c courier) Job(ctx context.Context, ns string, id task.ID) (task.Job, error) {
	return carry(ctx, c, func(s store.Store, _ bool) (task.Job, error) { return s.Job(ctx, ns, id) })
}

// Jobs implements store.Reader.
func (c courier) Jobs(ctx context.Context, ns string, f store.JobFilter) (rows []task.Job, next string, err error) {
	_, err = carry(ctx, c, func(s store.Store, _ bool) (_ struct{}, err error) {
		rows, next, err = s.Jobs(ctx, ns, f)
		return struct{}{}, err
	})
	return rows, next, err
}

// Queues implements store.Reader.
func (c courier) Queues(ctx context.Context, ns string) ([]store.Queue, error) {
	return carry(ctx, c, func(s store.Store, _ bool) ([]store.Queue, error) { return s.Queues(ctx, ns) })
}

// Snapshot implements store.Reader.
func (c courier) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	return carry(ctx, c, func(s store.Store, _ bool) (*store.Snapshot, error) { return s.Snapshot(ctx, ns) })
}

// Ready implements store.Reader.
func (c courier) Ready(ctx context.Context) error {
	_, err := carry(ctx, c, func(s store.Store, _ bool) (struct{}, error) { return struct{}{}, s.Ready(ctx) })
	return err
}

// Notify implements store.Notifier: callers hear what the store says, whoever
// is dead.
func (c courier) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	return c.w.ground.eyes.(store.Notifier).Notify(ns, fn)
}

// callerStore is the courier as a whole store. Callers hold no leases: those
// methods are missing, and would panic.
type callerStore struct {
	store.Worker
	courier
}

// What scenes say to callers and of results.

// enqueue stores one task.
func sweepEnqueue[In, Out any](w *sweepWorld, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) *weaver.Handle[Out] {
	w.Helper()
	h, err := typ.Enqueue(w.ctx, w.client, in, opts...)
	w.must(err)
	return h
}

// succeeds waits for a task that must succeed with this output.
func succeeds[Out comparable](w *sweepWorld, h *weaver.Handle[Out], want Out) {
	w.Helper()
	got, err := h.Wait(w.ctx)
	if err != nil {
		w.giveUp("task %s must succeed: %v%s", h.ID(), err, w.tell(h.ID()))
	}
	if got != want {
		w.wrong("task %s gave %v, want %v", h.ID(), got, want)
	}
}

// ends waits for a task that must fail or be cancelled.
func ends(w *sweepWorld, id weaver.TaskID, state weaver.State, kind weaver.ErrorKind) {
	w.Helper()
	_, err := w.client.Wait(w.ctx, id)
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok {
		w.giveUp("task %s must end %s: Wait says %v%s", id, state, err, w.tell(id))
	}
	if te.State != state || te.Kind != kind {
		w.wrong("task %s ended %s (%s), want %s (%s): %s%s", id, te.State, te.Kind, state, kind, te.Message, w.tell(id))
	}
}

// blocks waits for a task that must block.
func blocks(w *sweepWorld, id weaver.TaskID) {
	w.Helper()
	if _, err := w.client.Wait(w.ctx, id); !errors.Is(err, weaver.ErrBlocked) {
		w.giveUp("task %s must block: Wait says %v%s", id, err, w.tell(id))
	}
}

// jobEnds waits for a job that must end so.
func jobEnds(w *sweepWorld, h *weaver.JobHandle, state weaver.JobState) {
	w.Helper()
	res, err := h.Wait(w.ctx)
	if err != nil {
		w.giveUp("job %q must end %s: Wait says %v%s", res.Name, state, err, w.tell(weaver.TaskID{}))
	}
	if res.State != state {
		w.wrong("job %q ended %s, want %s: %+v", res.Name, res.State, state, res)
	}
}

// tell says how the tasks stand, for messages.
func (w *sweepWorld) tell(id weaver.TaskID) string {
	snap, err := w.ground.eyes.Snapshot(context.WithoutCancel(w.ctx), weaver.DefaultNamespace)
	if err != nil {
		return "\n\t" + err.Error()
	}
	text := ""
	for _, t := range snap.Tasks {
		if id.IsZero() || t.ID == id {
			raw, err := json.Marshal(t)
			if err != nil {
				raw = []byte(err.Error())
			}
			text += "\n\t" + string(raw)
		}
	}
	for _, a := range snap.Attempts {
		if a.TaskID == id {
			raw, err := json.Marshal(a)
			if err != nil {
				raw = []byte(err.Error())
			}
			text += "\n\t" + string(raw)
		}
	}
	return text
}
