package httpapi

import "github.com/goweaver/weaver/httpapi/wire"

// Requests and answers that package client has, too.
type (
	// Span is a duration as JSON: a string as time.ParseDuration reads it, "1h30m".
	Span = wire.Span
	// Draft is a task that is to be enqueued. What is left out is as its type says.
	Draft = wire.Draft
	// DraftOptions are the options of a task.
	DraftOptions = wire.DraftOptions
	// ExpiryDraft says for how long a field of an input is stored after the task has ended.
	ExpiryDraft = wire.ExpiryDraft
	// Enqueued answers one draft.
	Enqueued = wire.Enqueued
	// Found is a page of tasks, newest first. A query about what no index knows is looked for
	// in a bounded number of tasks: a page may have few items, or none, and still have a next.
	Found = wire.Found
	// History is all that is recorded about a task but its events, logs and values.
	History = wire.History
	// Task is a task as the API shows it.
	Task = wire.Task
	// Page is one page of a list, newest first.
	Page[T any] = wire.Page[T]
	// List is all of something.
	List[T any] = wire.List[T]
	// JobDraft is a job that is to be submitted.
	JobDraft = wire.JobDraft
	// BudgetDraft limits a job; 0: without limit.
	BudgetDraft = wire.BudgetDraft
	// NodeDraft is a task of a job.
	NodeDraft = wire.NodeDraft
	// Submitted answers a job.
	Submitted = wire.Submitted
	// JobResult is how a job ended, or where it stands.
	JobResult = wire.JobResult
	// JobTask is a task of a JobResult.
	JobTask = wire.JobTask
	// CancelAck answers the cancel of a job.
	CancelAck = wire.CancelAck
	// RetryAck answers the retry of a job.
	RetryAck = wire.RetryAck
	// BulkRequest says which tasks are changed, and how: those of q, or ids.
	BulkRequest = wire.BulkRequest
	// BulkResult says what was done. While it has a next the same request goes on with that.
	BulkResult = wire.BulkResult
	// RefusedTask is a task that a verb could not change, and why.
	RefusedTask = wire.RefusedTask
	// BulkSample is a task that a dry run lists.
	BulkSample = wire.BulkSample
	// Counts says how many tasks there are.
	Counts = wire.Counts
	// TaskType is a task type that workers announced.
	TaskType = wire.TaskType
	// LimitDraft is a limit that is to be set.
	LimitDraft = wire.LimitDraft
	// ScheduleDraft is a schedule that is to be stored.
	ScheduleDraft = wire.ScheduleDraft
	// Schedule is a schedule with its next times, and what became of the last ones.
	Schedule = wire.Schedule
	// Problem is an answer that is no success, as RFC 9457 has it. It is an error: what
	// the client's methods return for one.
	Problem = wire.Problem
	// ProblemError is one mistake of a request.
	ProblemError = wire.ProblemError
	// HealthCheck is the result of one readiness check.
	HealthCheck = wire.HealthCheck

	batchRequest      = wire.BatchRequest
	verbRequest       = wire.VerbRequest
	cancelRequest     = wire.CancelRequest
	retryRequest      = wire.RetryRequest
	taskRetryRequest  = wire.TaskRetryRequest
	rerunRequest      = wire.RerunRequest
	unblockRequest    = wire.UnblockRequest
	signalRequest     = wire.SignalRequest
	repairRequest     = wire.RepairRequest
	rescheduleRequest = wire.RescheduleRequest
	pauseRequest      = wire.PauseRequest
	backfillRequest   = wire.BackfillRequest
)

// ProblemBase begins the types of problems; docs/problems.md has a section for each.
const ProblemBase = wire.ProblemBase
