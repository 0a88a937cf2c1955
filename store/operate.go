package store

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Command is an operator's verb, one of the types below, or an Upload.
type Command interface{ command() }

// Audit identifies the actor and the reason. By is "" if unknown.
type Audit struct {
	By     string
	Reason string
}

// Seen is the version of the task that the operator decided on (R16).
type Seen struct {
	// Epoch is the lease epoch seen; 0 matches any. If the task's epoch differs, the command changes
	// nothing and returns ErrChanged.
	Epoch int64

	// UpdatedAt is the task's update time seen; zero matches any. If the task has changed state, input
	// or due time since, the command changes nothing and returns ErrChanged. Steps, progress, logs,
	// unawaited signals, a cancel request, a pause and a resume do not count as changes.
	UpdatedAt time.Time
}

type (
	// CancelTask cancels a task. A task that is not running ends cancelled at once, unless it must
	// clean up (task.New.CleanupWhenCancelled) and has run before: then its undo phase begins (Asked
	// in the result), and it ends when an attempt reports it undone. A task in its undo phase
	// continues it. A running task is asked to end (Asked); its worker learns this with the next
	// heartbeat. A terminal task is left unchanged: ErrState.
	//
	// Force revokes the lease of a running task. Any task then ends cancelled at once or begins its
	// undo phase, but not before the revoked lease ends. In the phase, the first Force
	// (task.UndoPhase.Forced) likewise revokes a running attempt. The second one abandons the undo, as
	// Abandon does at any time: the task fails at once with task.KindUndoFailed, and remaining steps
	// are not undone. With Spare it is ErrState instead.
	//
	// Abandon also accepts that an undo was given up, so that the task may be deleted. A task with
	// nothing to abandon is ErrState.
	CancelTask struct {
		Audit
		Seen
		Task    task.ID
		Force   bool
		Abandon bool
		Spare   bool // with Force: refuse a task in its undo phase
	}
	// RetryTask revives a failed or cancelled task. attempt_count, crash_count and repair_count are
	// reset to 0, the epoch rises, attempt_no and the completed steps stay. Its job revives, and so do
	// the dependents that ended dependency_failed or not_needed because of it. An unstarted dependent
	// that runs on the end or the failure of its needs waits for the task's next end; a started one is
	// unchanged. Children of its calls that did not succeed are retried recursively, and the calls
	// wait for them again: a completed call returns to the state waiting. ErrState: the task is in any
	// other state, has a need that forbids it to run, or a total of its job's budget is used up.
	// AddAttempts and AddCost first raise the task's own limits; AddCost without a cost limit is
	// ErrState.
	//
	// It is also ErrState if a cleanup of the task, or of a task that the retry may revive with it,
	// completed: the undone steps would count as done. KeepSteps retries nevertheless. Completed
	// cleanups of revived tasks become past steps (task.Step.Past), which step_count does not count,
	// and run again in turn.
	//
	// A task that is being undone, or whose undo was given up, is ErrState. So is a task with a child
	// of a call whose undo was given up.
	//
	// Cleanup retries only the undo, with the time limit of a new undo. A task whose undo was given up
	// becomes pending for it, and its job continues. Dependents that have not started wait for it;
	// finished ones are unchanged. A task that is blocked for its undo or waits for its next try
	// becomes due now, or when its revoked lease ends. Any other task, or a running undo, is ErrState.
	// Steps named in Skip are not undone, which needs a Reason. The other options are not allowed with
	// Cleanup.
	RetryTask struct {
		Audit
		Seen
		Task        task.ID
		AddAttempts int   // added to MaxAttempts
		AddCost     int64 // added to MaxCost, micro-units
		KeepSteps   bool  // retry although a cleanup completed
		Cleanup     bool  // retry the undo
		Skip        []string
	}
	// UnblockTask resumes a blocked task. Input (may be nil) is kept for the handler as UnblockInput,
	// and the question that blocked the task (its Error.Ask) as UnblockFor. With Ask set, a different
	// question is ErrChanged. Any other state is ErrState.
	UnblockTask struct {
		Audit
		Seen
		Task  task.ID
		Input json.RawMessage
		Ask   string
	}
	// RescheduleTask makes a task due at At, or now if At is zero or has passed. The task must wait
	// for a time (delay, retry, sleep), or be due and not started. The sleep that it waits for ends at
	// that time, too; other recorded sleeps are unchanged. A due task rescheduled to now keeps its
	// place. Any other task, for example with open needs, is ErrState.
	RescheduleTask struct {
		Audit
		Seen
		Task task.ID
		At   time.Time
	}
	// SendSignal sends a message to a task: the oldest wait for its name takes it, or else the next
	// one. Repeating the key has no effect (Existing in the result, also after the task has ended);
	// with another payload it is ErrConflict. ErrState: the task has ended. ErrLimit: it already keeps
	// task.MaxSignals signals that no wait took.
	SendSignal struct {
		Audit
		Seen
		Task    task.ID
		Name    string
		Key     string          // not empty
		Payload json.RawMessage // valid JSON
	}
	// DeleteTask removes a terminal task outside any job, with all its records, and frees its
	// idempotency key. ErrState: the task is not terminal or in a job; its undo was given up (use
	// CancelTask.Abandon first); or another task that has not succeeded waits or waited for it, as its
	// parent or because its handler asked for it. A retry of that task reads it again.
	DeleteTask struct {
		Audit
		Seen
		Task task.ID
	}
	// DeleteJob removes a finished job, with all its tasks and their records. ErrState: it has not
	// ended, is still being changed, an outside task needs one of its tasks, or the undo of a task was
	// given up (use CancelTask.Abandon first).
	DeleteJob struct {
		Audit
		Job task.ID
	}
	// CancelJob asks every unfinished task of a job to cancel.
	CancelJob struct {
		Audit
		Job task.ID
	}
	// RaiseBudget adds to totals of a job's budget, and revives the tasks that ended because they were
	// used up. ErrState: the budget has no such limit, the increase is too small for the job to
	// continue, some of its tasks are still ending, or it has succeeded. A task that RetryTask would
	// refuse because a cleanup completed stays ended, unless KeepSteps is set.
	RaiseBudget struct {
		Audit
		Job         task.ID
		AddAttempts int   // added to MaxTotalAttempts
		AddCost     int64 // added to MaxCost, micro-units
		KeepSteps   bool  // see RetryTask
	}
	// ReplaceInput replaces the input of a task that is blocked, which then resumes as by UnblockTask,
	// or that waits for a repair. ErrState: any other state. ErrChanged: its input or schema version
	// differs from the version seen. If the task already has this input, the command has no effect
	// (Existing in the result); for an operator's command on a blocked task it is ErrState.
	//
	// An operator's command (Repair is zero) restarts the repairs of the task and cancels the current
	// one. A repair's command leaves the task waiting for the end of the repair; it is ErrState once
	// the task no longer waits.
	ReplaceInput struct {
		Audit
		Seen
		Task          task.ID
		Input         json.RawMessage // valid JSON, or a blob reference
		SchemaVersion int             // of Input, ≥ 1
		OldHash       string          // task.PayloadHash of the input seen; "" matches any
		OldSchema     int             // its schema version; 0 matches any
		Repair        task.ID         // the repair that issues the command
	}
	// PauseQueue stops claims of a queue's tasks until ResumeQueue. Running tasks continue. Both are
	// idempotent.
	PauseQueue struct {
		Audit
		Queue string
	}
	// ResumeQueue ends a pause.
	ResumeQueue struct {
		Audit
		Queue string
	}
	// RerunTask stores a new task that repeats another one, in any state, and links to it
	// (task.Task.RerunOf). New has its ID, its type, and the current options; it is stored as by
	// Enqueue. It copies the completed steps of the other task with an index below StepsBelow, except
	// cleanups. ErrState: the task has needs; a step to be copied called other tasks; there are more
	// than task.MaxRerunSteps steps; or a cleanup of it completed and KeepSteps is not set. Repeating
	// the command with the same New.ID has no effect.
	RerunTask struct {
		Audit
		Seen
		Task       task.ID
		New        task.New // outside jobs, without needs
		StepsBelow int
		KeepSteps  bool // copy steps although a cleanup completed
	}
	// PauseType stops claims of a type's tasks until ResumeType, as PauseQueue does for a queue.
	PauseType struct {
		Audit
		Type string
	}
	// ResumeType ends a pause.
	ResumeType struct {
		Audit
		Type string
	}
	// PauseTask stops claims of one task until ResumeTask: it has no dispatch row meanwhile, even if
	// it becomes claimable. A running task is paused when its attempt has ended. A cancel or deadline
	// that makes the task clean up ends the pause. A terminal task is ErrState. Both are idempotent.
	PauseTask struct {
		Audit
		Seen
		Task task.ID
	}
	// ResumeTask ends a pause. The task keeps its original due time.
	ResumeTask struct {
		Audit
		Seen
		Task task.ID
	}
	// ForgetTask erases the data of a finished task: input, output, metadata, progress, the values of
	// its steps and signals, checkpoints, events and log lines, its references to blobs (including
	// artifacts), and the texts of its errors and decisions, also in the rows of tasks that waited for
	// it. It keeps IDs, names, keys, labels, states, kinds of errors, times, attempts and the audit.
	// ErrState: it has not ended, its children are still being stored, or its undo was given up (use
	// CancelTask.Abandon first). A forgotten task is neither changed nor audited again (Existing). It
	// cannot be retried or rerun.
	ForgetTask struct {
		Audit
		Task task.ID
	}
	// ExpireInput replaces the input of a finished task by one without its expired fields; ErrChanged
	// if the input differs from the one seen. A nil Input replaces nothing. Next is the time from
	// storing the input to the next expiry; 0: no more fields expire. ErrState: the task has not
	// ended.
	ExpireInput struct {
		Audit
		Task    task.ID
		OldHash string          // task.PayloadHash of the input seen
		Input   json.RawMessage // valid JSON, or a blob reference
		Next    time.Duration
	}
	// AcceptBucket binds the namespace's blobs to a bucket. With Check it changes nothing, and returns
	// ErrOtherBucket if the bucket differs.
	AcceptBucket struct {
		Audit
		Bucket Bucket
		Check  bool
	}
	// AnnounceTypes describes task types to programs without their Go types (Data.Types). It replaces
	// an earlier announcement of a type, unless the schema version is lower, as from an old worker
	// during an upgrade. A code version of 0 keeps the known one. An equal announcement changes
	// nothing, not even AnnouncedAt and AnnouncedBy (Existing: all were equal). It is not audited.
	// ErrLimit: a schema or description is too large.
	AnnounceTypes struct {
		By    string // the worker or other source of the announcement
		Types []AnnouncedType
	}
	// KeepFeed starts the feed (Observe.Feed) with a retention of at least MinFeedKeep, or changes the
	// retention. 0 ends the feed; Collect then removes its rows. Events between an end and a new start
	// are lost. It is not audited. It needs CanKeepFeed.
	KeepFeed struct {
		Keep time.Duration
	}
	// Restored reports that the store was restored from a backup: a new generation invalidates every
	// earlier lease (R17). Running tasks continue when their leases expire, or at once with EndLeases,
	// for use when no old process can still run them. This does not count as a crash.
	Restored struct {
		Audit
		EndLeases bool
	}
)

