package task

import (
	"fmt"
	"strings"
)

// SaysKind reports whether the message begins with the kind, after the step if
// it names that first: "panic: nil map" does, and so does `step "a": panic: nil map`.
func (e *Error) SaysKind() bool {
	rest := e.Message
	if e.Step != "" {
		rest = strings.TrimPrefix(rest, fmt.Sprintf("step %q: ", e.Step))
	}
	rest, ok := strings.CutPrefix(rest, string(e.Kind))
	return ok && e.Kind != KindNone && (rest == "" || rest[0] == ':' || rest[0] == ' ')
}

// StepError is the failure of a step, as its caller sees it. A replay of a
// recorded failure gives the recorded message and no Err.
type StepError struct {
	Step    string
	Kind    ErrorKind
	Code    string // that the function attached; "": none
	Message string
	Err     error // what the step's function returned; nil when an earlier attempt recorded the failure
}

// Error implements error.
func (e *StepError) Error() string { return fmt.Sprintf("step %q: %s", e.Step, e.Message) }

// Unwrap gives what the step's function returned.
func (e *StepError) Unwrap() error { return e.Err }

// CallError is the end without success of a child of a call, as its caller sees it.
type CallError struct {
	Call    string // the name of the call's step
	Index   int    // of the input
	TaskID  ID     // of the child
	State   State  // failed or cancelled
	Kind    ErrorKind
	Code    string // that the child's handler attached; "": none
	Message string // "" if the child was retried since
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
	Value any    // what was given to panic
	Stack string // of the goroutine, as debug.Stack has it
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// RunningError is what an engine returns when it stopped and handlers had
// ignored the end of their contexts: it names them. Their leases were given
// back; whatever they still do is fenced off.
type RunningError struct {
	Tasks []string // type and id of each: "acme.billing.charge.v1 01J…"
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("stopped, but %d handlers did not return after their context ended: %v", len(e.Tasks), e.Tasks)
}
