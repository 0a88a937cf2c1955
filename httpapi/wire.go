package httpapi

import "github.com/goweaver/weaver/internal/httpwire"

// Requests and answers that package client has, too.
type (
	// Span is a duration as JSON: a string as time.ParseDuration reads it, "1h30m".
	Span = httpwire.Span
	// Draft is a task that is to be enqueued. What is left out is as its type says.
	Draft = httpwire.Draft
	// DraftOptions are the options of a task.
	DraftOptions = httpwire.DraftOptions
	// ExpiryDraft says for how long a field of an input is stored after the task has ended.
	ExpiryDraft = httpwire.ExpiryDraft
	// Enqueued answers one draft.
	Enqueued = httpwire.Enqueued
	// Found is a page of tasks, newest first. A query about what no index knows is looked for
	// in a bounded number of tasks: a page may have few items, or none, and still have a next.
	Found = httpwire.Found
	// History is all that is recorded about a task but its events, logs and values.
	History = httpwire.History
	// Task is a task as the API shows it.
	Task = httpwire.Task
	// Page is one page of a list, newest first.
	Page[T any] = httpwire.Page[T]
	// List is all of something.
	List[T any] = httpwire.List[T]
	// JobDraft is a job that is to be submitted.
	JobDraft = httpwire.JobDraft
	// BudgetDraft limits a job; 0: without limit.
	BudgetDraft = httpwire.BudgetDraft
	// NodeDraft is a task of a job.
	NodeDraft = httpwire.NodeDraft
	// Submitted answers a job.
	Submitted = httpwire.Submitted
	// JobResult is how a job ended, or where it stands.
	JobResult = httpwire.JobResult
	// JobTask is a task of a JobResult.
	JobTask = httpwire.JobTask
	// CancelAck answers the cancel of a job.
	CancelAck = httpwire.CancelAck
	// RetryAck answers the retry of a job.
	RetryAck = httpwire.RetryAck
	// BulkRequest says which tasks are changed, and how: those of q, or ids.
	BulkRequest = httpwire.BulkRequest
	// BulkResult says what was done. While it has a next the same request goes on with that.
	BulkResult = httpwire.BulkResult
	// RefusedTask is a task that a verb could not change, and why.
	RefusedTask = httpwire.RefusedTask
	// BulkSample is a task that a dry run lists.
	BulkSample = httpwire.BulkSample
	// Counts says how many tasks there are.
	Counts = httpwire.Counts
	// TaskType is a task type that workers announced.
	TaskType = httpwire.TaskType
	// Problem is an answer that is no success, as RFC 9457 has it. It is an error: what
	// the client's methods return for one.
	Problem = httpwire.Problem
	// ProblemError is one mistake of a request.
	ProblemError = httpwire.ProblemError

	batchRequest      = httpwire.BatchRequest
	verbRequest       = httpwire.VerbRequest
	cancelRequest     = httpwire.CancelRequest
	retryRequest      = httpwire.RetryRequest
	taskRetryRequest  = httpwire.TaskRetryRequest
	rerunRequest      = httpwire.RerunRequest
	unblockRequest    = httpwire.UnblockRequest
	signalRequest     = httpwire.SignalRequest
	repairRequest     = httpwire.RepairRequest
	rescheduleRequest = httpwire.RescheduleRequest
	pauseRequest      = httpwire.PauseRequest
)

// ProblemBase begins the types of problems; docs/problems.md has a section for each.
const ProblemBase = httpwire.ProblemBase
