package wire

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/task"
)

// Task is a task as the API returns it.
type Task struct {
	task.Task

	// PayloadsHidden: it has values, which the principal may not read.
	PayloadsHidden bool `json:"payloads_hidden,omitempty"`
}

// ETag names the version of a task, for If-Match.
func ETag(epoch int64, updated time.Time) string {
	return fmt.Sprintf(`"%d-%d"`, epoch, updated.UnixMicro())
}

// Page is one page of a list, newest first.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // as ?after= of the next page; left out at the end
}

// List is a complete list.
type List[T any] struct {
	Items []T `json:"items"`
}
