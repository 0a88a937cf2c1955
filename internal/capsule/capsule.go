// Package capsule copies a task, or the tasks of a job, into a file that can be attached to a report: a capsule. It is
// an ordinary database of store/sqlite with a mark that makes the store refuse every write, so that nothing in it runs.
//
// Collect reads the tasks of any store through its port and masks them. Insert writes them into an empty database.
package capsule

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Namespace is the namespace of the tasks in a capsule.
const Namespace = "default"

// DefaultLimit is the default limit of the bytes of artifacts and large values in a capsule.
const DefaultLimit = 64 << 20

// maxTasks is the maximum number of tasks in a capsule.
const maxTasks = 10_000

// format is the version of Info and of the tables that only a capsule has.
const format = 1

var (
	// ErrNotCapsule: the file is a store, and not a capsule.
	ErrNotCapsule = errors.New("not a capsule")
	// ErrNewer: the capsule was made by a newer version.
	ErrNewer = errors.New("the capsule was made by a newer version of Weaver")
)

// Info describes a capsule. It is the mark in the file.
type Info struct {
	Format     int       `json:"format"`
	Weaver     string    `json:"weaver_version"` // of the program that made it
	ExportedAt time.Time `json:"exported_at"`
	Namespace  string    `json:"namespace"` // of the source; the tasks of the capsule are in "default"
	Task       task.ID   `json:"task_id,omitzero"`
	Job        task.ID   `json:"job_id,omitzero"` // instead of a task
	Payloads   bool      `json:"payloads"`        // it has inputs, outputs and the like
	Tasks      int       `json:"tasks"`
	LeftOut    []LeftOut `json:"left_out"`
}

// LeftOut is something that the source has and the capsule does not have.
type LeftOut struct {
	Task  task.ID `json:"task_id,omitzero"`
	What  string  `json:"what"`            // "artifact report.csv", "value of step fetch"
	Bytes int64   `json:"bytes,omitempty"` // 0: unknown
	Why   string  `json:"why"`
}

// String returns the reason as a sentence.
func (l *LeftOut) String() string {
	s := l.What
	if !l.Task.IsZero() {
		s += " of task " + l.Task.String()
	}
	if l.Bytes > 0 {
		s += fmt.Sprintf(" (%d bytes)", l.Bytes)
	}
	return s + ": " + l.Why
}

// ParseInfo reads the mark of a file (sqlite.DB.Capsule). Errors: ErrNotCapsule, ErrNewer.
func ParseInfo(mark []byte) (info Info, err error) {
	if len(mark) == 0 {
		return info, ErrNotCapsule
	}
	if err := json.Unmarshal(mark, &info); err != nil {
		return info, fmt.Errorf("%w: its description is damaged: %w", ErrNotCapsule, err)
	}
	if info.Format > format {
		return info, fmt.Errorf("%w: it has format %d, and this program reads up to %d", ErrNewer, info.Format, format)
	}
	return info, nil
}

// Content is everything in a capsule.
type Content struct {
	Info
	Jobs  []task.Job
	Tasks []Task // parents before their children
	Types []store.AnnouncedType
	Blobs []Blob // of artifacts
}

// Task is a task with all its records.
type Task struct {
	store.History
	Events []store.EventRow
}

// Blob is the content of an artifact.
type Blob struct {
	task.Blob
	Data []byte
}

// Task returns the task with an ID, or nil.
func (c *Content) Task(id task.ID) *Task {
	for i := range c.Tasks {
		if c.Tasks[i].Task.ID == id {
			return &c.Tasks[i]
		}
	}
	return nil
}
