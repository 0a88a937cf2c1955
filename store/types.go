package store

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// MaxTypeSchema is how many bytes each JSON Schema of an AnnouncedType may have, and
// MaxTypeText how many its description may have.
const (
	MaxTypeSchema = 256 << 10
	MaxTypeText   = 4 << 10
)

// AnnouncedType is a task type as a worker describes it to programs that do not have
// its Go types.
type AnnouncedType struct {
	Name          string `json:"task_type"`
	SchemaVersion int    `json:"schema_version"`         // of its inputs, ≥ 1
	CodeVersion   int    `json:"code_version,omitempty"` // of its handler; 0: that is not known
	Description   string `json:"description,omitempty"`

	// Input and Output are JSON Schemas, of MaxTypeSchema bytes at most, with the keys
	// of their objects in order. nil: none is known, and anything is allowed.
	Input  json.RawMessage `json:"input_schema,omitempty"`
	Output json.RawMessage `json:"output_schema,omitempty"`

	Defaults TypeDefaults  `json:"defaults"`
	Redact   []string      `json:"redact,omitempty"` // what readers do not show of its values: patterns, see task.New
	Expire   []task.Expiry `json:"expire,omitempty"` // fields of its input that are stored for a time

	AnnouncedAt time.Time `json:"announced_at,omitzero"`
	AnnouncedBy string    `json:"announced_by,omitempty"` // whose announcement this is
}

// TypeDefaults are the options that a task of a type has unless its enqueue says
// otherwise; see the fields of task.New.
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
