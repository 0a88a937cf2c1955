package event

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// JobHeader holds the fields that all events of a job share. A job event belongs to no task: TaskID, TaskType, Node
// and AttemptNo of Head are empty, and its JSON omits them.
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

// The events of a job. A process that watches a job derives all but JobSettled.
type (
	// JobSettled reports that a job has ended or cannot progress without a person. The engine emits it once, after
	// the end of the attempt that caused it. Two processes whose attempts end together may both emit it.
	JobSettled struct {
		JobHeader
		State    task.JobState    `json:"state"`
		Counters task.JobCounters `json:"counters"`
		Duration time.Duration    `json:"duration_ns"` // since the submission
	}
	// JobStarted reports that `weaver run` begins to work on a job. Only that command emits JobStarted, JobBlocked
	// and JobFinished; engines and feeds report jobs by JobSettled.
	JobStarted struct {
		JobHeader
		Tasks   int    `json:"tasks"`
		Resumed bool   `json:"resumed"`         // some of its tasks were attempted or ended before
		Store   string `json:"store,omitempty"` // a path, or a URL without password

		// Params are the parameters of the job's pipeline, a JSON object by name; nil without parameters.
		Params json.RawMessage `json:"params,omitempty"`
	}
	// JobBlocked reports that a job cannot progress without a person.
	JobBlocked struct {
		JobHeader
		Blocked []string `json:"blocked"` // names of the tasks that wait for a person
	}
	// JobFinished reports the state of a job's tasks when the command stops working on it. State tells whether they
	// have ended: an interrupted run leaves a running job.
	JobFinished struct {
		JobHeader
		State    task.JobState `json:"state"`
		Duration time.Duration `json:"duration_ns"` // since the submission
		Tasks    []JobTask     `json:"tasks"`       // in order of creation

		// CriticalPath lists the chain of tasks that determined the end of the job, in order. CriticalPathDuration is
		// the sum of the durations of their last attempts.
		CriticalPath         []string      `json:"critical_path"`
		CriticalPathDuration time.Duration `json:"critical_path_duration_ns"`
	}
)

// JobTask is a task of JobFinished.
type JobTask struct {
	Name     string        `json:"name"`
	ID       task.ID       `json:"id"`
	State    task.State    `json:"state"`
	Allowed  bool          `json:"allowed,omitempty"` // it failed, and the job allows it
	Attempts int           `json:"attempts"`          // excluding lost, released and suspended attempts
	Lost     int           `json:"lost,omitempty"`    // attempts whose worker died or went silent
	Duration time.Duration `json:"duration_ns"`       // from the start of the first attempt to the end of the last
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
