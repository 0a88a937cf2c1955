package weaver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
)

// Signal is a named kind of message to a task: a contract between its sender and the handler that
// waits for it. T travels as JSON.
type Signal[T any] struct{ name string }

// DefineSignal defines a signal. Its name has 1 to 255 bytes; handlers of all task types may wait for
// it. DefineSignal panics on a bad name: it is meant for package variables.
func DefineSignal[T any](name string) *Signal[T] {
	if err := checkSignal(name, "k"); err != nil {
		panic("weaver.DefineSignal: " + err.Error())
	}
	return &Signal[T]{name: name}
}

// Name returns the signal's name.
func (s *Signal[T]) Name() string { return s.name }

// Wait waits for a signal, without a worker, and returns its value. The wait is recorded under the
// step name and survives restarts. Like a Sleep it returns ErrSuspended, deferred functions run, and
// the handler starts again when the signal arrives or the wait times out. A signal sent before the
// wait counts; the oldest is taken first. Each signal is taken by one wait.
//
// After timeout, counted from the first call of Wait, ok is false, and stays so in every later
// attempt. The store decides when it is asked: a signal that arrives after the timeout but before an
// attempt continues (no worker ran, or the task was paused) is taken. A timeout of 0 means no limit. A
// negative one has passed: Wait only takes a signal that was sent before.
//
// A payload that does not decode as T blocks the task (decode_error): RerunFrom the wait creates a
// task that waits again. Other errors are those of Step.
func (s *Signal[T]) Wait(ctx context.Context, name string, timeout time.Duration) (value T, ok bool, err error) {
	a, err := engine.From(ctx)
	if err != nil {
		return value, false, fmt.Errorf("wait %q for the signal %q: %w", name, s.name, err)
	}
	if timeout < 0 {
		timeout = 1 // the minimum: it times out once the store is asked
	}
	step, err := a.Await(ctx, name, &engine.SignalWait{Signal: s.name, Timeout: timeout})
	if err != nil || len(step.Value) == 0 {
		return value, false, err
	}
	value, err = s.decode(a, name, step.Value)
	return value, err == nil, err
}

func (s *Signal[T]) decode(a *engine.Attempt, name string, payload json.RawMessage) (T, error) {
	var value T
	if err := json.Unmarshal(payload, &value); err != nil {
		return value, a.WrongPayload(name, fmt.Errorf("the payload of the signal %q does not decode as %T: %w", s.name, value, err))
	}
	return value, nil
}

// Send sends the signal to a task, which may wait for it now or later. The key, 1 to 255 bytes,
// identifies the message: sending it again has no effect, and with another value it is ErrConflict.
// Options: By, Reason.
//
// Errors: ErrNotFound; ErrState if the task has ended; store.ErrLimit if it has a thousand signals
// that no wait took; ErrInvalidInput and ErrTooLarge.
func (s *Signal[T]) Send(ctx context.Context, c Caller, id TaskID, key string, v T, opts ...OperateOption) error {
	payload, err := encode(&v)
	if err == nil {
		err = validate(&v)
	}
	if err != nil {
		return fmt.Errorf("send the signal %q to task %s: %w: %w", s.name, id, ErrInvalidInput, err)
	}
	return c.SendSignal(ctx, id, s.name, key, payload, opts...)
}

// SendSignal implements Caller; see Signal.Send.
func (c *Client) SendSignal(ctx context.Context, id TaskID, name, key string, payload json.RawMessage, opts ...OperateOption) error {
	what := fmt.Sprintf("send the signal %q to task %s", name, id)
	if err := checkSignal(name, key); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidOption, err)
	}
	if err := checkJSON(payload); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidInput, err)
	}
	if err := c.checkSize("payload", len(payload)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var compact bytes.Buffer // different white space does not change the payload
	if err := json.Compact(&compact, payload); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalidInput, err)
	}
	_, err := c.operate(ctx, "signal task "+id.String(), opts, func(s operateSettings) store.Command {
		audit := s.audit
		if audit.Reason = name; s.audit.Reason != "" {
			audit.Reason += ": " + s.audit.Reason
		}
		return store.SendSignal{Audit: audit, Seen: s.seen, Task: id, Name: name, Key: key, Payload: compact.Bytes()}
	})
	return err
}

func checkSignal(name, key string) error {
	return errors.Join(option.CheckKey("the name of a signal", name), option.CheckKey("the key of a signal", key))
}

// SendSignal always fails: a signal changes the task, so its worker and other senders would wait until
// the transaction ends.
func (t *TxClient) SendSignal(_ context.Context, id TaskID, name, _ string, _ json.RawMessage, _ ...OperateOption) error {
	return fmt.Errorf("send the signal %q to task %s: %w", name, id, errSignalInTx)
}

var errSignalInTx = errors.New("a signal is not sent inside a transaction: it moves the task, which would be locked until that ends; send it with the client after the commit, or enqueue a task that sends it")
