package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Enqueuer stores drafts: a Client, an Engine, a TxClient, or InStepTx.
type Enqueuer interface {
	// EnqueueTasks stores the drafts in one transaction, all or nothing, and returns results in their
	// order.
	EnqueueTasks(ctx context.Context, drafts ...Draft) ([]Enqueued, error)
}

// Caller enqueues, reads and operates the tasks of a namespace. Client and Engine implement it
// locally, and the client of package httpapi over HTTP. Task types and signals accept any of them.
type Caller interface {
	Enqueuer

	// Submit stores the job with all its tasks, or nothing.
	Submit(ctx context.Context, j *Job, opts ...SubmitOption) (*JobHandle, error)

	Get(ctx context.Context, id TaskID) (TaskInfo, error)
	List(ctx context.Context, f Filter) (tasks []TaskInfo, next string, err error)
	Job(ctx context.Context, id JobID) (JobInfo, error)

	Wait(ctx context.Context, id TaskID, opts ...WaitOption) (TaskInfo, error)
	WaitJob(ctx context.Context, id JobID, opts ...WaitOption) (JobResult, error)

	// SendSignal sends a signal with an encoded payload; see Signal.Send.
	SendSignal(ctx context.Context, id TaskID, name, key string, payload json.RawMessage, opts ...OperateOption) error
}

// Enqueued is the result for one draft.
type Enqueued struct {
	ID          TaskID
	Type        string
	Disposition store.Disposition // created; existing: the idempotency key exists, and the input was ignored; coalesced: a waiting task took the input (Coalesce)
}

// EnqueueTasks implements Enqueuer. It checks every draft before it writes, then stores all in one
// transaction. When it returns nil every task is durable.
func (c *Client) EnqueueTasks(ctx context.Context, drafts ...Draft) ([]Enqueued, error) {
	if engine.StepTxOf(ctx) != nil {
		return nil, fmt.Errorf("enqueue: %w", ErrNestedTx)
	}
	c.warnUnkeyed(ctx, drafts)
	return c.enqueue(ctx, nil, drafts)
}

// enqueue stores drafts, through the plug-ins if there are any.
func (c *Client) enqueue(ctx context.Context, tx store.Tx, drafts []Draft) ([]Enqueued, error) {
	if c.wrapped == nil {
		return c.enqueueDrafts(ctx, tx, drafts)
	}
	return c.wrapped(context.WithValue(ctx, enqueueKey{}, &enqueuing{c, tx}), drafts...)
}

