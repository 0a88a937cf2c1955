package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// question is what an attempt ends with that waits for a person's answer. It is
// the error that the blocked task shows.
type question struct{ name, text string }

// Error implements error.
func (q *question) Error() string {
	if q.text == "" {
		return q.name + ": a person has to answer"
	}
	return q.name + ": " + q.text
}

// Ask returns the answer to a question: the input of the unblock that followed
// the block by this name. The answer is recorded as a step, so that later
// attempts get it without asking. Without an answer that check accepts, it
// blocks the task like a wait: it lets steps that run beside it end, the attempt
// is over, and it returns ErrSuspended.
func (a *Attempt) Ask(ctx context.Context, name, text string, check func(json.RawMessage) error) (json.RawMessage, error) {
	done, index, err := a.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	if done != nil {
		return replay(done)
	}
	input := a.task.UnblockInput
	if a.task.UnblockFor != name || len(input) == 0 {
		a.leave()
		return nil, a.ask(&question{name, text})
	}
	if err := check(input); err != nil {
		a.leave()
		return nil, a.ask(&question{name, fmt.Sprintf("the input that was given %v; unblock the task with another one. %s", err, text)})
	}
	// Crash here: the input stays with the task, and the next attempt records it.
	step := task.Step{Name: name, Index: index, Kind: task.KindAsk, State: task.StepCompleted, AttemptNo: a.task.AttemptNo, Try: 1, Value: input}
	res, err := a.record(ctx, store.Record{Step: &step})
	a.leave()
	if err != nil {
		return nil, err
	}
	return res.Step.Value, nil
}

// ask ends the attempt with a question. Of several at once the first is asked.
func (a *Attempt) ask(q *question) error {
	a.mu.Lock()
	if a.question == nil {
		a.question = q
	}
	a.mu.Unlock()
	a.suspendWhenIdle()
	return fmt.Errorf("%w (blocked: %w)", ErrSuspended, q)
}

// UnblockInput returns the input of the last unblock, nil when there was none or
// it was given for an Ask, which alone reads it.
func (a *Attempt) UnblockInput() json.RawMessage {
	input := a.task.UnblockInput
	if len(input) == 0 {
		return nil
	}
	a.mu.Lock()
	a.inputReads++
	reads := a.inputReads
	a.mu.Unlock()
	log := a.env.Log.With("task_id", a.task.ID, "task_type", a.task.Type, "attempt_no", a.task.AttemptNo)
	switch {
	case a.task.UnblockFor != "":
		if reads == 1 {
			log.Warn("UnblockInput returns nothing: the last input was given for an Ask",
				"ask", a.task.UnblockFor, "advice", "read it with Ask of that name; an input given after a Blocked is UnblockInput's")
		}
		return nil
	case reads == 2:
		log.Warn("UnblockInput was called twice in an attempt: one input answers both",
			"advice", "give each question its name: weaver.Ask")
	}
	return input
}
