package store

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxTypeSchema is the maximum size in bytes of each JSON Schema of an AnnouncedType, and MaxTypeText
// that of its description.
const (
	MaxTypeSchema = 256 << 10
	MaxTypeText   = 4 << 10
)

// AnnouncedType is a task type that a worker describes to programs without its Go types.
type AnnouncedType struct {
	Name          string `json:"task_type"`
	SchemaVersion int    `json:"schema_version"`         // of its inputs, ≥ 1
	CodeVersion   int    `json:"code_version,omitempty"` // of its handler; 0 if unknown
	Description   string `json:"description,omitempty"`

	// Input and Output are JSON Schemas of at most MaxTypeSchema bytes, with sorted object keys. nil
	// means unknown: any value is allowed.
	Input  json.RawMessage `json:"input_schema,omitempty"`
	Output json.RawMessage `json:"output_schema,omitempty"`

	Defaults TypeDefaults  `json:"defaults"`
	Redact   []string      `json:"redact,omitempty"` // fields of its values that readers must hide: patterns, see task.New
	Expire   []task.Expiry `json:"expire,omitempty"` // fields of its input with a limited retention

	AnnouncedAt time.Time `json:"announced_at,omitzero"`
	AnnouncedBy string    `json:"announced_by,omitempty"` // worker that announced it
}

// TypeDefaults holds the default options for tasks of a type; see the fields of task.New.
type TypeDefaults struct {
	Queue         string        `json:"queue"`
	Priority      int           `json:"priority"`
	MaxAttempts   int           `json:"max_attempts"`
	MaxRepairs    int           `json:"max_repairs"`
	MaxNoProgress int           `json:"max_no_progress,omitempty"`
	MaxCost       int64         `json:"max_cost,omitempty"`
	Backoff       time.Duration `json:"backoff_ns"`
	BackoffMax    time.Duration `json:"backoff_max_ns"`
	Timeout       time.Duration `json:"timeout_ns,omitempty"`
	ExpireAfter   time.Duration `json:"expire_after_ns,omitempty"`

	task.Options

	Labels   map[string]string `json:"labels,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}
