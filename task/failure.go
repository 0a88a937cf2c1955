package task

import (
	"fmt"
	"strings"
)

// SaysKind reports whether the message begins with the kind, optionally after the step: "panic: nil map" and `step
// "a": panic: nil map` both do.
func (e *Error) SaysKind() bool {
	rest := e.Message
	if e.Step != "" {
		rest = strings.TrimPrefix(rest, fmt.Sprintf("step %q: ", e.Step))
	}
	rest, ok := strings.CutPrefix(rest, string(e.Kind))
	return ok && e.Kind != KindNone && (rest == "" || rest[0] == ':' || rest[0] == ' ')
}

// StepError is the failure of a step, as its caller sees it. A replayed failure has the recorded message and no Err.
type StepError struct {
	Step    string
	Kind    ErrorKind
	Code    string // attached by the function; may be empty
	Message string
	Err     error // the error of the step's function; nil when an earlier attempt recorded the failure
}

// Error implements error.
func (e *StepError) Error() string { return fmt.Sprintf("step %q: %s", e.Step, e.Message) }

// Unwrap returns the error of the step's function.
func (e *StepError) Unwrap() error { return e.Err }

// CallError reports that a child of a call ended without success.
type CallError struct {
	Call    string // the step name of the call
	Index   int    // of the child's input
	TaskID  ID     // of the child
	State   State  // failed or cancelled
	Kind    ErrorKind
	Code    string // attached by the child's handler; may be empty
	Message string // empty if the child was retried since
}

// Error implements error.
func (e *CallError) Error() string {
	text := fmt.Sprintf("call %q: task %s %s", e.Call, e.TaskID, e.State)
	if e.State == Cancelled {
		text = fmt.Sprintf("call %q: task %s was cancelled", e.Call, e.TaskID)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// PanicError is a panic of a handler or of a step's function.
type PanicError struct {
	Value any    // the argument of panic
	Stack string // of the goroutine, as formatted by debug.Stack
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// RunningError is returned by an engine that stopped while handlers ignored the end of their contexts. It lists those
// tasks. Their leases were released, so later writes of the handlers are fenced.
type RunningError struct {
	Tasks []string // type and ID of each task: "acme.billing.charge.v1 01J…"
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("stopped, but %d handlers did not return after their context ended: %v", len(e.Tasks), e.Tasks)
}
