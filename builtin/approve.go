package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
)

// Approve waits for a person's approval: it blocks until it is unblocked with an
// [Approval]. See ApproveInput and ApproveOutput.
//
// A refusal fails the task at once, and so does an Approval that says that
// nobody answered in time. A task that is retried after that asks again.
var Approve = weaver.Define[ApproveInput, ApproveOutput]("weaver.person.approve.v1", weaver.NoRetry())

// ApproveInput says what is asked.
type ApproveInput struct {
	Message string `json:"message"` // the question, as people see it; at most 2,000 bytes
	// Timeout is how long the question stays open, from when it is asked. The
	// handler does not run meanwhile: what looks after the store, as `weaver
	// run` and `weaver worker` do, unblocks the task with Approval.Expired when
	// the time is over. 0: for ever.
	Timeout Duration `json:"timeout,omitempty"`
}

// ApproveOutput is an approval that was given.
type ApproveOutput struct {
	Approved bool            `json:"approved"` // true
	By       string          `json:"by,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"` // what the person gave with it
}

// Approval is the answer, as Client.Unblock takes it. Without Approved it is a
// refusal.
type Approval struct {
	Approved bool            `json:"approved"`
	By       string          `json:"by,omitempty"`      // who answered
	Reason   string          `json:"reason,omitempty"`  // of a refusal
	Input    json.RawMessage `json:"input,omitempty"`   // any value, for the output
	Expired  bool            `json:"expired,omitempty"` // nobody answered within ApproveInput.Timeout
}

const maxQuestion = 2000 // bytes of a message

// Validate reports every mistake at once. Enqueueing asks it.
func (in ApproveInput) Validate() error {
	var problems []error
	switch {
	case strings.TrimSpace(in.Message) == "":
		problems = append(problems, errors.New("message is missing: write what is asked, for example Deploy to production?"))
	case len(in.Message) > maxQuestion:
		problems = append(problems, fmt.Errorf("message has %d bytes, and at most %d are allowed: keep the details in a file, and name it", len(in.Message), maxQuestion))
	}
	if in.Timeout < 0 {
		problems = append(problems, fmt.Errorf(`timeout: %s is negative: write for example "48h", or leave it out to wait for ever`, time.Duration(in.Timeout)))
	}
	return errors.Join(problems...)
}

func approve(ctx context.Context, in ApproveInput) (ApproveOutput, error) {
	if err := in.Validate(); err != nil { // one that was enqueued by name alone
		return ApproveOutput{}, weaver.Permanent(err)
	}
	for round := 1; ; round++ {
		answer, err := weaver.Ask[Approval](ctx, questionName("approval", round), in.Message)
		if err != nil {
			return ApproveOutput{}, err
		}
		if answer.Approved && !answer.Expired {
			return ApproveOutput{Approved: true, By: answer.By, Input: answer.Input}, nil
		}
		// The answer is remembered, and ends the attempt that got it only: a later
		// one asks again, for the task was retried since. Crash here, or before the
		// attempt's end is stored: the question is asked again.
		attempt := weaver.Current(ctx).AttemptNo
		ended, err := weaver.Step(ctx, questionName("refused", round), func(context.Context) (int, error) { return attempt, nil })
		if err != nil {
			return ApproveOutput{}, err
		}
		if ended == attempt {
			return ApproveOutput{}, weaver.Permanent(in.refusal(answer))
		}
	}
}

// questionName names what belongs to one round of asking: "approval", "approval 2".
func questionName(name string, round int) string {
	if round == 1 {
		return name
	}
	return fmt.Sprintf("%s %d", name, round)
}

func (in ApproveInput) refusal(a Approval) error {
	if a.Expired {
		return fmt.Errorf("no answer within %s", text.Setting(time.Duration(in.Timeout)))
	}
	text := "not approved"
	if a.By != "" {
		text += " by " + a.By
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return errors.New(text)
}
