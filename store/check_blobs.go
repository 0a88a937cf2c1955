package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// blobs checks that every blob named by a value or artifact exists and stays, and that every other
// blob does not (I15). A part does not show this (CheckBlob). The output kept for a join is not in a
// snapshot, so a blob may stay that no visible row names.
func (c *checker) blobs() {
	states := make(map[task.ID]task.BlobState, len(c.Blobs))
	for _, b := range c.Blobs {
		states[b.ID] = b.State
	}
	named := map[task.ID]bool{}
	names := func(t *task.Task, what string, b task.Blob) {
		named[b.ID] = true
		if states[b.ID] != task.BlobLive {
			c.task("I15", t, "its %s is the blob %v, which is %q", what, b.ID, states[b.ID])
		}
	}
	value := func(t *task.Task, what string, raw json.RawMessage) {
		if b, ok := task.BlobOf(raw); ok {
			names(t, what, b)
		}
	}
	joins := slices.ContainsFunc(c.Chores, func(ch ChoreRow) bool { return ch.Kind == ChoreEnqueue }) // drafts may name blobs
	for i := range c.Tasks {
		t := &c.Tasks[i]
		joins = joins || t.Join != task.JoinNone
		value(t, "input", t.Input)
		value(t, "output", t.Output)
		for _, s := range c.stepsOf[t.ID] {
			value(t, "step "+s.Name, s.Value)
		}
	}
	for _, a := range c.Artifacts {
		t, ok := c.byID[a.TaskID]
		if !ok {
			c.report("I15", a.ID.String(), "artifact %v is of the task %v, which does not exist", a.ID, a.TaskID)
			continue
		}
		if len(a.LinkValue) == 0 {
			names(t, "artifact "+a.Name, a.Blob)
		}
	}
	for _, b := range c.Blobs {
		if b.State == task.BlobLive && !named[b.ID] && !joins && !c.partial {
			c.report("I15", b.ID.String(), "blob %v is live, and nothing names it", b.ID)
		}
	}
}

// CheckBlob checks that the state of a blob agrees with its references (I15), for a store with
// CanListBlobs.
func CheckBlob(u *BlobUse) []Violation {
	switch {
	case u.State == task.BlobLive && u.Refs == 0:
		return []Violation{{"I15", u.ID.String(), fmt.Sprintf("blob %v is live, and nothing refers to it: its bytes would stay for ever", u.ID)}}
	case u.State != task.BlobLive && u.Refs > 0:
		return []Violation{{"I15", u.ID.String(), fmt.Sprintf("blob %v is %s, and is referred to (%d): a collector would delete bytes that are needed", u.ID, u.State, u.Refs)}}
	}
	return nil
}
