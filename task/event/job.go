package event

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// JobHeader is what every event of a job carries. No task is its own, so that
// TaskID, TaskType, Node and AttemptNo of Head are empty, and its JSON does not
// have them.
type JobHeader struct {
	At        time.Time `json:"timestamp"`
	Namespace string    `json:"namespace,omitempty"`
	JobID     task.ID   `json:"job_id"`
	Name      string    `json:"name"`
}

// Head implements Event.
func (h JobHeader) Head() Header {
	return Header{At: h.At, Namespace: h.Namespace, JobID: h.JobID}
}

func (JobHeader) sealed() {}

// The events of a job's life. A process that watches a job derives them, but for
// JobSettled.
type (
	// JobSettled says that a job has ended, or cannot go on without a person. The
	// engine emits it after the end of the attempt that led to it, once; two processes
	// whose attempts end together may both do.
	JobSettled struct {
		JobHeader
		State    task.JobState    `json:"state"`
		Counters task.JobCounters `json:"counters"`
		Duration time.Duration    `json:"duration_ns"` // since it was submitted
	}
	// JobStarted says that `weaver run` begins to work on a job. It and the next two are lines
	// of that command alone: engines and feeds tell of jobs by JobSettled.
	JobStarted struct {
		JobHeader
		Tasks   int    `json:"tasks"`
		Resumed bool   `json:"resumed"`         // some of its tasks were attempted, or ended, before
		Store   string `json:"store,omitempty"` // where it is kept: a path, or a URL without password

		// Params are the values that the job's pipeline was run with, a JSON object
		// by name; nil: it has none.
		Params json.RawMessage `json:"params,omitempty"`
	}
	// JobBlocked says that a job cannot go on without a person.
	JobBlocked struct {
		JobHeader
		Blocked []string `json:"blocked"` // names of the tasks that wait for the person
	}
	// JobFinished says how the tasks of a job stand when the command that
	// worked on it is done with it. State says whether they have ended: a run
	// that was interrupted leaves a running job.
	JobFinished struct {
		JobHeader
		State    task.JobState `json:"state"`
		Duration time.Duration `json:"duration_ns"` // since it was submitted
		Tasks    []JobTask     `json:"tasks"`       // in the order of their creation

		// CriticalPath names the tasks that the end of the job waited for, one
		// after the other, and CriticalPathDuration is how long their last
		// attempts took together.
		CriticalPath         []string      `json:"critical_path"`
		CriticalPathDuration time.Duration `json:"critical_path_duration_ns"`
	}
)

// JobTask is a task of JobFinished.
type JobTask struct {
	Name     string        `json:"name"`
	ID       task.ID       `json:"id"`
	State    task.State    `json:"state"`
	Allowed  bool          `json:"allowed,omitempty"` // it failed, which the job allows
	Attempts int           `json:"attempts"`          // all of them, but for those lost, given back unfinished, or suspended
	Lost     int           `json:"lost,omitempty"`    // attempts whose worker died or fell silent
	Duration time.Duration `json:"duration_ns"`       // from the first attempt's beginning to the last one's end
	Error    *task.Error   `json:"error,omitempty"`
}

// Type implements Event.
func (JobSettled) Type() string { return "job.settled" }

// Type implements Event.
func (JobStarted) Type() string { return "job.started" }

// Type implements Event.
func (JobBlocked) Type() string { return "job.blocked" }

// Type implements Event.
func (JobFinished) Type() string { return "job.finished" }