func (CancelTask) command()     {}
func (RetryTask) command()      {}
func (UnblockTask) command()    {}
func (RescheduleTask) command() {}
func (SendSignal) command()     {}
func (DeleteTask) command()     {}
func (DeleteJob) command()      {}
func (CancelJob) command()      {}
func (RaiseBudget) command()    {}
func (ReplaceInput) command()   {}
func (PauseQueue) command()     {}
func (ResumeQueue) command()    {}
func (RerunTask) command()      {}
func (PauseType) command()      {}
func (ResumeType) command()     {}
func (PauseTask) command()      {}
func (ResumeTask) command()     {}
func (ForgetTask) command()     {}
func (ExpireInput) command()    {}
func (AcceptBucket) command()   {}
func (Restored) command()       {}
func (AnnounceTypes) command()  {}
func (KeepFeed) command()       {}
func (Upload) command()         {}
func (WriteSchedule) command()  {}

// CommandResult answers one command.
type CommandResult struct {
	Err   error
	State task.State // of the task afterwards; "" for other commands
	Asked bool       // CancelTask: not ended yet, but asked to end or being undone

	Existing bool // SendSignal: sent before; RerunTask: another task has the idempotency key; ReplaceInput: unchanged input; ForgetTask: forgotten before; AnnounceTypes: all known

	ID task.ID // RerunTask: the new task, or the existing one

	Uploaded Uploaded // Upload

	Runs []Enqueued // WriteSchedule: the first task of each Run of its Fires; zero without one

	// DeleteJob: number of its tasks.
	Deleted int

	// Restored: number of leases ended (EndLeases).
	Leases int

	// CancelJob: number of tasks ended at once, asked to end, and ended before.
	Cancelled, AskedTasks, AlreadyDone int
}
