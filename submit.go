package weaver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// SubmitOption is an option of Submit.
type SubmitOption interface{ applySubmit(*submitSettings) }

type submitSettings struct {
	key  string
	errs []error
}

func readSubmitOptions(opts []SubmitOption) (set submitSettings) {
	for _, o := range opts {
		if o == nil {
			set.errs = append(set.errs, errors.New("an option is nil"))
			continue
		}
		o.applySubmit(&set)
	}
	return set
}

// KeyOption is an IdempotencyKey: of an enqueue, or of a Submit.
type KeyOption interface {
	EnqueueOption
	SubmitOption
}

type keyOption string

func (o keyOption) ApplyEnqueue(s *option.Settings) { option.IdempotencyKey.Set(string(o))(s) }

func (o keyOption) applySubmit(s *submitSettings) {
	if err := o.check(); err != nil {
		s.errs = append(s.errs, err)
	}
	s.key = string(o)
}

func (o keyOption) check() error { return option.CheckKey("IdempotencyKey", string(o)) }

// IdempotencyKey deduplicates an enqueue: while a task of this type with this key exists, in any
// state, enqueueing again returns it (store.DispositionExisting), whatever the input. Deleting it
// frees the key.
//
// Given to Submit it does the same for a job: while a job of this name with this key exists,
// submitting again returns it, whatever its tasks.
func IdempotencyKey(key string) KeyOption { return keyOption(key) }

// Submit stores the job with all its tasks, or nothing. It reports all mistakes at once:
// ErrInvalidJob. Inside a handler use StartJob, or set an IdempotencyKey: every attempt submits again.
//
// SQLite stores a job of more than 2,000 tasks in several transactions, so that others write in
// between. The first one commits the job: if the process or ctx ends after it, any worker stores the
// rest. No task starts before all are stored.
func (c *Client) Submit(ctx context.Context, j *Job, opts ...SubmitOption) (*JobHandle, error) {
	if engine.StepTxOf(ctx) != nil {
		return nil, fmt.Errorf("submit: %w", ErrNestedTx)
	}
	h, err := c.submit(ctx, nil, j, opts)
	if err == nil {
		h.client = c
	}
	return h, err
}

// Submit stores a job in the transaction: it exists if and only if the transaction commits; its handle
// returns ErrUnbound from Wait. A job of any size is stored in that one transaction, and other writers
// of SQLite wait for its end.
func (t *TxClient) Submit(ctx context.Context, j *Job, opts ...SubmitOption) (*JobHandle, error) {
	if t.err != nil {
		return nil, fmt.Errorf("submit: %w", t.err)
	}
	return t.c.submit(ctx, t.tx, j, opts)
}

func (c *Client) submit(ctx context.Context, tx store.Tx, j *Job, opts []SubmitOption) (*JobHandle, error) {
	set := readSubmitOptions(opts)
	sub, err := j.submission(c.ids, c.toNew, &set)
	if err != nil {
		return nil, err
	}
	c.injectInto(ctx, sub.Tasks)
	if tx == nil && set.key == "" {
		c.warnUnkeyedJob(ctx, j.name)
	}
	got, err := c.submitTo(ctx, tx, sub)
	if err != nil {
		return nil, fmt.Errorf("submit job %q: %w", j.name, err)
	}
	if got[0].Disposition == store.DispositionExisting {
		return &JobHandle{id: got[0].Job, disposition: store.DispositionExisting}, nil
	}
	return &JobHandle{id: sub.Job.ID, disposition: store.DispositionCreated}, nil
}

// warnUnkeyedJob warns, once per job name, of submits in a handler without an idempotency key, which
// every attempt repeats.
func (c *Client) warnUnkeyedJob(ctx context.Context, name string) {
	a, err := engine.From(ctx)
	if err != nil {
		return
	}
	if _, warned := c.warned.LoadOrStore("job "+name, true); !warned {
		c.log.Warn("submitted a job in a handler without an idempotency key: every attempt submits again; use weaver.StartJob, or an IdempotencyKey",
			"job", name, "handler", a.Task().Type, "task_id", a.Task().ID)
	}
}

// StartJob submits a job as a step: it happens once for this task, under the name. StartJob does not
// wait for the job. An invalid job fails the task at once.
func StartJob(ctx context.Context, name string, j *Job) (JobID, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return JobID{}, fmt.Errorf("start %q: %w", name, err)
	}
	c := clientOf(a)
	return Step(ctx, name, func(ctx context.Context) (JobID, error) {
		// Crash after the submit: the next attempt finds the job by its key.
		h, err := c.Submit(ctx, j, IdempotencyKey(jobKey(a.Task().ID, name)))
		switch {
		case errors.Is(err, ErrInvalidJob):
			return JobID{}, Permanent(err)
		case err != nil:
			return JobID{}, err
		}
		return h.ID(), nil
	})
}

// jobKey is CurrentInfo.StepKey, cut to the maximum length of a key.
func jobKey(id TaskID, step string) string {
	key := CurrentInfo{TaskID: id}.StepKey(step)
	if len(key) <= task.MaxKey {
		return key
	}
	sum := sha256.Sum256([]byte(step))
	return CurrentInfo{TaskID: id}.StepKey(hex.EncodeToString(sum[:]))
}

// clientOf returns a client for tasks that a handler stores.
func clientOf(a *engine.Attempt) *Client {
	return &Client{given: a.Store(), store: a.Store(), ns: a.Namespace(), limit: a.InlineLimit(), ids: a.IDs(), values: a.Values(), inject: a.Inject(), stored: a.Stored(), redact: a.Redact()}
}
