package weaver_test

import (
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestTaskErrorSaysNothingTwice(t *testing.T) {
	const id = "01JCZ000000000000000000000"
	parsed, err := weaver.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]weaver.TaskError{
		"failed after 5 attempts: handler_error: boom":           {State: weaver.StateFailed, Attempts: 5, Kind: task.KindHandler, Message: "boom"},
		"failed after 1 attempt: timeout: the attempt timed out": {State: weaver.StateFailed, Attempts: 1, Kind: task.KindTimeout, Message: "the attempt timed out"},
		"failed after 2 attempts: panic: index out of range":     {State: weaver.StateFailed, Attempts: 2, Kind: task.KindPanic, Message: "panic: index out of range"},
		"cancelled after 0 attempts: x":                          {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled: x"},
		"cancelled after 0 attempts: by ann: x":                  {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled by ann: x"},
		"cancelled after 0 attempts":                             {State: weaver.StateCancelled, Kind: task.KindCancelled, Message: "cancelled"},
		"cancelled after 0 attempts: deadline: it has passed":    {State: weaver.StateCancelled, Kind: task.KindDeadline, Message: "it has passed"},
		"failed after 3 attempts":                                {State: weaver.StateFailed, Attempts: 3},
	} {
		e.ID, e.Type = parsed, "a.b.c.v1"
		if got := e.Error(); got != "task "+id+" (a.b.c.v1) "+want {
			t.Errorf("%q, want …%q", got, want)
		}
	}
}
