package client

import "github.com/goweaver/weaver/httpapi/wire"

// Requests and answers of a Client's methods; package httpapi has them, too.
type (
	// Problem is an answer that is no success, as RFC 9457 has it. It is the error that
	// the methods return for one.
	Problem = wire.Problem
	// ProblemError is one mistake of a request.
	ProblemError = wire.ProblemError
	// BulkRequest says which tasks are changed, and how: those of q, or ids.
	BulkRequest = wire.BulkRequest
	// BulkResult says what was done. While it has a Next the same request goes on with that.
	BulkResult = wire.BulkResult
	// RefusedTask is a task that a verb could not change, and why.
	RefusedTask = wire.RefusedTask
	// BulkSample is a task that a dry run lists.
	BulkSample = wire.BulkSample
	// TaskType is a task type that workers announced.
	TaskType = wire.TaskType
)

// ProblemBase begins the types of problems; docs/problems.md has a section for each.
const ProblemBase = wire.ProblemBase
