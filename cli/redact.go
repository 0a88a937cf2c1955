package cli

import (
	"context"

	"github.com/goweaver/weaver"
	redaction "github.com/goweaver/weaver/internal/redact"
)

// What this program shows of tasks is masked as the tasks say (docs/privacy.md). Verbs
// that go on with a value read it with the client itself.

// Get reads a task as it is shown.
func (c clientReader) Get(ctx context.Context, id weaver.TaskID) (weaver.TaskInfo, error) {
	t, err := c.Client.Get(ctx, id)
	redaction.Task(&t)
	return t, err
}

// List reads tasks as they are shown.
func (c clientReader) List(ctx context.Context, f weaver.Filter) ([]weaver.TaskInfo, string, error) {
	list, next, err := c.Client.List(ctx, f)
	redaction.Tasks(list)
	return list, next, err
}

// JobTasks reads the tasks of a job as they are shown.
func (c clientReader) JobTasks(ctx context.Context, id weaver.JobID) ([]weaver.TaskInfo, error) {
	list, err := c.Client.JobTasks(ctx, id)
	redaction.Tasks(list)
	return list, err
}

// History reads what is recorded about a task as it is shown.
func (c clientReader) History(ctx context.Context, id weaver.TaskID) (weaver.History, error) {
	h, err := c.Client.History(ctx, id)
	redaction.History(&h)
	return h, err
}

// Search reads tasks as they are shown.
func (c clientReader) Search(ctx context.Context, q weaver.Query) (weaver.SearchPage, error) {
	page, err := c.Client.Search(ctx, q)
	redaction.Tasks(page.Items)
	return page, err
}
