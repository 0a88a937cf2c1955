// Package delivery is the port for transports of hints: messages that tell an idle worker, in any process, which task
// is due (requirements §15, §18.2; LEASES.md R12, W4).
//
// A hint holds a task ID. Nothing in a transport is a source of truth: the store decides who runs a task when a worker
// claims the ID. A transport may therefore lose, repeat, delay and reorder hints. That costs latency and no work: the
// publisher sends the hint of a task that was not claimed again, and idle workers claim without hints.
//
// NewMemory connects the parts of one process. Package delivery/redis connects processes. Package
// delivery/deliverytest is the conformance suite for Transports.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/task"
)

// Lane is the part of a task's place in the queue that decides which workers may run it. A worker pops only from lanes
// that it serves.
type Lane struct {
	Queue string // in Pop: "" stands for every queue
	Type  string // task type
}

// Hint says that a task may be due.
type Hint struct {
	Lane Lane
	Task task.ID
}

// Transport carries hints from publishers to workers. All methods are safe for concurrent use.
type Transport interface {
	// Push offers hints of a namespace, in order. It returns nil once the transport has taken all of them, which does
	// not promise that a worker receives them. A *RefusedError lists hints that the transport will never take; it has
	// taken the others. After any other error each hint may or may not have been taken, and the caller pushes all of
	// them again later.
	Push(ctx context.Context, namespace string, hints []Hint) error

	// Pop removes up to limit hints of the given lanes and returns their task IDs. If there are none, it waits for the
	// first one, at most for the given time, and returns no IDs and no error when that time is over. A negative or zero
	// wait returns at once. The returned IDs may name tasks that do not exist, have ended or are in other lanes. When
	// ctx ends during the wait, Pop returns the error of ctx.
	Pop(ctx context.Context, namespace string, lanes []Lane, limit int, wait time.Duration) ([]task.ID, error)

	// Close releases the resources of the transport and ends waiting calls with ErrClosed. A second Close does nothing.
	Close() error
}

// ErrClosed: the transport was closed.
var ErrClosed = errors.New("the delivery transport is closed")

// RefusedError lists hints that a transport will never take, for example because a queue's name is too long for it. Their
// tasks are claimed without hints.
type RefusedError struct {
	Refused []Refusal
}

// Refusal is one refused hint.
type Refusal struct {
	Index  int   // in the slice given to Push
	Reason error // reason, for operators
}

// Error implements error.
func (e *RefusedError) Error() string {
	if len(e.Refused) == 0 {
		return "the delivery transport refused hints"
	}
	return fmt.Sprintf("the delivery transport refused %d hints; the first: %v", len(e.Refused), e.Refused[0].Reason)
}
