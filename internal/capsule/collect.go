package capsule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Options select what is copied.
type Options struct {
	NoPayloads bool   // leave out inputs, outputs, values, signals, artifacts, events and logs
	Limit      int64  // of the bytes of artifacts and large values; 0: DefaultLimit
	Weaver     string // version of this program
}

// reader collects the content of a capsule.
type reader struct {
	*weaver.Client
	store store.Store
	opts  Options
	room  int64 // bytes left of the limit
	got   *Content
	blobs map[task.ID]bool // in got.Blobs, or left out
}

// Collect reads a task with its children, or a job with its tasks and their children, and masks what readers must not
// see. The rows of a task are one snapshot. The tasks are read one after the other, parents first, and what is
// said about a job is counted from them. Error: store.ErrNotFound.
func Collect(ctx context.Context, from *weaver.Client, id task.ID, opts Options) (*Content, error) {
	r := newReader(from, opts)
	r.got.Info = Info{Format: format, Weaver: opts.Weaver, ExportedAt: time.Now().UTC().Truncate(time.Microsecond), Namespace: from.Namespace(), Payloads: !opts.NoPayloads, LeftOut: []LeftOut{}}
	if err := r.roots(ctx, id); err != nil {
		return nil, err
	}
	texts := secrets(r.got)
	if err := r.artifacts(ctx, texts); err != nil {
		return nil, err
	}
	r.got.mask(texts)
	if opts.NoPayloads {
		r.got.dropPayloads()
	}
	return r.got, nil
}

// Read reads a capsule from a client of the opened file.
func Read(ctx context.Context, from *weaver.Client, info Info) (*Content, error) {
	r := newReader(from, Options{NoPayloads: !info.Payloads, Limit: 1 << 62})
	if err := r.roots(ctx, cmp.Or(info.Task, info.Job)); err != nil {
		return nil, err
	}
	r.got.Info = info
	return r.got, nil
}

func newReader(from *weaver.Client, opts Options) *reader {
	if opts.Limit == 0 {
		opts.Limit = DefaultLimit
	}
	return &reader{Client: from, store: from.OpenStore(), opts: opts, room: opts.Limit, got: new(Content), blobs: map[task.ID]bool{}}
}

// roots reads the tasks of a job, or a task, and everything below.
func (r *reader) roots(ctx context.Context, id task.ID) error {
	ns := r.Namespace()
	job, err := store.JobOf(ctx, r.store, ns, id)
	switch {
	case err == nil:
		r.got.Job = id
		ids, err := r.list(ctx, store.Filter{Job: id})
		if err != nil {
			return err
		}
		if err := r.tasks(ctx, ids); err != nil {
			return err
		}
		r.got.Jobs = []task.Job{recount(&job, r.got.Tasks)}
	case errors.Is(err, store.ErrNotFound):
		r.got.Info.Task = id
		if err := r.tasks(ctx, []task.ID{id}); err != nil {
			return err
		}
		if err := r.jobOf(ctx); err != nil {
			return err
		}
	default:
		return err
	}
	r.got.Info.Tasks = len(r.got.Tasks)
	types := map[string]bool{}
	for i := range r.got.Tasks {
		types[r.got.Tasks[i].Task.Type] = true
	}
	r.got.Types, err = r.store.Types(ctx, ns, slices.Sorted(maps.Keys(types))...)
	return err
}

// jobOf reads the job of a task that is copied without the others of its job.
func (r *reader) jobOf(ctx context.Context) error {
	id := r.got.Tasks[0].Task.JobID
	if id.IsZero() {
		return nil
	}
	job, err := store.JobOf(ctx, r.store, r.Namespace(), id)
	if err != nil {
		return err
	}
	copied := 0
	for i := range r.got.Tasks {
		if r.got.Tasks[i].Task.JobID == id {
			copied++
		}
	}
	if n := job.Counters.Total - copied; n > 0 {
		r.got.LeftOut = append(r.got.LeftOut, LeftOut{What: fmt.Sprintf("%d other tasks of job %s (%s)", n, job.Name, id), Why: "only the task and its children were asked for"})
	}
	r.got.Jobs = append(r.got.Jobs, job)
	return nil
}

