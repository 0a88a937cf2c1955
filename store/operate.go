package store

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// Command is an operator's verb, one of the types below, or an Upload.
type Command interface{ command() }

// Audit says who acts and why. By is "" when it was not given.
type Audit struct {
	By     string
	Reason string
}

// Seen is the version of the task that the operator decided on (R16).
type Seen struct {
	// Epoch is the lease epoch that was seen; 0: whatever it is now. A command
	// whose task has another epoch by now changes nothing: ErrChanged.
	Epoch int64

	// UpdatedAt is the task's when it was seen; zero: whatever it is now. A command whose
	// task has moved since, or got another input or due time, changes nothing:
	// ErrChanged. Steps, progress, logs, signals that it did not wait for, a request that
	// it end, a pause and a resume are no such change.
	UpdatedAt time.Time
}

type (
	// CancelTask cancels a task. One that does not run ends cancelled at once,
	// unless it is to clean up (task.New.CleanupWhenCancelled) and has run before:
	// its undo phase begins (Asked in the result), and it ends when an attempt reports
	// that it is undone. One that is in its phase goes on. A running one is asked
	// to end (Asked), which its worker learns with the next heartbeat. A terminal task
	// is left alone: ErrState.
	//
	// With Force the lease of a running task is revoked, and any task ends cancelled at
	// once, or begins its undo phase: with the end of the revoked lease at the earliest.
	// In the phase the first Force (task.UndoPhase.Forced) revokes a running attempt
	// likewise. The second one abandons the undo, as Abandon does at any time: the task
	// fails at once with task.KindUndoFailed, and what was not undone stays. With Spare
	// it is ErrState instead.
	//
	// Abandon also accepts that an undo was given up: the task may be deleted then. A
	// task with nothing to abandon: ErrState.
	CancelTask struct {
		Audit
		Seen
		Task    task.ID
		Force   bool
		Abandon bool
		Spare   bool // with Force: no task in its undo phase
	}
	// RetryTask revives a failed or cancelled task: attempt_count, crash_count
	// and repair_count go to 0, the epoch rises, attempt_no and the completed
	// steps stay, its job and the dependents that ended dependency_failed or
	// not_needed because of it revive with it. A dependent that has not started
	// yet, because it waits for the end or the failure of its needs, waits for
	// the task's next end; one that has started stays as it is. Children of its calls
	// that did not succeed are retried with it, and theirs, and the calls wait for
	// them again: a completed one is a step in the state waiting then. ErrState in any
	// other state, when the task has a need for which it could not run, or when a
	// total of its job's budget is used up. AddAttempts and AddCost raise the task's
	// own limits first; a cost of a task that has no limit of it: ErrState.
	//
	// ErrState, too, when a cleanup of the task completed, or of a task that the retry
	// may bring back with it: the steps that the cleanup undid would count as done.
	// KeepSteps retries all the same. Completed cleanups of the tasks that come back
	// are kept as past steps (task.Step.Past), which step_count does not count, and run
	// again when their turn comes.
	//
	// A task that is being undone, or whose undo was given up, is ErrState, and so is one
	// with a child of a call whose undo was given up.
	//
	// With Cleanup the undo alone is tried again, for as long as if it had just begun. A
	// task whose undo was given up is pending for it again, and its job goes on; dependents
	// that have not started wait for it, those that ended stay. One that is blocked for it
	// or waits for its next try is due now, or when the revoked lease that it waits for
	// ends. A task that is neither, or whose undo runs: ErrState. Steps that are to be undone
	// are skipped if Skip names them, and stay; that needs a Reason. The other options are
	// not allowed then.
	RetryTask struct {
		Audit
		Seen
		Task        task.ID
		AddAttempts int   // to MaxAttempts
		AddCost     int64 // to MaxCost, micro-units
		KeepSteps   bool  // although a cleanup completed
		Cleanup     bool  // try the undo again
		Skip        []string
	}
	// UnblockTask lets a blocked task go on; Input (may be nil) is kept for
	// the handler as UnblockInput, and with it, as UnblockFor, the question that
	// blocked the task (its Error.Ask). With Ask set the task must wait with that
	// question: else ErrChanged. Any other state: ErrState.
	UnblockTask struct {
		Audit
		Seen
		Task  task.ID
		Input json.RawMessage
		Ask   string
	}
	// RescheduleTask makes a task that waits for a time (its delay, its retry, the
	// end of a sleep), or is due and not started, due at At, or now when that is
	// zero or has passed. A sleep that it waits for ends then too; the others that
	// it recorded do not change. One that is due already and is to run now keeps
	// its place. Any other task, one with open needs among them: ErrState.
	RescheduleTask struct {
		Audit
		Seen
		Task task.ID
		At   time.Time
	}
	// SendSignal gives a task a message: the oldest wait for its name takes it, or
	// the first one that comes. The same key again changes nothing (Existing in the
	// result, also when the task has ended since), with another payload it is
	// ErrConflict. ErrState if the task has ended; ErrLimit if it keeps
	// task.MaxSignals signals already that no wait took.
	SendSignal struct {
		Audit
		Seen
		Task    task.ID
		Name    string
		Key     string          // not empty
		Payload json.RawMessage // valid JSON
	}
	// DeleteTask removes a terminal task outside any job, with all its
	// records, and frees its idempotency key. Otherwise ErrState, and so is one whose undo
	// was given up (CancelTask.Abandon comes first), and one for
	// which a task waits, or waited as its parent (or because its handler asked for
	// it) that has not succeeded: a retry of that one reads it again.
	DeleteTask struct {
		Audit
		Seen
		Task task.ID
	}
	// DeleteJob removes a job that has ended, with all its tasks and their records.
	// ErrState: it has not ended, is still being changed, a task outside needs one of its
	// tasks, or the undo of one was given up (CancelTask.Abandon comes first).
	DeleteJob struct {
		Audit
		Job task.ID
	}
	// CancelJob asks every unfinished task of a job to cancel.
	CancelJob struct {
		Audit
		Job task.ID
	}
	// RaiseBudget adds to totals of a job's budget, and brings back what ended
	// because they were used up. ErrState if the budget has no such limit, if that
	// is too little for the job to go on, if tasks of it are still ending, or if it has
	// succeeded. A task that RetryTask would refuse because a cleanup completed stays
	// ended, unless KeepSteps is set.
	RaiseBudget struct {
		Audit
		Job         task.ID
		AddAttempts int   // to MaxTotalAttempts
		AddCost     int64 // to MaxCost, micro-units
		KeepSteps   bool  // see RetryTask
	}
	// ReplaceInput gives a task another input: one that is blocked, which goes on as by
	// UnblockTask, or one that waits for a repair. ErrState in any other state;
	// ErrChanged if its input, or the schema version of that, is not the one that was
	// seen. A task that has this input already changes nothing (Existing in the
	// result), unless it is blocked and the command is an operator's: ErrState.
	//
	// An operator's (Repair is zero) begins the repairs of the task anew, and cancels
	// the one that it waits for. That of a repair leaves the task waiting for the end
	// of the repair, and is refused with ErrState once the task does not.
	ReplaceInput struct {
		Audit
		Seen
		Task          task.ID
		Input         json.RawMessage // valid JSON, or the blob that has it
		SchemaVersion int             // of Input, ≥ 1
		OldHash       string          // task.PayloadHash of the input that was seen; "": whatever it is
		OldSchema     int             // its schema version; 0: whatever it is
		Repair        task.ID         // the repair whose command it is
	}
	// PauseQueue keeps a queue's tasks from being claimed until ResumeQueue.
	// Running ones go on. Both are idempotent.
	PauseQueue struct {
		Audit
		Queue string
	}
	// ResumeQueue ends a pause.
	ResumeQueue struct {
		Audit
		Queue string
	}
	// RerunTask stores a new task that repeats another one, in whatever state that
	// is, with a link to it (task.Task.RerunOf). New has its ID, its type, and what
	// its options are now; it is stored as by Enqueue. It takes over the completed
	// steps of the other one with an index below StepsBelow, but for cleanups.
	// ErrState: the task needs others, or called others in a step to be taken over, or
	// these are more than task.MaxRerunSteps, or a cleanup of it completed and KeepSteps
	// is not set.
	// The same command with the same New.ID again changes nothing.
	RerunTask struct {
		Audit
		Seen
		Task       task.ID
		New        task.New // outside jobs, without needs
		StepsBelow int
		KeepSteps  bool // takes steps over although a cleanup completed
	}
	// PauseType keeps tasks of a type from being claimed until ResumeType, as
	// PauseQueue does those of a queue.
	PauseType struct {
		Audit
		Type string
	}
	// ResumeType ends a pause.
	ResumeType struct {
		Audit
		Type string
	}
	// PauseTask keeps one task from being claimed until ResumeTask: it has no
	// dispatch row meanwhile, whatever makes it claimable. A running one goes on,
	// and is paused when its attempt has ended. One that a cancel, or its deadline,
	// has clean up is paused no longer. A terminal task: ErrState. Both are
	// idempotent.
	PauseTask struct {
		Audit
		Seen
		Task task.ID
	}
	// ResumeTask ends a pause. The task is due when it would have been.
	ResumeTask struct {
		Audit
		Seen
		Task task.ID
	}
	// ForgetTask erases what a task that has ended was given, made and said: input,
	// output, metadata, progress, the values of its steps and signals, checkpoints,
	// events and log lines, its references to blobs (its artifacts among them), and the
	// texts of its errors and decisions, also where those who waited for it keep them.
	// The rest stays: IDs, names, keys, labels, states, kinds of errors, times,
	// attempts and the audit. ErrState: it has not ended, its children are still
	// being stored, or its undo was given up (CancelTask.Abandon comes first). One that was forgotten before is not changed, nor audited
	// (Existing). It cannot be retried or rerun.
	ForgetTask struct {
		Audit
		Task task.ID
	}
	// ExpireInput gives a task that has ended its input without the fields whose time has
	// passed, if that is still the one that was seen: else ErrChanged. Without Input there
	// is nothing to replace. Next is when the next field expires, since the input was
	// stored; 0: none does. ErrState: the task has not ended.
	ExpireInput struct {
		Audit
		Task    task.ID
		OldHash string          // task.PayloadHash of the input that was seen
		Input   json.RawMessage // valid JSON, or the blob that has it
		Next    time.Duration
	}
	// AcceptBucket says which bucket has the blobs of the namespace from now on. With
	// Check it changes nothing, and is refused with ErrOtherBucket if that is another one.
	AcceptBucket struct {
		Audit
		Bucket Bucket
		Check  bool
	}
	// AnnounceTypes describes task types to programs that do not have their Go types
	// (Data.Types). Of a type that was announced before, what is announced now replaces
	// that; not if its schema version is lower, as of an old worker beside new ones. A
	// code version of 0 keeps the one that is known. What is known already changes
	// nothing, AnnouncedAt and AnnouncedBy neither (Existing: nothing changed at all).
	// It is not audited. ErrLimit: a schema or description is too large.
	AnnounceTypes struct {
		By    string // the worker, or who else announces them
		Types []AnnouncedType
	}
	// KeepFeed has what happens from now on kept in the feed (Observe.Feed) for a time,
	// at least MinFeedKeep. It changes the time if there is a feed. 0 ends the feed;
	// Collect then removes its rows. What happens between the end and a new begin is a
	// gap. It is not audited. It needs CanKeepFeed.
	KeepFeed struct {
		Keep time.Duration
	}
	// Restored says that the store was restored from a backup: a new
	// generation makes every lease handed out before worthless (R17). Tasks that ran
	// go on when their leases expire, or at once with EndLeases, for when no process
	// is left that may still run them; that is no crash of them.
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

// CommandResult answers one command.
type CommandResult struct {
	Err   error
	State task.State // of the task afterwards; "" for other commands
	Asked bool       // CancelTask: it has not ended: it was asked to end, or is being undone

	Existing bool // SendSignal: it was sent before; RerunTask: another task has the idempotency key; ReplaceInput: the task has this input already; ForgetTask: it was forgotten before; AnnounceTypes: all of it was known

	ID task.ID // RerunTask: the new task, or the existing one

	Uploaded Uploaded // Upload

	// DeleteJob: how many tasks it had.
	Deleted int

	// Restored: how many leases it ended (EndLeases).
	Leases int

	// CancelJob: how many tasks ended at once, were asked to (Asked), had ended before.
	Cancelled, AskedTasks, AlreadyDone int
}
