package engine

import (
	"errors"
	"fmt"

	"github.com/goweaver/weaver/task"
)

// ErrForgotten: the task was forgotten.
var ErrForgotten = errors.New("the task was forgotten: what it held was erased")

// Erased returns the error of a handler that needs a value of a forgotten task, or nil if the task was not forgotten.
// The error is permanent: later attempts would not find the value either.
func Erased(what string, of *task.Task) error {
	if !of.Forgotten {
		return nil
	}
	return &Verdict{Kind: Permanent, Err: &KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s of task %v: %w", what, of.ID, ErrForgotten)}}
}
