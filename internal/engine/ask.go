package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// question is the error of an attempt that waits for a person's answer, as the blocked task shows it. shape describes
// the answer.
type question struct {
	name, text, shape string

	within time.Duration // time limit for the answer; 0: no limit
	until  time.Time     // end of the time limit, by the store's clock
}

// Error implements error.
func (q *question) Error() string {
	if q.text == "" {
		return q.name + ": a person has to answer"
	}
	return q.name + ": " + q.text
}

// Ask returns the answer to a question: the input of the unblock that followed the block by this name. The answer is
// recorded as a step, so that later attempts get it without asking. Without an answer that check accepts, Ask blocks
// the task like a wait: concurrent steps end first, the attempt is over, and Ask returns ErrSuspended.
func (a *Attempt) Ask(ctx context.Context, name, text, shape string, within time.Duration, check func(json.RawMessage) error) (json.RawMessage, error) {
	asked := &question{name: name, text: text, shape: shape, within: within}
	if within > 0 {
		asked.until = rules.Instant(a.storeNow().Add(within))
		if before := a.task.Error; before != nil && before.Ask == name && !before.AskUntil.IsZero() { // the question is asked again
			asked.until = before.AskUntil
		}
	}
	value, q, err := a.answered(ctx, asked, check)
	if q != nil && err == nil {
		err = a.ask(q)
	}
	return value, err
}

// answered returns the answer to a question, or the question to ask. It handles one question at a time.
func (a *Attempt) answered(ctx context.Context, q *question, check func(json.RawMessage) error) (json.RawMessage, *question, error) {
	a.asking.Lock()
	defer a.asking.Unlock()
	done, index, err := a.enter(ctx, q.name)
	if err != nil {
		return nil, nil, err
	}
	if done != nil {
		value, err := replay(done)
		return value, nil, err
	}
	defer a.leave()
	input := a.task.UnblockInput
	if len(input) == 0 || a.task.UnblockFor != "" && string(input) == "null" {
		return nil, q, nil
	}
	if a.task.UnblockFor != q.name {
		return nil, q, a.keepAnswer(ctx)
	}
	if q.within > 0 && isNoAnswer(input) {
		return a.recordNoAnswer(ctx, q, index)
	}
	if err := check(input); err != nil {
		again := *q
		again.text = fmt.Sprintf("the given input %v; unblock the task with another input. %s", err, q.text)
		return nil, &again, nil
	}
	// Crash here: the input stays with the task, and the next attempt records it.
	value, err := a.recordAnswer(ctx, q.name, index)
	return value, nil, err
}

// keepAnswer records an answer that was given for another question than the one about to be asked, because the next
// unblock would replace it.
func (a *Attempt) keepAnswer(ctx context.Context) error {
	name := a.task.UnblockFor
	if name == "" {
		return nil // the answer to a Blocked
	}
	a.mu.Lock()
	known := a.entryOf(name)
	used := known.used || known.done != nil
	a.mu.Unlock()
	if used {
		return nil
	}
	value, err := a.recordAnswer(ctx, name, known.index)
	if err != nil {
		return err
	}
	a.mu.Lock()
	known.done = answerStep(name, known.index, a.task.AttemptNo, value)
	a.mu.Unlock()
	return nil
}

func (a *Attempt) recordAnswer(ctx context.Context, name string, index int) (json.RawMessage, error) {
	res, err := a.record(ctx, store.Record{Step: answerStep(name, index, a.task.AttemptNo, a.task.UnblockInput)})
	if err != nil {
		return nil, err
	}
	return res.Step.Value, nil
}

// recordNoAnswer records an expired question as a step with an error, and returns that error.
func (a *Attempt) recordNoAnswer(ctx context.Context, q *question, index int) (json.RawMessage, *question, error) {
	row := answerStep(q.name, index, a.task.AttemptNo, nil)
	row.Error = &task.Error{Kind: task.KindHandler, Code: CodeNoAnswer, Step: q.name, Message: fmt.Sprintf("nobody answered within %s", q.within)}
	res, err := a.record(ctx, store.Record{Step: row})
	if err != nil {
		return nil, nil, err
	}
	value, err := replay(&res.Step)
	return value, nil, err
}

func answerStep(name string, index, attempt int, value json.RawMessage) *task.Step {
	return &task.Step{Name: name, Index: index, Kind: task.KindAsk, State: task.StepCompleted, AttemptNo: attempt, Try: 1, Value: value}
}

// ask ends the attempt with a question. Of several concurrent questions the first is asked.
func (a *Attempt) ask(q *question) error {
	a.mu.Lock()
	if a.question == nil {
		a.question = q
	}
	a.mu.Unlock()
	a.suspendWhenIdle()
	return fmt.Errorf("%w (blocked: %w)", ErrSuspended, q)
}

// UnblockInput returns the input of the last unblock. It returns nil without one, and for an input given for an Ask,
// which only that Ask reads.
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
