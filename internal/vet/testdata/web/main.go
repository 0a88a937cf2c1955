// Command web enqueues.
package main

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/vet/testdata/tasks"
)

func main() {
	var c *weaver.Client
	_, _ = tasks.Handled.Enqueue(context.Background(), c, 1)
	_, _ = tasks.Enqueued.Enqueue(context.Background(), c, 1)
	_, _ = c.EnqueueTasks(context.Background(), weaver.NewDraft("vet.test.named.v1", nil), tasks.Orphan.With(1), tasks.Both().Out.With(2))
}
