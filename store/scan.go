package store

import "github.com/goweaver/weaver/task"

// Part is a part of a namespace, with all rows needed to check it. Its rows are as in a Snapshot; each
// part has all chores.
type Part struct {
	*Snapshot
	Of     PartOf
	Sums   map[task.ID]task.JobCounters // sums over all tasks of each job
	Needed []task.Task                  // tasks outside the part that its edges name: ID, State, error kind and AllowFailure
}

// PartOf is the kind of a part.
type PartOf string

// The kinds of parts.
const (
	// PartOfTasks has the tasks between two IDs, by ID, and every row that names one of them: edges,
	// attempts, decisions, steps, signals, checkpoints, dispatch rows, waiters, pauses, artifacts, and
	// the blobs that these tasks refer to.
	PartOfTasks PartOf = "tasks"
	// PartOfJobs has jobs with the sums of their tasks, and ID, JobID and State of tasks whose job
	// does not exist.
	PartOfJobs PartOf = "jobs"
	// PartOfKeys has concurrency keys, each with all its waiters, its due dispatch rows, and the tasks
	// that run with it or may hold it while they are undone: ID, State, ConcurrencyKey and Undo. It
	// also has the paused queues and types.
	PartOfKeys PartOf = "keys"
)

// CheckPart is Check for one part of a namespace. It checks the uniqueness of idempotency keys within
// the part only, and does not check the used budgets of jobs.
func CheckPart(p *Part) []Violation {
	c := newChecker(p.Snapshot)
	c.partial = true
	for i := range p.Needed {
		c.byID[p.Needed[i].ID] = &p.Needed[i]
	}
	switch p.Of {
	case PartOfTasks:
		c.tasks()
		c.blobs()
	case PartOfJobs:
		c.sums = p.Sums
		c.jobs()
	case PartOfKeys:
		c.keys()
	}
	return c.found
}
