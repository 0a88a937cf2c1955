package faultstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Store returns the store as the process sees it, with the abilities of the
// store below.
func (p *Process) Store() store.Store {
	v := view{p}
	n, notifies := p.inner.(store.Notifier)
	x, transacts := p.inner.(store.StepTxer)
	switch {
	case notifies && transacts:
		return struct {
			view
			notifier
			stepTxer
		}{v, notifier{p, n}, stepTxer{p, x}}
	case notifies:
		return struct {
			view
			notifier
		}{v, notifier{p, n}}
	case transacts:
		return struct {
			view
			stepTxer
		}{v, stepTxer{p, x}}
	}
	return v
}

type view struct{ p *Process }

// Enqueue implements store.Producer.
func (v view) Enqueue(ctx context.Context, ns string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	return through(ctx, v.p, "Enqueue", func(ctx context.Context) ([]store.Enqueued, error) {
		return v.p.inner.Enqueue(ctx, ns, tx, sub)
	})
}

// Operate implements store.Producer.
func (v view) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	return through(ctx, v.p, "Operate", func(ctx context.Context) ([]store.CommandResult, error) {
		return v.p.inner.Operate(ctx, ns, cmds...)
	})
}

// Join implements store.Worker.
func (v view) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	return only(ctx, v.p, "Join", func(ctx context.Context) error {
		v.p.mu.Lock()
		v.p.workers = append(v.p.workers, w.ID)
		v.p.mu.Unlock()
		return v.p.inner.Join(ctx, ns, w)
	})
}

// Leave implements store.Worker.
func (v view) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	return only(ctx, v.p, "Leave", func(ctx context.Context) error { return v.p.inner.Leave(ctx, ns, id) })
}

// Claim implements store.Worker.
func (v view) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	return through(ctx, v.p, "Claim", func(ctx context.Context) (store.ClaimResult, error) {
		return v.p.inner.Claim(ctx, ns, req)
	})
}

// ClaimOrWait implements store.WaitingClaimer: as the store below does, or by
// answering at once. To the faults it is a Claim.
func (v view) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, wait time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	below, ok := v.p.inner.(store.WaitingClaimer)
	if !ok {
		return v.Claim(ctx, ns, req)
	}
	return through(ctx, v.p, "Claim", func(ctx context.Context) (store.ClaimResult, error) {
		return below.ClaimOrWait(ctx, ns, req, wait, wake)
	})
}

// Heartbeat implements store.Worker.
func (v view) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	return through(ctx, v.p, "Heartbeat", func(ctx context.Context) ([]store.Beat, error) {
		return v.p.inner.Heartbeat(ctx, ns, req)
	})
}

// Finish implements store.Worker.
func (v view) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	return through(ctx, v.p, "Finish", func(ctx context.Context) ([]store.FinishResult, error) {
		return v.p.inner.Finish(ctx, ns, fins...)
	})
}

// Record implements store.Worker.
func (v view) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	return through(ctx, v.p, "Record", func(ctx context.Context) ([]store.RecordResult, error) {
		return v.p.inner.Record(ctx, ns, recs...)
	})
}

// Reap implements store.Worker.
func (v view) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	return through(ctx, v.p, "Reap", func(ctx context.Context) (store.ReapResult, error) {
		return v.p.inner.Reap(ctx, ns, req)
	})
}

// Ready implements store.Reader.
func (v view) Ready(ctx context.Context) error { return only(ctx, v.p, "Ready", v.p.inner.Ready) }

// Tasks implements store.Reader.
func (v view) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	return through(ctx, v.p, "Tasks", func(ctx context.Context) ([]task.Task, error) {
		return v.p.inner.Tasks(ctx, ns, ids...)
	})
}

// page is an answer with a cursor.
type page[T any] struct {
	rows []T
	next string
}

// List implements store.Reader.
func (v view) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	got, err := through(ctx, v.p, "List", func(ctx context.Context) (page[task.Task], error) {
		rows, next, err := v.p.inner.List(ctx, ns, f)
		return page[task.Task]{rows, next}, err
	})
	return got.rows, got.next, err
}

// History implements store.Reader.
func (v view) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	return through(ctx, v.p, "History", func(ctx context.Context) (store.History, error) {
		return v.p.inner.History(ctx, ns, id)
	})
}

// Needs implements store.Reader.
func (v view) Needs(ctx context.Context, ns string, id task.ID) ([]store.Need, error) {
	return through(ctx, v.p, "Needs", func(ctx context.Context) ([]store.Need, error) {
		return v.p.inner.Needs(ctx, ns, id)
	})
}

// Job implements store.Reader.
func (v view) Job(ctx context.Context, ns string, id task.ID) (task.Job, error) {
	return through(ctx, v.p, "Job", func(ctx context.Context) (task.Job, error) {
		return v.p.inner.Job(ctx, ns, id)
	})
}

// Jobs implements store.Reader.
func (v view) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	got, err := through(ctx, v.p, "Jobs", func(ctx context.Context) (page[task.Job], error) {
		rows, next, err := v.p.inner.Jobs(ctx, ns, f)
		return page[task.Job]{rows, next}, err
	})
	return got.rows, got.next, err
}

// Queues implements store.Reader.
func (v view) Queues(ctx context.Context, ns string) ([]store.Queue, error) {
	return through(ctx, v.p, "Queues", func(ctx context.Context) ([]store.Queue, error) {
		return v.p.inner.Queues(ctx, ns)
	})
}

// Snapshot implements store.Reader.
func (v view) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	return through(ctx, v.p, "Snapshot", func(ctx context.Context) (*store.Snapshot, error) {
		return v.p.inner.Snapshot(ctx, ns)
	})
}

type notifier struct {
	p     *Process
	below store.Notifier
}

// Notify implements store.Notifier. A dead process hears nothing.
func (n notifier) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	s, err := n.p.enter("Notify")
	if err != nil {
		return func() {}, false
	}
	if s.Fault == CrashBefore {
		n.p.Die()
	}
	stop, complete = func() {}, false
	if s.Fault != CrashBefore {
		stop, complete = n.below.Notify(ns, func(notice store.Notice) {
			if !n.p.Died() {
				fn(notice)
			}
		})
	}
	if s.Fault == CrashAfter {
		n.p.Die()
	}
	_ = n.p.leave() // whoever is dead learns it with the next call
	return stop, complete
}

type stepTxer struct {
	p     *Process
	below store.StepTxer
}

// StepTx implements store.StepTxer. Faults strike the whole call, or inside
// it: before the function runs, and after it but before the commit.
func (x stepTxer) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	return through(ctx, x.p, "StepTx", func(ctx context.Context) (store.RecordResult, error) {
		return x.below.StepTx(ctx, ns, rec, limit, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
			if err := x.p.moment(StepTxBegun); err != nil {
				return nil, err
			}
			value, err := fn(ctx, tx)
			if err == nil {
				err = x.p.moment(StepTxRan)
			}
			return value, err
		})
	})
}

// moment is a place inside a call. Its error rolls the transaction back.
func (p *Process) moment(name string) error {
	s, err := p.enter(name)
	if err != nil {
		return err
	}
	switch s.Fault {
	case ErrorBefore:
		err = s.trouble()
	case CrashBefore:
		p.Die()
	}
	if dead := p.leave(); dead != nil {
		return dead
	}
	return err
}
