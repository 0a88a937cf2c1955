package soak_test

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// unservedType is the type of tasks that no worker knows. They use the keys of other tasks, come first by priority
// and age, and never run.
var unservedType = weaver.Define[order, receipt]("systemtest.storm.unserved.v1")

// servedTypes returns the types that workers run.
func servedTypes() []string {
	return []string{workType.Name(), childType.Name(), nodeType.Name()}
}

const (
	unservedAck  = -2 // in place of task numbers
	unservedEach = 2  // per key
)

// enqueueUnserved enqueues the tasks that no worker knows, unless they exist.
func (p *producer) enqueueUnserved(ctx context.Context) error {
	var drafts []weaver.Draft
	for k := range keys {
		for i := range unservedEach {
			drafts = append(drafts, unservedType.With(order{N: i, Kind: "unserved"},
				weaver.IdempotencyKey(fmt.Sprintf("unserved-%d-%d", k, i)), weaver.Queue(fmt.Sprint("queue-", i)),
				weaver.Priority(1), weaver.ConcurrencyKey(fmt.Sprint("key-", k), limitOfKey(k))))
		}
	}
	got, err := p.client.EnqueueTasks(ctx, drafts...)
	if err != nil {
		return err
	}
	for _, e := range got {
		if _, err := fmt.Fprintf(p.acks, "%d %s\n", unservedAck, e.ID); err != nil {
			return err
		}
	}
	return nil
}

// unserved checks that the tasks that no worker knows still wait and were never claimed.
func (e *evidence) unserved(all []*records) {
	n := 0
	for _, r := range all {
		if r.Type != unservedType.Name() {
			continue
		}
		n++
		if r.State != task.Ready && r.State != task.Pending || r.AttemptNo != 0 || len(r.lines) > 0 {
			e.report("unserved", "task %s, which no worker knows, is %s after %d attempts and %d lines", r.ID, r.State, r.AttemptNo, len(r.lines))
		}
	}
	if want := keys * unservedEach; n != want {
		e.report("unserved", "there are %d tasks that no worker knows, want %d", n, want)
	}
}
