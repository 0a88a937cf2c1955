package weavertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

// forever is longer than any test waits. Idle time costs nothing, so its end comes at once when nothing else can
// happen.
const forever = 100 * 365 * 24 * time.Hour

var errForever = errors.New("a hundred years have passed")

// endlessError reports that an operation would never end.
type endlessError struct{ what string }

// Error implements error.
func (e *endlessError) Error() string {
	return e.what + " would never end: a hundred years later it had not"
}

// requireEnd fails the test if its wait would never end.
func requireEnd(t *testing.T, err error) {
	t.Helper()
	if endless, ok := errors.AsType[*endlessError](err); ok {
		t.Fatalf("weavertest: %v", endless)
	}
}

// ended returns the error of a wait for a task, with the state of the task if the wait would never end.
func (e *Env) ended(ctx context.Context, id weaver.TaskID, err error) error {
	if !errors.Is(err, errForever) {
		return err
	}
	info, err := e.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		return err
	}
	return &endlessError{fmt.Sprintf("task %s (%s), which is %s,", id, info.Type, standing(info))}
}

// jobEnded is ended for a job.
func (e *Env) jobEnded(ctx context.Context, id weaver.JobID, err error) error {
	if !errors.Is(err, errForever) {
		return err
	}
	job, err := e.Job(context.WithoutCancel(ctx), id)
	if err != nil {
		return err
	}
	tasks, err := e.JobTasks(context.WithoutCancel(ctx), id)
	if err != nil {
		return err
	}
	var where []string
	for _, task := range tasks {
		if task.State.Terminal() {
			continue
		}
		text := task.Node + " is " + standing(task)
		if !e.handles(task.Type) {
			text += fmt.Sprintf(", and its type %s has no handler here (give weavertest.New one)", task.Type)
		}
		where = append(where, text)
	}
	return &endlessError{fmt.Sprintf("job %s (%s), of which %s,", id, job.Name, strings.Join(where, ", "))}
}

// standing describes the state of a task and its reason.
func standing(info weaver.TaskInfo) string {
	if info.Waiting == "" {
		return fmt.Sprintf("%s in queue %q", info.State, info.Queue)
	}
	return fmt.Sprintf("%s (%s) in queue %q", info.State, info.Waiting, info.Queue)
}

// unmet lists the tasks of a job that did not succeed, with their reasons.
func unmet(res weaver.JobResult) string {
	var list []string
	for _, tasks := range [][]weaver.JobTask{res.Failed, res.Incomplete} {
		for _, n := range tasks {
			text := fmt.Sprintf("%s is %s", n.Name, n.State)
			if n.Reason != "" {
				text += ": " + n.Reason
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, "; ")
}
