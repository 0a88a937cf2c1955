package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// PutArtifact stores the content of r as an artifact of the step that ctx belongs to. The artifact is recorded with
// the step.
func (a *Attempt) PutArtifact(ctx context.Context, n store.NewArtifact, r io.Reader) (store.NewArtifact, error) {
	scope, err := artifactScope(ctx, n.Name)
	if err != nil {
		return n, err
	}
	b, err := a.env.Values.Stream(ctx, a.task.ID, r)
	if err != nil {
		err = fmt.Errorf("put artifact %q: %w", n.Name, err)
		if errors.Is(err, blob.ErrNoBucket) || errors.Is(err, store.ErrOtherBucket) { // whatever the handler does with the error
			return n, a.failFatally(&Verdict{Kind: NotHere, Err: err})
		}
		return n, a.notPut(ctx, err)
	}
	n.Blob = b
	return a.keepArtifact(scope, n), nil
}

// KeepLink is [Attempt.PutArtifact] for a link.
func (a *Attempt) KeepLink(ctx context.Context, n store.NewArtifact) (store.NewArtifact, error) {
	scope, err := artifactScope(ctx, n.Name)
	if err != nil {
		return n, err
	}
	return a.keepArtifact(scope, n), nil
}

// artifactScope returns the step with which an artifact is recorded.
func artifactScope(ctx context.Context, name string) (*stepScope, error) {
	scope, _ := ctx.Value(stepKey{}).(*stepScope)
	switch {
	case scope == nil:
		return nil, errors.New("an artifact is kept in a step")
	case scope.tx != nil:
		return nil, fmt.Errorf("artifact %q: a StepTx holds the store's writer: keep artifacts in a step of their own", name)
	}
	return scope, nil
}

func (a *Attempt) keepArtifact(scope *stepScope, n store.NewArtifact) store.NewArtifact {
	n.ID = a.env.IDs.New()
	a.mu.Lock()
	scope.artifacts = append(scope.artifacts, n)
	a.mu.Unlock()
	return n
}

// NeedBucket ends an attempt on a worker without a bucket before it does useless work: another worker may have a
// bucket.
func (a *Attempt) NeedBucket(what string) error {
	if a.env.Values.Bucket != nil {
		return nil
	}
	return a.failFatally(&Verdict{Kind: NotHere, Err: fmt.Errorf("%s: %w", what, blob.ErrNoBucket)})
}

// Recorded reports whether a step of this name is already completed.
func (a *Attempt) Recorded(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entryOf(name).done != nil
}

// OpenArtifact returns the bytes of an artifact as a stream.
func (a *Attempt) OpenArtifact(ctx context.Context, name string, b task.Blob) (io.ReadCloser, error) {
	ctx = a.readContext(ctx)
	r, err := a.env.Values.Open(ctx, b)
	if err != nil {
		return nil, unreadableArtifact(ctx, name, err)
	}
	return &artifactReader{r, ctx, name}, nil
}

// ArtifactsOf returns the artifacts of a task, oldest first.
func (a *Attempt) ArtifactsOf(ctx context.Context, id task.ID) ([]task.Artifact, error) {
	ctx = a.readContext(ctx)
	h, err := a.env.Store.History(ctx, a.env.Namespace, id)
	switch {
	case err == nil || errors.Is(err, store.ErrNotFound):
		return h.Artifacts, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, &KindError{Kind: task.KindInternal, Err: fmt.Errorf("read the artifacts of task %s: %w", id, err)}
}

// artifactReader turns an error of reading the bytes into the end of the attempt that returns it.
type artifactReader struct {
	io.ReadCloser
	ctx  context.Context // the context of its OpenArtifact
	name string
}

func (r *artifactReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unreadableArtifact(r.ctx, r.name, err)
	}
	return n, err
}

func unreadableArtifact(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return Unreadable(fmt.Sprintf("artifact %q", name), "", err)
}

