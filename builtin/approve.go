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

// Approve waits for a person's approval: the task blocks until Client.Unblock
// gives it an [Approval]. See ApproveInput and ApproveOutput.
//
// A refusal fails the task at once, and so does an Approval with Expired set. A
// retry of the task asks again.
var Approve = weaver.Define[ApproveInput, ApproveOutput]("weaver.person.approve.v1", weaver.NoRetry())

// ApproveInput is the question.
type ApproveInput struct {
	Message string `json:"message"` // the question, as shown to people; at most 2,000 bytes
	// Timeout is the time to answer, from the question on. The handler does not run
	// meanwhile. The process that maintains the store (`weaver run` and `weaver
	// worker` do) unblocks the task with Approval.Expired after the timeout. 0 means
	// no limit.
	Timeout Duration `json:"timeout,omitempty"`
}

// ApproveOutput is a given approval.
type ApproveOutput struct {
	Approved bool            `json:"approved"` // true
	By       string          `json:"by,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"` // the input of the approval
}

// Approval is the answer to an approval task, passed to Client.Unblock. It refuses unless Approved
// is set.
type Approval struct {
	Approved bool            `json:"approved"`
	By       string          `json:"by,omitempty"`      // the person who answered
	Reason   string          `json:"reason,omitempty"`  // of a refusal
	Input    json.RawMessage `json:"input,omitempty"`   // any value, for the output
	Expired  bool            `json:"expired,omitempty"` // no answer within ApproveInput.Timeout
}

const maxQuestion = 2000 // bytes of a message

// Validate returns all problems with the input. Enqueue calls it.
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
	if err := in.Validate(); err != nil { // a task enqueued by name
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
		// The answer is recorded, and ends only the attempt that got it: a later attempt
		// asks again, because the task was retried. Crash here, or before the end of the
		// attempt is stored: the question is asked again.
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

// questionName returns the step name of a round of questions: "approval",
// "approval 2".
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
