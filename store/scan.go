package store

import "github.com/goweaver/weaver/task"

// Part is a part of what a namespace holds, with all that is to be compared with
// it. Its rows are as in the snapshot of the whole; each part has all chores.
type Part struct {
	*Snapshot
	Of     PartOf
	Sums   map[task.ID]task.JobCounters // of jobs: what their tasks add up to, however many there are
	Needed []task.Task                  // of tasks: ID, State, the kind of Error and AllowFailure of the tasks outside that their edges name
}

// PartOf says what a part is one of.
type PartOf string

// The parts that there are.
const (
	// PartOfTasks has the tasks between two IDs, by ID, and every row that names
	// a task between them: edges, attempts, decisions, steps, signals, checkpoints,
	// dispatch rows, waiters, pauses and artifacts; and the blobs that these tasks
	// refer to.
	PartOfTasks PartOf = "tasks"
	// PartOfJobs has jobs with the sums of their tasks, and of tasks whose job does
	// not exist ID, JobID and State.
	PartOfJobs PartOf = "jobs"
	// PartOfKeys has concurrency keys, and of each key all waiters, the dispatch
	// rows that are due, and the tasks that run with it, or may hold it while they are
	// undone: ID, State, ConcurrencyKey and Undo; and the paused queues and types.
	PartOfKeys PartOf = "keys"
)

// CheckPart is Check for one part of a namespace. That idempotency keys are
// unique it compares within the part only, and what jobs used of their budgets not
// at all.
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
