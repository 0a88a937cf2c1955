package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// CollectLooks is the maximum number of tasks and jobs that one bite of a collector reads.
	CollectLooks = 1000
	// CollectDependents is the maximum number of dependents checked before a task's values are
	// dropped. A task with more dependents keeps its values.
	CollectDependents = 100
)

// Retained is a finished job, or a task outside jobs, as retention rules see it.
type Retained struct {
	State task.State // of a job: the task state of the same name
	Type  string     // "" for a job
	At    time.Time  // its end

	Stands bool // its undo was given up ([task.UndoPhase.Stands])
}

// Goes reports whether a finished task or job is due for deletion.
func Goes(retain []store.Retention, of *Retained, now time.Time) bool {
	return of.State.Terminal() && !of.Stands && over(retain, false, of, now)
}

// DropsValues reports whether the values of a succeeded task are due for deletion. A failed or
// cancelled task may be retried and needs its values.
func DropsValues(retain []store.Retention, of *Retained, now time.Time) bool {
	return of.State == task.Succeeded && over(retain, true, of, now)
}

// over applies the first matching rule of a kind.
func over(retain []store.Retention, values bool, of *Retained, now time.Time) bool {
	for i := range retain {
		r := &retain[i]
		if r.Values != values || len(r.States) > 0 && !slices.Contains(r.States, of.State) ||
			len(r.Types) > 0 && (of.Type == "" || !slices.Contains(r.Types, of.Type)) {
			continue
		}
		return r.Age >= 0 && !of.At.After(now.Add(-r.Age))
	}
	return false
}

// Young returns the creation instant from which on nothing is old enough for any rule. ok is
// false if no rule deletes anything.
func Young(retain []store.Retention, now time.Time) (from time.Time, ok bool) {
	for i := range retain {
		if age := retain[i].Age; age >= 0 && (!ok || now.Add(-age).After(from)) {
			from, ok = now.Add(-age), true
		}
	}
	return from, ok
}

// FirstID returns the smallest ID of the first millisecond that begins at or after an instant.
func FirstID(at time.Time) (id task.ID) {
	ms := uint64(max(0, at.Add(time.Millisecond-1).UnixMilli()))
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id
}

// MayStand reports whether the undo of a task of a job may have been given up.
func MayStand(j *task.Job) bool { return j.Counters.Failed+j.Counters.Allowed > 0 }

// JobMayRead reports whether a task of a finished job may run again and read outputs of other
// tasks of the job.
func JobMayRead(j *task.Job) bool {
	return j.State != task.JobSucceeded || j.Counters.Failed+j.Counters.Allowed > 0
}

// CheckDeleteJob refuses to delete an unfinished job, a job whose tasks operators' commands
// are still changing (busy), and a job with a task that others need (needed). It also refuses
// the base of a later job (base), and a job with a task whose undo was given up (stands, else
// zero).
func CheckDeleteJob(j *task.Job, busy, needed, base bool, stands task.ID) error {
	switch {
	case !j.State.Terminal():
		return refuseJob(j, "only jobs that ended can be deleted: cancel it first")
	case busy:
		return refuseJob(j, "but its tasks are still being changed, try again in a moment")
	case needed:
		return refuseJob(j, "but a task outside of it needs one of its tasks, delete that one first")
	case base:
		return refuseJob(j, "but a later job is based on it and uses its results, delete that one first")
	case !stands.IsZero():
		return refuseJob(j, fmt.Sprintf("but the undo of its task %v was given up: try that again with %s, or accept it with %s", stands, tryUndo(stands), abandonUndo(stands)))
	}
	return nil
}

func refuseJob(j *task.Job, why string) error {
	return &refusal{fmt.Sprintf("job %v is %s, %s", j.ID, j.State, why)}
}

// CheckValues refuses to repeat a task whose values a retention rule dropped.
func CheckValues(t *task.Task) error {
	if t.Forgotten {
		return CheckForgotten(t.ID, t.State, true)
	}
	if !t.ValuesDropped {
		return nil
	}
	return refuse(t.ID, t.State, "but its input and the values of its steps were dropped by a rule of retention")
}

// CollectLimit returns the limit of a bite, in rows.
func CollectLimit(asked int) int {
	if asked <= 0 || asked > MaxMoves {
		return MaxMoves
	}
	return asked
}

// CollectStage is one of the consecutive scans of a collector.
type CollectStage string

// The stages of a collector, in order.
const (
	CollectJobs  CollectStage = "jobs"
	CollectTasks CollectStage = "tasks"
	CollectSpace CollectStage = "space" // free pages of the store's file
	CollectEnd   CollectStage = ""
)

var collectStages = []CollectStage{CollectJobs, CollectTasks, CollectSpace, CollectEnd}

// CollectCursor is the position of a collector.
type CollectCursor struct {
	Stage CollectStage
	ID    task.ID // the scan continues after this ID
}

// NextStage returns the beginning of the next stage.
func (c CollectCursor) NextStage() CollectCursor {
	return CollectCursor{Stage: collectStages[slices.Index(collectStages, c.Stage)+1]}
}

// String returns the cursor in the callers' form; "" is the end.
func (c CollectCursor) String() string {
	if c.Stage == CollectEnd {
		return ""
	}
	return string(c.Stage) + ":" + c.ID.String()
}

// ParseCollectCursor parses a cursor; "" is the beginning. Error: [store.ErrBadCursor].
func ParseCollectCursor(s string) (CollectCursor, error) {
	if s == "" {
		return CollectCursor{Stage: collectStages[0]}, nil
	}
	stage, id, ok := strings.Cut(s, ":")
	c := CollectCursor{Stage: CollectStage(stage)}
	if !ok || stage == "" || !slices.Contains(collectStages, c.Stage) || c.ID.UnmarshalText([]byte(id)) != nil {
		return c, fmt.Errorf("%w: %q did not come from a collect", store.ErrBadCursor, s)
	}
	return c, nil
}

// CollectChanges reports whether a bite changed anything that [store.Notice].Changed covers.
func CollectChanges(req *store.CollectRequest, res *store.CollectResult) bool {
	return !req.DryRun && res.Tasks+res.Jobs+res.Dropped > 0
}
