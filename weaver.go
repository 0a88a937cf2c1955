// Package weaver is a durable task engine: a program defines typed tasks, and
// Weaver runs them so that nothing acknowledged is lost, finished steps never
// run twice, and every attempt and decision is on record.
//
// Define a task type and share it between the code that enqueues and the code
// that handles:
//
//	var Charge = weaver.Define[Order, Receipt]("acme.billing.charge.v1", weaver.MaxAttempts(3))
//
// A worker opens a store, registers handlers and runs:
//
//	db, err := sqlite.Open(ctx, "app.db")
//	err = db.Migrate(ctx)
//	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{Charge.Handler(charge)}})
//	err = eng.Run(ctx)
//
// A producer, in the same process or another one, enqueues:
//
//	h, err := Charge.Enqueue(ctx, eng, Order{ID: 7})
//	receipt, err := h.Wait(ctx)
//
// # What is promised
//
// A handler may run more than once: after a crash, a lost lease, a retry. What
// must not happen twice goes into a Step: its value is durable before Step
// returns, and from then on the function never runs again for that task.
// Delivery is at least once; steps that completed are kept; there is no
// exactly-once execution of code outside steps.
//
// A worker that lost its lease writes nothing: the store compares the lease
// with every write.
//
// # Waiting
//
// Sleep leaves the worker: the handler returns, and another attempt begins
// when the time has come, which gets the values of completed steps back. So code
// outside steps runs again after every wait, and deferred functions run at
// each suspension (see Suspended). So do Signal.Wait, which waits for a message to
// the task, Call and CallAll, which wait for the outputs of children, and Race, which
// waits for the first of several. So does a handler that returns Decompose, which
// splits the task into children, or AddDependency: it runs again when these have
// ended.
//
// The names of this package are those of the design: task type, task, job,
// handler, attempt, step, outcome, decision, lease, queue, worker, draft.
package weaver

import (
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// The vocabulary, re-exported so that most programs import one package.
type (
	// TaskID identifies a task.
	TaskID = task.ID
	// JobID identifies a job.
	JobID = task.ID
	// State is the state of a task.
	State = task.State
	// JobState is the state of a job.
	JobState = task.JobState
	// ErrorKind classifies failures.
	ErrorKind = task.ErrorKind
	// TaskInfo is a task as readers see it.
	TaskInfo = task.Task
	// JobInfo is a job as readers see it.
	JobInfo = task.Job
	// AttemptInfo is one execution of a handler.
	AttemptInfo = task.Attempt
	// StepInfo is one recorded try of a step.
	StepInfo = task.Step
	// UndoPlan lists the effects of a task, and which of them are undone if it ends without success.
	UndoPlan = task.UndoPlan
	// UndoEffect is what a step did, and what becomes of it.
	UndoEffect = task.UndoEffect
	// QueueInfo is a queue as readers see it.
	QueueInfo = store.Queue
	// TaskDefaults are the options that tasks of a type have unless an enqueue says otherwise.
	TaskDefaults = store.TypeDefaults
	// WorkerInfo is an engine that runs, as readers see it.
	WorkerInfo = store.WorkerStatus
	// Trouble says why a worker cannot run tasks of a type: see NotHere.
	Trouble = store.Trouble
	// Overview is what a namespace holds.
	Overview = store.Overview
	// OverviewRequest asks for parts of an overview.
	OverviewRequest = store.OverviewRequest
	// Counts says how many tasks there are.
	Counts = store.Counts
	// Count is a number of tasks, up to 10,000.
	Count = store.Count
	// Graph is the tasks of a job and the edges between them, or a page of that.
	Graph = store.Graph
	// GraphRequest asks for the graph of a job.
	GraphRequest = store.GraphRequest
	// StatsBy names what rows of statistics are told apart by.
	StatsBy = store.StatBy
	// AuditEntry records what an operator did.
	AuditEntry = store.AuditEntry
	// AuditFilter selects entries of the audit.
	AuditFilter = store.AuditFilter
	// Budget limits a job.
	Budget = task.Budget
	// Filter selects tasks for List.
	Filter = store.Filter
	// JobFilter selects jobs for Jobs.
	JobFilter = store.JobFilter
	// History is everything recorded about one task.
	History = store.History
	// Store is what an engine and its clients use; the adapters
	// (store/sqlite) implement it.
	Store = store.Store
	// Disposition says what an enqueue did.
	Disposition = store.Disposition
	// Decider chooses what follows a failure.
	Decider = decide.Decider
	// RepairHinter writes the hint for a [Repair].
	RepairHinter = decide.RepairHinter
	// Router chooses the handler of a task.
	Router = decide.Router
	// Sink receives events.
	Sink = event.Sink
)

// The states of a task.
const (
	StatePending   = task.Pending
	StateReady     = task.Ready
	StateRunning   = task.Running
	StateSucceeded = task.Succeeded
	StateFailed    = task.Failed
	StateCancelled = task.Cancelled
	StateBlocked   = task.Blocked
)

// The states of a job.
const (
	JobRunning   = task.JobRunning
	JobBlocked   = task.JobBlocked
	JobSucceeded = task.JobSucceeded
	JobFailed    = task.JobFailed
	JobCancelled = task.JobCancelled
)

// The parts of an overview.
const (
	OverviewCounts  = store.OverviewCounts
	OverviewQueues  = store.OverviewQueues
	OverviewWorkers = store.OverviewWorkers
)

// What rows of statistics are told apart by: the type and queue of the task, how the
// attempt ended, the kind of its error, and the worker, which is kept for an hour.
const (
	StatsByType      = store.ByType
	StatsByQueue     = store.ByQueue
	StatsByOutcome   = store.ByOutcome
	StatsByErrorKind = store.ByErrorKind
	StatsByWorker    = store.ByWorker
)

// What of a task is paused: TaskInfo.Pause.
const (
	PausedTask  = task.PauseTask
	PausedType  = task.PauseType
	PausedQueue = task.PauseQueue
)

// What an enqueue did: it stored a new task; a task has its idempotency key already
// and did not get the input, also with [Coalesce]; a task that has not started took the
// input.
const (
	DispositionCreated   = store.DispositionCreated
	DispositionExisting  = store.DispositionExisting
	DispositionCoalesced = store.DispositionCoalesced
)

// ParseID reads the 26 characters of a task's or job's id.
func ParseID(s string) (TaskID, error) { return task.ParseID(s) }
