package builtin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store/memstore"
)

// question enqueues a task that waits for an answer, on a running worker.
type question struct {
	*testing.T
	client *weaver.Engine
	handle *weaver.Handle[builtin.ApproveOutput]
}

func asked(t *testing.T, in builtin.ApproveInput, play func(q *question)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := weaver.New(memstore.New(), weaver.Config{Handlers: builtin.Handlers(builtin.Config{})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		h, err := builtin.Approve.Enqueue(t.Context(), e, in)
		if err != nil {
			t.Fatal(err)
		}
		q := &question{t, e, h}
		q.asks("approval: " + in.Message)
		play(q)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// asks expects the task to be blocked with the given message.
func (q *question) asks(message string) {
	q.Helper()
	if _, err := q.handle.Wait(q.Context()); !errors.Is(err, weaver.ErrBlocked) || !strings.HasSuffix(err.Error(), message) {
		q.Fatalf("the task does not wait with %q: %v", message, err)
	}
}

func (q *question) answer(a builtin.Approval) {
	q.Helper()
	if err := q.client.Unblock(q.Context(), q.handle.ID(), a); err != nil {
		q.Fatal(err)
	}
}

// fails expects the task to be failed with the given message and without a retry.
func (q *question) fails(message string) {
	q.Helper()
	_, err := q.handle.Wait(q.Context())
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok || te.State != weaver.StateFailed || te.Message != message {
		q.Fatalf("the task ended with %v, want a failure with %q", err, message)
	}
}

func TestApprove(t *testing.T) {
	t.Parallel()
	in := builtin.ApproveInput{Message: "Deploy to production?", Timeout: builtin.Duration(48 * time.Hour)}

	t.Run("an approval is the output, with who gave it and what", func(t *testing.T) {
		t.Parallel()
		asked(t, in, func(q *question) {
			q.answer(builtin.Approval{Approved: true, By: "ann", Input: []byte(`{"ticket": 7}`)})
			out, err := q.handle.Wait(q.Context())
			if err != nil || !out.Approved || out.By != "ann" || string(out.Input) != `{"ticket":7}` {
				q.Errorf("the output is %+v with input %s, %v", out, out.Input, err)
			}
		})
	})

	t.Run("a refusal fails the task, and a retry asks again", func(t *testing.T) {
		t.Parallel()
		asked(t, in, func(q *question) {
			for round, name := range []string{"approval", "approval 2", "approval 3"} {
				if round > 0 {
					q.asks(name + ": Deploy to production?")
				}
				q.answer(builtin.Approval{By: "bob", Reason: "not on a Friday"})
				q.fails("not approved by bob: not on a Friday")
				if err := q.client.Retry(q.Context(), q.handle.ID()); err != nil {
					q.Fatal(err)
				}
			}
			q.asks("approval 4: Deploy to production?")
			q.answer(builtin.Approval{Approved: true})
			if _, err := q.handle.Wait(q.Context()); err != nil {
				q.Error(err)
			}
		})
	})

	t.Run("no answer in time fails it", func(t *testing.T) {
		t.Parallel()
		asked(t, in, func(q *question) {
			q.answer(builtin.Approval{Approved: true, Expired: true})
			q.fails("no answer within 48h")
		})
	})

	t.Run("an unblock without an answer asks again", func(t *testing.T) {
		t.Parallel()
		asked(t, in, func(q *question) {
			if err := q.client.Unblock(q.Context(), q.handle.ID(), nil); err != nil {
				q.Fatal(err)
			}
			q.asks("approval: Deploy to production?")
		})
	})
}

func TestApproveValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   builtin.ApproveInput
		says string
	}{
		{builtin.ApproveInput{}, "message is missing"},
		{builtin.ApproveInput{Message: " \n"}, "message is missing"},
		{builtin.ApproveInput{Message: strings.Repeat("x", 2001)}, "message has 2001 bytes"},
		{builtin.ApproveInput{Message: "go?", Timeout: -1}, "negative"},
	} {
		if err := c.in.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.in, err, c.says)
		}
	}
	if err := (builtin.ApproveInput{Message: "go?"}).Validate(); err != nil {
		t.Error(err)
	}
}