// list returns the IDs of the tasks that match a filter, oldest first.
func (r *reader) list(ctx context.Context, f store.Filter) (ids []task.ID, err error) {
	f.Limit = store.MaxLimit
	for {
		page, next, err := r.store.List(ctx, r.Namespace(), f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if len(ids) > maxTasks {
			return nil, tooMany()
		}
		if f.After = next; next == "" {
			slices.Reverse(ids)
			return ids, nil
		}
	}
}

func tooMany() error {
	return fmt.Errorf("%w: a capsule takes at most %d tasks: export a single task of it", store.ErrLimit, maxTasks)
}

// tasks reads tasks and their children. A parent is read before its children are listed, so that the capsule has every
// child that the parent's rows name.
func (r *reader) tasks(ctx context.Context, ids []task.ID) error {
	known := map[task.ID]bool{}
	for len(ids) > 0 {
		id := ids[0]
		if ids = ids[1:]; known[id] {
			continue
		}
		if known[id] = true; len(known) > maxTasks {
			return tooMany()
		}
		t, err := r.task(ctx, id)
		if err != nil {
			return err
		}
		r.got.Tasks = append(r.got.Tasks, t)
		children, err := r.list(ctx, store.Filter{Parent: id})
		if err != nil {
			return err
		}
		ids = append(ids, children...)
	}
	return nil
}

// task reads one task. The events are read before the rows: the newest may be missing, and none is
// newer than the rows.
func (r *reader) task(ctx context.Context, id task.ID) (t Task, err error) {
	for !r.opts.NoPayloads {
		var after int64
		if n := len(t.Events); n > 0 {
			after = t.Events[n-1].Seq
		}
		page, err := r.store.Events(ctx, r.Namespace(), id, after, store.MaxEvents)
		if err != nil {
			return t, err
		}
		for i := range page {
			page[i].At = page[i].At.Truncate(time.Microsecond) // the precision of the file
		}
		if t.Events = append(t.Events, page...); len(page) < store.MaxEvents {
			break
		}
	}
	if t.History, err = r.History(ctx, id); err != nil || r.opts.NoPayloads {
		return t, err
	}
	t.Task.Input = r.value(ctx, id, "the input", t.Task.Input)
	t.Task.Output = r.value(ctx, id, "the output", t.Task.Output)
	t.Task.UnblockInput = r.value(ctx, id, "the input of the unblock", t.Task.UnblockInput)
	for i := range t.Steps {
		t.Steps[i].Value = r.value(ctx, id, fmt.Sprintf("the value of the step %q", t.Steps[i].Name), t.Steps[i].Value)
	}
	for i := range t.Signals {
		t.Signals[i].Payload = r.value(ctx, id, fmt.Sprintf("the signal %q", t.Signals[i].Name), t.Signals[i].Payload)
	}
	for i := range t.Checkpoints {
		t.Checkpoints[i].Value = r.value(ctx, id, fmt.Sprintf("the checkpoint %q", t.Checkpoints[i].Name), t.Checkpoints[i].Value)
	}
	for i := range t.Artifacts {
		if a := &t.Artifacts[i]; len(a.LinkValue) > 0 {
			a.LinkValue = r.value(ctx, id, fmt.Sprintf("the link %q", a.Name), a.LinkValue)
		}
	}
	t.Events = slices.DeleteFunc(t.Events, func(e store.EventRow) bool { return r.sealed(id, "an event", e.Body) })
	return t, nil
}

// leftOut replaces a value that was left out.
var leftOut = json.RawMessage(`"[left out]"`)

// value returns a value that may be encrypted or in the bucket, or leftOut.
func (r *reader) value(ctx context.Context, id task.ID, what string, value json.RawMessage) json.RawMessage {
	if r.sealed(id, what, value) {
		return leftOut
	}
	b, large := task.BlobOf(value)
	if !large {
		return value
	}
	if b.Size > r.room {
		r.leave(id, what, b.Size, "the limit of bytes was reached")
		return leftOut
	}
	data, err := r.bytes(ctx, b)
	if err != nil {
		r.leave(id, what, b.Size, err.Error())
		return leftOut
	}
	r.room -= b.Size
	return data
}

// sealed reports whether a value could not be decrypted.
func (r *reader) sealed(id task.ID, what string, value json.RawMessage) bool {
	err := seal.Failure(value)
	if err != nil {
		r.leave(id, what, 0, err.Error())
	}
	return err != nil
}

func (r *reader) leave(id task.ID, what string, size int64, why string) {
	r.got.LeftOut = append(r.got.LeftOut, LeftOut{Task: id, What: what, Bytes: size, Why: why})
}

func (r *reader) bytes(ctx context.Context, b task.Blob) ([]byte, error) {
	in, err := r.OpenArtifact(ctx, weaver.ArtifactRef{Blob: b})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	return data, errors.Join(err, in.Close())
}

// artifacts reads the bytes of artifacts, oldest first, up to the limit. Bytes with a masked text stay out.
func (r *reader) artifacts(ctx context.Context, texts []string) error {
	if r.opts.NoPayloads {
		return nil
	}
	for i := range r.got.Tasks {
		t := &r.got.Tasks[i]
		for j := range t.Artifacts {
			a := &t.Artifacts[j]
			if len(a.LinkValue) > 0 || r.blobs[a.Blob.ID] {
				continue
			}
			r.blobs[a.Blob.ID] = true
			what := fmt.Sprintf("the artifact %q", a.Name)
			switch {
			case seal.IsBlob(a.Blob):
				r.leave(a.TaskID, what, a.Blob.Size, "it is encrypted")
				continue
			case a.Blob.Size > r.room:
				r.leave(a.TaskID, what, a.Blob.Size, "the limit of bytes was reached")
				continue
			}
			data, err := r.bytes(ctx, a.Blob)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				r.leave(a.TaskID, what, a.Blob.Size, err.Error())
			case holds(data, texts):
				r.leave(a.TaskID, what, a.Blob.Size, "it holds a masked value")
			default:
				r.room -= a.Blob.Size
				r.got.Blobs = append(r.got.Blobs, Blob{a.Blob, data})
			}
		}
	}
	return nil
}

// recount returns a job whose counters and state are those of the copied tasks, which may be newer than its row.
func recount(j *task.Job, tasks []Task) task.Job {
	got := *j
	got.Counters = task.JobCounters{}
	var last time.Time
	for i := range tasks {
		t := &tasks[i].Task
		if t.JobID != j.ID {
			continue
		}
		got.Counters = got.Counters.Add(task.Count(t.End(), t.Waiting, t.Join, !t.ReadyAt.IsZero()))
		if t.FinishedAt.After(last) {
			last = t.FinishedAt
		}
	}
	got.State = task.JobStateOf(got.Counters, got.CancelRequested)
	switch {
	case !got.State.Terminal():
		got.FinishedAt = time.Time{}
	case got.FinishedAt.IsZero():
		got.FinishedAt = last
	}
	return got
}
