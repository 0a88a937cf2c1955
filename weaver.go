// Package weaver is a durable task engine: a program defines typed tasks, and
// Weaver runs them so that nothing acknowledged is lost, finished steps never
// run twice, and every attempt and decision is on record.
//
// # I want to …
//
//   - define a task type: [Define], with [MaxAttempts], [Backoff], [Timeout], [Queue], [Priority]
//   - run tasks: [New], [Config], [Engine.Run], [Engine.RunUntilIdle]
//   - enqueue: [Type.Enqueue], [Type.EnqueueMany], [Client.EnqueueTasks]; in my transaction: [Client.InTx]
//   - enqueue once per event, later, or until a time: [IdempotencyKey], [Delay], [At], [ExpireAfter]
//   - wait for an output: [Handle.Wait], [Type.Wait], [JobHandle.Wait]
//   - do something once: [Step], [Do], [StepTx]; spend: [Spend]
//   - wait inside a handler: [Sleep], [Signal.Wait], [Ask], [Race]
//   - start other tasks: [Call], [CallAll], [Start], [Decompose], [StartJob]
//   - undo effects: [Undo], [Cleanup], [PointOfNoReturn]
//   - decide the end of an attempt: [Permanent], [RetryAfter], [Blocked], [WithCode]
//   - run a graph of tasks: [NewJob], [Job.Add], [Needs], [IfFailed], [Client.Submit]
//   - keep files: [PutArtifact], [OpenArtifact]; stream output: [Stream]; report: [Progress], [Log]
//   - follow events: [On] in this process, [Client.Subscribe] from any
//   - read: [Client.Get], [Client.List], [Client.JobStatus]; search: [Client.Search]
//   - operate: [Client.Retry], [Client.Cancel], [Client.Unblock], [Client.Rerun], [Client.Bulk]
//   - delete old data: [Retain], [Client.Prune], [Client.Forget]
//   - extend: [Plugin], [Config.Middleware]; test: package weavertest
//
// # Overview
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
// # Guarantees
//
// A handler may run more than once: after a crash, a lost lease, a retry. Put
// effects that must not repeat into a Step: its value is durable before Step
// returns, and from then on the function never runs again for that task.
// Delivery is at least once; completed steps are kept; code outside steps may
// run more than once.
//
// A worker that lost its lease cannot write: the store checks the lease
// with every write.
//
// # Waiting
//
// Sleep leaves the worker: the handler returns, and another attempt begins at the wake time and gets
// the recorded values of completed steps. Code outside steps therefore runs again after every wait,
// and deferred functions run at each suspension (see Suspended). Signal.Wait (for a message to the
// task), Call and CallAll (for the outputs of children) and Race (for the first of several) wait in
// the same way. So does a handler that returns Decompose, which splits the task into children, or
// AddDependency: it runs again when these have ended.
//
// The names of this package are those of the design: task type, task, job,
// handler, attempt, step, outcome, decision, lease, queue, worker, draft.
package weaver

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The vocabulary, re-exported so that most programs import one package.
type (
	// TaskID identifies a task.
	TaskID = task.ID
	// JobID identifies a job.
	JobID = task.ID
	// State is the state of a task.
	State = task.State
	// TaskInfo is a task as readers see it.
	TaskInfo = task.Task
	// JobInfo is a job as readers see it.
	JobInfo = task.Job
	// AttemptInfo is one execution of a handler.
	AttemptInfo = task.Attempt
	// StepInfo is one recorded try of a step.
	StepInfo = task.Step
	// ArtifactRef names an artifact: PutArtifact returns it, and OpenArtifact takes it.
	ArtifactRef = task.ArtifactRef
	// Budget limits a job.
	Budget = task.Budget
	// Filter selects tasks for List.
	Filter = store.Filter
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