func (c *Client) enqueueDrafts(ctx context.Context, tx store.Tx, drafts []Draft) ([]Enqueued, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	sub := store.Submission{Tasks: make([]task.New, len(drafts))}
	var problems []error
	for i, d := range drafts {
		var err error
		if sub.Tasks[i], err = c.toNew(d); err == nil && sub.Tasks[i].RequireSameInput && (len(drafts) > 1 || tx != nil) {
			err = fmt.Errorf("%w of %s: RequireSameInput is for one task that is enqueued by itself, outside a transaction", ErrInvalidOption, d.typeName)
		}
		if err != nil {
			if len(drafts) > 1 {
				err = fmt.Errorf("draft %d: %w", i, err)
			}
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("enqueue: nothing was stored: %w", errors.Join(problems...))
	}
	c.injectInto(ctx, sub.Tasks)
	got, err := c.submitTo(ctx, tx, sub)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if sub.Tasks[0].RequireSameInput && got[0].Disposition == store.DispositionExisting {
		if err := c.requireInput(ctx, got[0].ID, &sub.Tasks[0]); err != nil {
			return nil, fmt.Errorf("enqueue: nothing was stored: %w", err)
		}
	}
	out := make([]Enqueued, len(got))
	for i, g := range got {
		out[i] = Enqueued{ID: g.ID, Type: drafts[i].typeName, Disposition: g.Disposition}
	}
	return out, nil
}

// submitTo stores a submission. It first puts inputs over the inline limit into the bucket, but not
// inside a transaction, which may hold the only writer of the store.
func (c *Client) submitTo(ctx context.Context, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	got, err := c.put(ctx, tx, sub)
	if err == nil && tx == nil {
		c.hints.push(ctx, c.ns, sub.Tasks, got)
	}
	if err == nil && c.stored != nil {
		var created []task.New
		for i := range got {
			if got[i].Disposition == store.DispositionCreated && i < len(sub.Tasks) {
				created = append(created, sub.Tasks[i])
			}
		}
		c.stored(ctx, created)
	}
	return got, err
}

func (c *Client) put(ctx context.Context, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if err := c.room.check(ctx, c, tx, sub.Tasks); err != nil {
		return nil, err
	}
	if tx == nil && c.hasBucket() {
		return c.values.Enqueue(ctx, sub)
	}
	for i := range sub.Tasks {
		if n := len(sub.Tasks[i].Input); n > c.limit {
			return nil, fmt.Errorf("%w: the input of %s is %d bytes, the limit inside a transaction is %d: enqueue it without one, or keep the data with PutArtifact and pass the reference", ErrTooLarge, sub.Tasks[i].Type, n, c.limit)
		}
	}
	return c.store.Enqueue(ctx, c.ns, tx, sub)
}

// toNew turns a draft into a task with an ID, or returns the error of the draft.
func (c *Client) toNew(d Draft) (task.New, error) {
	n, err := d.task()
	if err != nil {
		return task.New{}, err
	}
	if err := c.checkInput(d.typeName, len(d.input)); err != nil {
		return task.New{}, err
	}
	n.ID = c.ids.New()
	n.Redact = slices.Concat(n.Redact, c.redact)
	return n, nil
}

// warnUnkeyed warns, once per task type, of enqueues in a handler without an idempotency key, which
// every attempt repeats.
func (c *Client) warnUnkeyed(ctx context.Context, drafts []Draft) {
	a, err := engine.From(ctx)
	if err != nil {
		return
	}
	for _, d := range drafts {
		if d.options().IdempotencyKey != "" || d.typeName == "" {
			continue
		}
		if _, warned := c.warned.LoadOrStore(d.typeName, true); !warned {
			c.log.Warn("enqueued in a handler without an idempotency key: every attempt enqueues again; use weaver.Start, or an IdempotencyKey",
				"task_type", d.typeName, "handler", a.Task().Type, "task_id", a.Task().ID)
		}
	}
}

// TxClient enqueues inside a caller's transaction. Its tasks exist if and only if that transaction
// commits, and are invisible until then.
type TxClient struct {
	c   *Client
	tx  store.Tx
	err error // set if there is no transaction
}

// InTx enqueues and submits inside a transaction, wrapped by the store's adapter: sqlite.Tx(tx). All
// rules of the client apply. Handles of such an enqueue return ErrUnbound from Wait and Get. After the
// commit call Wake, or wait for the store's own notice.
func (c *Client) InTx(tx store.Tx) *TxClient {
	if tx == nil {
		return &TxClient{err: fmt.Errorf("InTx(nil): %w", store.ErrNilTx)}
	}
	return &TxClient{c: c, tx: tx}
}

// EnqueueTasks implements Enqueuer.
func (t *TxClient) EnqueueTasks(ctx context.Context, drafts ...Draft) ([]Enqueued, error) {
	if t.err != nil {
		return nil, fmt.Errorf("enqueue: %w", t.err)
	}
	return t.c.enqueue(ctx, t.tx, drafts)
}

// InStepTx enqueues and submits in the transaction of the StepTx that ctx belongs to: the tasks and
// jobs exist exactly if the step is recorded. Outside a StepTx its methods return ErrNoTask.
func InStepTx(ctx context.Context) *TxClient {
	a, err := engine.From(ctx)
	tx := engine.StepTxOf(ctx)
	if err != nil || tx == nil {
		return &TxClient{err: fmt.Errorf("InStepTx outside a StepTx: %w", ErrNoTask)}
	}
	return clientOf(a).InTx(tx)
}
