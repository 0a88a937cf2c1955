package view

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// Start is the time at which test jobs begin: the initial time of a bubble.
var Start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// At returns a time in seconds after Start.
func At(seconds float64) time.Time {
	return Start.Add(time.Duration(seconds * float64(time.Second)))
}

// ID returns the ID of the i-th task; ID(0) is the job's.
func ID(i int) task.ID {
	var id task.ID
	binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
	return id
}

// Job is a test job: a store and an engine that act on request only.
type Job struct {
	JobTasks
	Needs map[string][]string
}

// JobOf returns a job of tasks such as "clean < fetch load": clean needs both.
func JobOf(tasks ...string) *Job {
	j := &Job{Needs: make(map[string][]string)}
	j.ID, j.Name, j.State, j.CreatedAt = ID(0), "nightly-report", task.JobRunning, Start
	for i, text := range tasks {
		name, needs, _ := strings.Cut(text, "<")
		name = strings.TrimSpace(name)
		t := weaver.TaskInfo{
			ID: ID(i + 1), JobID: j.ID, Node: name, Type: "weaver.exec.run.v1", MaxAttempts: 5,
			State: task.Ready, CreatedAt: Start, UpdatedAt: Start,
		}
		if list := strings.Fields(needs); len(list) > 0 {
			j.Needs[name] = list
			t.State, t.Waiting, t.RemainingDeps = task.Pending, task.WaitDeps, len(list)
		}
		j.Tasks = append(j.Tasks, t)
	}
	return j
}

// Snapshot returns a copy of the job's current state.
func (j *Job) Snapshot() JobTasks {
	st := j.JobTasks
	st.Tasks = slices.Clone(j.Tasks)
	return st
}

// Task returns a task by name.
func (j *Job) Task(name string) *weaver.TaskInfo {
	for i := range j.Tasks {
		if j.Tasks[i].Node == name {
			return &j.Tasks[i]
		}
	}
	panic("no task " + name)
}

// Head returns the header of an event of a task.
func (j *Job) Head(name string, at time.Time) event.Header {
	t := j.Task(name)
	return event.Header{At: at, Namespace: "default", TaskID: t.ID, TaskType: t.Type, JobID: j.ID, Node: name, AttemptNo: t.AttemptNo}
}

// Starts claims a task.
func (j *Job) Starts(name string, at time.Time) event.Event {
	t := j.Task(name)
	t.State, t.Waiting, t.StartedAt, t.FinishedAt = task.Running, task.WaitNone, at, time.Time{}
	t.AttemptNo++
	t.Epoch++
	t.UpdatedAt = at
	return event.TaskStarted{Header: j.Head(name, at)}
}

// ends has the fields common to every end of an attempt.
func (j *Job) ends(name string, s task.State, at time.Time) (h event.Header, took time.Duration) {
	t := j.Task(name)
	t.State, t.UpdatedAt = s, at
	t.AttemptCount++
	if s.Terminal() {
		t.FinishedAt = at
	}
	return j.Head(name, at), at.Sub(t.StartedAt)
}

// Succeeds ends an attempt.
func (j *Job) Succeeds(name string, at time.Time) event.Event {
	h, took := j.ends(name, task.Succeeded, at)
	j.Task(name).Error = nil
	for _, t := range j.Tasks {
		if slices.Contains(j.Needs[t.Node], name) {
			if other := j.Task(t.Node); other.State == task.Pending && other.RemainingDeps > 0 {
				if other.RemainingDeps--; other.RemainingDeps == 0 {
					other.State, other.Waiting = task.Ready, task.WaitNone
				}
			}
		}
	}
	return event.TaskSucceeded{Header: h, Duration: took}
}

// Fails fails a task and cancels its dependents.
func (j *Job) Fails(name, message string, at time.Time) event.Event {
	h, took := j.ends(name, task.Failed, at)
	e := task.Error{Kind: task.KindHandler, Message: message}
	j.Task(name).Error = &e
	j.cancelAfter(name, at)
	return event.TaskFailed{Header: h, Error: e, Duration: took}
}

func (j *Job) cancelAfter(name string, at time.Time) {
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if slices.Contains(j.Needs[t.Node], name) && !t.State.Terminal() {
			t.State, t.Waiting, t.FinishedAt, t.UpdatedAt = task.Cancelled, task.WaitNone, at, at
			t.Error = &task.Error{Kind: task.KindDependencyFailed, Message: fmt.Sprintf("needs task %s, which failed", name)}
			j.cancelAfter(t.Node, at)
		}
	}
}

// Retries ends an attempt before a retry.
func (j *Job) Retries(name, message string, delay time.Duration, at time.Time) event.Event {
	h, took := j.ends(name, task.Pending, at)
	e := task.Error{Kind: task.KindHandler, Message: message}
	t := j.Task(name)
	t.Error, t.Waiting, t.ReadyAt = &e, task.WaitRetry, at.Add(delay)
	return event.TaskRetrying{Header: h, Error: e, Delay: delay, Duration: took}
}

// Blocks makes a task wait for a person.
func (j *Job) Blocks(name, message string, at time.Time) event.Event {
	h, took := j.ends(name, task.Blocked, at)
	e := task.Error{Kind: task.KindHandler, Message: message}
	t := j.Task(name)
	t.Error, t.Waiting = &e, task.WaitManual
	return event.TaskBlocked{Header: h, Error: e, Duration: took}
}

// Prints returns a chunk of a task's standard output.
func (j *Job) Prints(name, block string) event.Event {
	return event.StreamChunk{Header: j.Head(name, Start), Stream: "stdout", Data: block}
}
