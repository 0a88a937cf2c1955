package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// An unreadable input of a task is repaired by a child of the task (ADR 0033). The child has
// the type [task.RepairType] and the repair queue of the task's type. It replaces the input by
// a command that compares the previous input. An operator uses the same command: of two
// replacements of the same input the later one is refused.

// Lane reports whether a claim asks for tasks of a type in a queue.
func Lane(req *store.ClaimRequest, queue, taskType string) bool {
	if _, known := req.Types[taskType]; !known {
		return false
	}
	if only, bound := req.Bound[taskType]; bound && !slices.Contains(only, queue) {
		return false
	}
	return req.Queues == nil || req.Queues[queue] > 0
}

// Holder holds the fields of a task whose input is to be replaced.
type Holder struct {
	State   task.State
	Waiting task.Waiting
	Hash    string // of its current input
	Schema  int    // version of its current input
}

// CheckReplace refuses to replace the input of a task that is not blocked and does not wait
// for a repair. It refuses if the input differs from the input that was seen. existing reports
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

// RepairVerb is the audit verb of a replaced input.
const RepairVerb = "repair"

// RepairNote returns the audit of a replaced input, with the replaced hash and version.
func RepairNote(cmd *store.ReplaceInput, h Holder) store.Audit {
	a := cmd.Audit
	text := fmt.Sprintf("input %s (schema version %d) → %s (%d)", h.Hash, h.Schema, task.PayloadHash(cmd.Input), cmd.SchemaVersion)
	if a.Reason != "" {
		text = a.Reason + "; " + text
	}
	a.Reason = text
	return a
}

// RepairNotNeeded returns the failure of a repair whose task got another input. It does not
// count in its job, like any repair without success.
func RepairNotNeeded() *task.Error {
	return &task.Error{Kind: task.KindNotNeeded, Message: "its task got another input"}
}

// ReplaceBlobs returns the blobs that a command names.
func ReplaceBlobs(cmd *store.ReplaceInput) []task.Blob { return InputBlobs(cmd.Input) }

// InputBlobs returns the blob that an input names.
func InputBlobs(input json.RawMessage) []task.Blob { return appendBlob(nil, input) }
