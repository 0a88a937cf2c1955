package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// RepairType is the task type of repairs. A repair is a child of the task whose input it repairs.
const RepairType = "weaver.internal.repair_payload.v1"

// RepairQueue returns the queue of the repairs of a task type's inputs. Only workers with a Repair function of that
// type claim from it.
func RepairQueue(taskType string) string { return "repair:" + taskType }

// PayloadHash returns the SHA-256, in hex, of a stored payload. The hash does not depend on where the bytes are.
func PayloadHash(stored json.RawMessage) string {
	if b, large := BlobOf(stored); large {
		return b.SHA256
	}
	sum := sha256.Sum256(stored)
	return hex.EncodeToString(sum[:])
}

// Repair is the input of a repair task: it describes the input of the task's parent.
type Repair struct {
	Type       string `json:"task_type"`
	InputHash  string `json:"input_sha256"` // PayloadHash of the input
	Schema     int    `json:"schema_version"`
	Error      string `json:"error"`
	Path       string `json:"path,omitempty"` // of the field that does not fit, if known
	Hint       string `json:"hint,omitempty"`
	No         int    `json:"repair"` // 1, 2, … per task
	MaxRepairs int    `json:"max_repairs"`
}
