package memstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Tx is the transaction of one StepTx. It buffers enqueues, which are stored together
// with the step or not at all.
type Tx struct {
	store *Store

	mu    sync.Mutex // guards the fields below
	ended bool
	subs  []buffered
}

// buffered is one enqueue that waits for the commit, with its preview result.
type buffered struct {
	ns  string
	sub store.Submission
	out []store.Enqueued
}

// Driver implements store.Tx.
func (t *Tx) Driver() string { return "memstore" }

// Handle implements store.Tx. User code has no tables in memory, so the handle is the
// transaction itself.
func (t *Tx) Handle() any { return t }

// StepTx implements store.Flow. The function runs without a lock, so it may read the
// store.
func (s *Store) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if err := ctx.Err(); err != nil {
		return store.RecordResult{}, err
	}
	if rec.Step == nil {
		return store.RecordResult{}, fmt.Errorf("step transaction for task %s: there is no step to record", rec.Lease.Task)
	}
	if err := s.holds(ns, rec.Lease); err != nil {
		return store.RecordResult{Err: err}, err
	}
	inner, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		inner, cancel = context.WithTimeoutCause(ctx, limit, store.ErrStepTxTooLong)
	}
	defer cancel()
	tx := &Tx{store: s}
	defer tx.end()

	value, err := fn(inner, tx)
	subs := tx.end()
	if tooLong := inner.Err() != nil && ctx.Err() == nil; tooLong {
		return store.RecordResult{}, fmt.Errorf("after %v: %w", limit, store.ErrStepTxTooLong)
	}
	if err != nil {
		return store.RecordResult{}, err
	}
	step := *rec.Step
	step.Value = value
	rec.Step = &step
	return s.commit(ctx, ns, rec, subs)
}

// holds returns an error if a lease is lost.
func (s *Store) holds(ns string, l task.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := newOp(s.space(ns), s.dead, store.Now()).guard(l)
	return err
}

// commit records the step of a transaction, stores its enqueues, and notifies the
// listeners of every namespace that it wrote.
func (s *Store) commit(ctx context.Context, ns string, rec store.Record, subs []buffered) (store.RecordResult, error) {
	if err := ctx.Err(); err != nil {
		return store.RecordResult{}, err
	}
	notices := map[string]store.Notice{}
	res := s.apply(ns, rec, subs, notices)
	for ns, n := range notices {
		s.listeners.Notify(ns, n)
	}
	return res, res.Err
}

// apply guards and records the step and then stores the enqueues; all of it or nothing.
func (s *Store) apply(ns string, rec store.Record, subs []buffered, notices map[string]store.Notice) store.RecordResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stillTrue(subs) {
		return store.RecordResult{Err: fmt.Errorf("another enqueue took an idempotency key meanwhile: %w", store.ErrRestartTx)}
	}
	now := s.clock.Now()
	in := func(ns string, do func(o *op)) {
		o := newOp(s.space(ns), s.dead, now)
		o.notice = notices[ns]
		do(o)
		o.propagate()
		notices[ns] = o.result()
	}
	var res store.RecordResult
	recorded := false
	in(ns, func(o *op) {
		before := len(o.steps[rec.Lease.Task])
		res = o.record(&rec)
		recorded = len(o.steps[rec.Lease.Task]) > before
	})
	if res.Err != nil || !recorded {
		return res // rejected, or recorded before; the enqueues likewise
	}
	for _, b := range subs {
		in(b.ns, func(o *op) { o.enqueue(b.sub, task.ID{}) })
	}
	return res
}

// enqueue buffers the submission and returns its result for the present state.
func (t *Tx) enqueue(ctx context.Context, ns string, sub store.Submission) ([]store.Enqueued, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, fmt.Errorf("the step's transaction has ended: %w", store.ErrRestartTx)
	}
	b := buffered{ns: ns, sub: copySubmission(sub)}
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if err := t.store.space(ns).hasBases(sub.Job); err != nil {
		return nil, err
	}
	t.subs = append(t.subs, b)
	answers := t.store.preview(t.subs)
	t.subs[len(t.subs)-1].out = answers[len(answers)-1]
	return copyList(answers[len(answers)-1]), nil
}

// end closes the transaction for enqueues and returns the buffered ones.
func (t *Tx) end() []buffered {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.subs
}

// preview returns the results that enqueues would have if they were stored now, in order.
func (s *Store) preview(subs []buffered) [][]store.Enqueued {
	type inSpace[K comparable] struct {
		ns  string
		key K
	}
	ids := map[inSpace[task.ID]]bool{}
	keys := map[inSpace[idempotency]]task.ID{}
	jobs := map[inSpace[jobKey]]task.ID{}
	var answers [][]store.Enqueued
	for _, b := range subs {
		if j := b.sub.Job; j != nil && j.IdempotencyKey != "" {
			key := inSpace[jobKey]{b.ns, jobKey{j.Name, j.IdempotencyKey}}
			other, exists := s.space(b.ns).otherJob(j)
			if first, taken := jobs[key]; !exists && taken && first != j.ID {
				other, exists = first, true
			}
			if exists {
				answers = append(answers, existingJob(other, len(b.sub.Tasks)))
				continue
			}
			jobs[key] = j.ID
		}
		out := make([]store.Enqueued, len(b.sub.Tasks))
		for i := range b.sub.Tasks {
			n := &b.sub.Tasks[i]
			id := inSpace[task.ID]{b.ns, n.ID}
			key := inSpace[idempotency]{b.ns, idempotency{n.Type, n.IdempotencyKey}}
			known, exists := s.space(b.ns).known(n)
			first, taken := keys[key]
			switch {
			case exists:
				out[i] = known
			case !ids[id] && n.IdempotencyKey != "" && taken:
				out[i] = store.Enqueued{ID: first, Disposition: store.DispositionExisting}
			default:
				out[i] = store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}
				ids[id], keys[key] = true, n.ID
			}
		}
		answers = append(answers, out)
	}
	return answers
}

// stillTrue reports whether the results of enqueues are unchanged.
func (s *Store) stillTrue(subs []buffered) bool {
	for i, out := range s.preview(subs) {
		if !slices.Equal(out, subs[i].out) {
			return false
		}
	}
	return true
}

// copySubmission returns a copy that shares no memory with the caller.
func copySubmission(sub store.Submission) store.Submission {
	c := store.Submission{Tasks: slices.Clone(sub.Tasks)}
	if sub.Job != nil {
		c.Job = copyPtr(sub.Job)
		c.Job.Meta = copyMap(sub.Job.Meta)
	}
	for i := range c.Tasks {
		n := &c.Tasks[i]
		n.Input = copyRaw(n.Input)
		n.Labels, n.Metadata = copyMap(n.Labels), copyMap(n.Metadata)
		n.Needs = slices.Clone(n.Needs)
	}
	return c
}