// notPut classifies an error of storing the bytes.
func (a *Attempt) notPut(ctx context.Context, err error) error {
	var source *sourceError
	if errors.As(err, &source) || errors.Is(err, errChanged) || ctx.Err() != nil {
		return err
	}
	switch {
	case IsOwnTrouble(err):
		return &Verdict{Kind: NotHere, Err: err}
	case store.Refused(err):
		return &KindError{Kind: task.KindValidation, Err: err}
	}
	return &KindError{Kind: task.KindInternal, Err: err}
}

// unrecordable ends the attempt because the bucket did not take a value. The step ran and is not recorded, so the
// handler must not continue as if the step had failed.
func (a *Attempt) unrecordable(scope context.Context, err error) error {
	err = a.notPut(scope, err)
	if scope.Err() != nil {
		return err
	}
	return a.failFatally(err)
}

// Values returns the store of long values.
func (a *Attempt) Values() *Values { return a.env.Values }

// loadInput replaces a blob reference by the input itself. A handler never starts while a value of its task cannot be
// opened: the task is left to a worker that can open it.
func (a *Attempt) loadInput() error {
	err := a.openValues()
	var ke *KindError
	if errors.As(err, &ke) && ke.Kind == task.KindInternal {
		return &Verdict{Kind: NotHere, Err: err}
	}
	return err
}

func (a *Attempt) openValues() error {
	if err := Erased("input", &a.task); err != nil { // it is retried because a task that it needs was retried
		return err
	}
	if err := seal.Failure(a.task.UnblockInput); err != nil {
		return Unreadable("input given to unblock", "", err)
	}
	for _, e := range a.journal {
		if e.done == nil {
			continue
		}
		if err := seal.Failure(e.done.Value); err != nil {
			return Unreadable("recorded value of step "+e.done.Name, e.done.Name, err)
		}
	}
	input, err := a.env.Values.Load(a.readContext(a.ctx), a.task.Input)
	if err != nil {
		return Unreadable("input", "", err)
	}
	if err := expired(input); err != nil {
		return err
	}
	a.task.Input = input
	return nil
}

// Load returns an output that the handler reads.
func (a *Attempt) Load(ctx context.Context, what string, value json.RawMessage) (json.RawMessage, error) {
	ctx = a.readContext(ctx)
	whole, err := a.env.Values.Load(ctx, value)
	if err != nil && ctx.Err() == nil {
		err = Unreadable(what, "", err)
	}
	return whole, err
}

// replayed is replay for a step whose value may be in the bucket.
func (a *Attempt) replayed(ctx context.Context, done *task.Step) (json.RawMessage, error) {
	raw, err := replay(done)
	if _, large := task.BlobOf(raw); err != nil || !large && !task.IsSealed(raw) {
		return raw, err
	}
	ctx = a.readContext(ctx)
	whole, err := a.env.Values.Load(ctx, raw)
	if err != nil && ctx.Err() == nil {
		return nil, a.failFatally(Unreadable("recorded value of step "+done.Name, done.Name, err))
	}
	return whole, err
}

// keepRecord moves long values of a record into the bucket.
func (a *Attempt) keepRecord(ctx context.Context, rec *store.Record) error {
	v := a.env.Values
	tasks, err := v.KeepInputs(ctx, rec.Tasks)
	if err != nil {
		return err
	}
	rec.Tasks = tasks
	if rec.Step == nil || len(rec.Step.Value) <= v.Limit {
		return nil
	}
	value, err := v.Keep(ctx, a.task.ID, rec.Step.Value)
	if err != nil {
		return fmt.Errorf("keep the value of step %q in the bucket: %w", rec.Step.Name, err)
	}
	step := *rec.Step
	step.Value = value
	rec.Step = &step
	return nil
}

// keepFinish moves long values of a finish into the bucket.
func (v *Values) keepFinish(ctx context.Context, fin *store.Finish) error {
	children, err := v.KeepInputs(ctx, fin.Children)
	if err != nil {
		return err
	}
	fin.Children = children
	output, err := v.Keep(ctx, fin.Lease.Task, fin.Output)
	if err != nil {
		return fmt.Errorf("keep the output in the bucket: %w", err)
	}
	fin.Output = output
	return nil
}
