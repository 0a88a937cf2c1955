package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The input of a task that cannot be read is repaired by a child of it (ADR 0033), of
// the type [task.RepairType], in a queue of the task's type. The child replaces the
// input by a command that compares the one before, and so does a person: of two that
// began with the same input the later one is refused.

// Lane reports whether a claim asks for the tasks of a type that wait in a queue.
func Lane(req *store.ClaimRequest, queue, taskType string) bool {
	if _, known := req.Types[taskType]; !known {
		return false
	}
	if only, bound := req.Bound[taskType]; bound && !slices.Contains(only, queue) {
		return false
	}
	return req.Queues == nil || req.Queues[queue] > 0
}

// Holder is a task whose input is to be replaced.
type Holder struct {
	State   task.State
	Waiting task.Waiting
	Hash    string // of the input that it has
	Schema  int    // version of that
}

// CheckReplace refuses to replace the input of a task that neither is blocked nor
// waits for a repair, and one whose input is not the one that was seen. existing says
// that the task has the new input already.
func CheckReplace(cmd *store.ReplaceInput, h Holder) (existing bool, err error) {
	if len(cmd.Input) == 0 || cmd.SchemaVersion < 1 {
		return false, fmt.Errorf("task %v: the new input has %d bytes and the schema version %d", cmd.Task, len(cmd.Input), cmd.SchemaVersion)
	}
	byHand, repairing := cmd.Repair.IsZero(), h.State == task.Pending && h.Waiting == task.WaitRepair
	if h.Waiting == task.WaitUndo {
		return false, refuse(cmd.Task, h.State, inUndo)
	}
	switch same := h.Hash == task.PayloadHash(cmd.Input) && h.Schema == cmd.SchemaVersion; {
	case same && h.State == task.Blocked && byHand:
		return false, refuse(cmd.Task, h.State, "and has this input already: unblock it to run it again with it")
	case same:
		return true, nil
	case !byHand && !repairing:
		return false, refuse(cmd.Task, h.State, "and does not wait for a repair any more")
	case !repairing && h.State != task.Blocked:
		return false, refuse(cmd.Task, h.State, "only blocked tasks, and those that wait for a repair, take another input: a rerun can have one")
	case cmd.OldHash != "" && cmd.OldHash != h.Hash, cmd.OldSchema != 0 && cmd.OldSchema != h.Schema:
		return false, fmt.Errorf("task %v has another input by now, sha256 %s of schema version %d, not %s of %d: %w", cmd.Task, h.Hash, h.Schema, cmd.OldHash, cmd.OldSchema, store.ErrChanged)
	}
	return false, nil
}

// RepairVerb is the verb of a replaced input in the audit.
const RepairVerb = "repair"

// RepairNote is the audit of a replaced input, with what it replaced.
func RepairNote(cmd *store.ReplaceInput, h Holder) store.Audit {
	a := cmd.Audit
	text := fmt.Sprintf("input %s (schema version %d) → %s (%d)", h.Hash, h.Schema, task.PayloadHash(cmd.Input), cmd.SchemaVersion)
	if a.Reason != "" {
		text = a.Reason + "; " + text
	}
	a.Reason = text
	return a
}

// RepairNotNeeded is how a repair ends, or why it is asked to, whose task got another
// input. Like any repair that does not succeed it counts for nothing in its job.
func RepairNotNeeded() *task.Error {
	return &task.Error{Kind: task.KindNotNeeded, Message: "its task got another input"}
}

// ReplaceBlobs are the blobs that a command names.
func ReplaceBlobs(cmd *store.ReplaceInput) []task.Blob { return InputBlobs(cmd.Input) }

// InputBlobs returns the blob that an input names.
func InputBlobs(input json.RawMessage) []task.Blob { return appendBlob(nil, input) }
