package schedule

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Work is what a fire enqueues: one task, or a job. Its IDs are numbers; each run gets its own.
type Work struct {
	Job   *task.NewJob `json:"job,omitempty"`
	Tasks []task.New   `json:"tasks"`
}

// MaxTasks is the maximum number of tasks of a scheduled job.
const MaxTasks = 1000

// MaxWork is the maximum size of the work of a schedule, in bytes.
const MaxWork = 1 << 20

// A scheduled task has its schedule as a label, and its scheduled time as metadata.
const (
	Label    = "weaver.schedule"
	Metadata = "weaver.scheduled_at"
)

// NewWork returns the work that repeats a submission. Equal submissions have equal work, whatever
// their IDs are.
func NewWork(sub *store.Submission) (Work, error) {
	w := Work{Tasks: slices.Clone(sub.Tasks)}
	if sub.Job == nil && len(sub.Tasks) != 1 {
		return w, fmt.Errorf("a schedule enqueues one task or a job, not %d tasks", len(sub.Tasks))
	}
	if len(sub.Tasks) > MaxTasks {
		return w, fmt.Errorf("the job has %d tasks; a scheduled job may have %d: start the rest by a task of it (StartJob)", len(sub.Tasks), MaxTasks)
	}
	if sub.Job != nil {
		job := *sub.Job
		rekey(w.Tasks, job.ID, number(0))
		job.ID = number(0)
		w.Job = &job
	}
	ids := make(map[task.ID]task.ID, len(w.Tasks))
	for i := range w.Tasks {
		ids[w.Tasks[i].ID] = number(i + 1)
	}
	for i := range w.Tasks {
		n := &w.Tasks[i]
		if _, large := task.BlobOf(n.Input); large {
			return w, fmt.Errorf("the input of %s is in the bucket; a schedule keeps its input in the store: pass a reference to the data", n.Type)
		}
		if !n.At.IsZero() {
			return w, fmt.Errorf("%s has the option At: the schedule says when it runs", n.Type)
		}
		n.ID, n.Needs = ids[n.ID], edges(n.Needs, ids)
	}
	if size := len(encode(w)); size > MaxWork {
		return w, fmt.Errorf("its inputs and options are %d bytes; a schedule may have %d: pass a reference to the data", size, MaxWork)
	}
	return w, nil
}

// rekey gives tasks that share the key of a job's limit (task.ParallelKey) that of another job.
func rekey(tasks []task.New, from, to task.ID) {
	for i := range tasks {
		if n := &tasks[i]; n.ConcurrencyKey == task.ParallelKey(from) {
			n.ConcurrencyKey = task.ParallelKey(to)
		}
	}
}

// number returns the ID that stands for a task of work.
func number(i int) (id task.ID) {
	binary.BigEndian.PutUint64(id[8:], uint64(i))
	return id
}

func edges(of []task.Edge, ids map[task.ID]task.ID) []task.Edge {
	of = slices.Clone(of)
	for i := range of {
		of[i].Needs = ids[of[i].Needs]
	}
	return of
}

// Run returns the submission of a run of a schedule, with new IDs.
func (w *Work) Run(name string, at time.Time, ids *task.IDs) *store.Submission {
	sub := &store.Submission{Tasks: slices.Clone(w.Tasks)}
	key := Key(name, at)
	if w.Job != nil {
		job := *w.Job
		id := ids.New()
		rekey(sub.Tasks, job.ID, id)
		job.ID, job.IdempotencyKey, job.Meta = id, key, with(job.Meta, Label, name, Metadata, stamp(at))
		sub.Job = &job
	}
	fresh := make(map[task.ID]task.ID, len(sub.Tasks))
	for i := range sub.Tasks {
		fresh[sub.Tasks[i].ID] = ids.New()
	}
	for i := range sub.Tasks {
		n := &sub.Tasks[i]
		n.ID, n.Needs = fresh[n.ID], edges(n.Needs, fresh)
		n.Labels, n.Metadata = with(n.Labels, Label, name), with(n.Metadata, Metadata, stamp(at))
		n.Input = slices.Clone(n.Input)
		if w.Job == nil {
			n.IdempotencyKey = key
		}
	}
	return sub
}

// Key returns the idempotency key of the run of a schedule at a scheduled time.
func Key(name string, at time.Time) string { return "schedule/" + name + "/" + stamp(at) }

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// with returns a copy of a map with further pairs.
func with(m map[string]string, pairs ...string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = make(map[string]string, len(pairs)/2)
	}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// Equal reports whether two works enqueue the same.
func (w *Work) Equal(other *Work) bool { return string(encode(w)) == string(encode(other)) }

// Document returns the work as stored.
func (w *Work) Document() json.RawMessage { return encode(w) }
