package task

import (
	"encoding/json"
	"time"
)

// Draft is a task that is not stored yet, as a plain value: a Decider names the
// children of a task with it. Zero fields are those of the task type, as the worker
// that decides knows it.
type Draft struct {
	Type  string          `json:"task_type"`
	Node  string          `json:"node,omitempty"`  // its name; "": "decompose[0]" and so on
	Input json.RawMessage `json:"input,omitempty"` // as the type has it; none: null

	Queue       string        `json:"queue,omitempty"`
	Priority    int           `json:"priority,omitempty"`
	Delay       time.Duration `json:"delay_ns,omitempty"`
	At          time.Time     `json:"at,omitzero"` // instead of Delay
	ExpireAfter time.Duration `json:"expire_after_ns,omitempty"`

	MaxAttempts   int           `json:"max_attempts,omitempty"`
	MaxCost       int64         `json:"max_cost,omitempty"`
	MaxNoProgress int           `json:"max_no_progress,omitempty"`
	Backoff       time.Duration `json:"backoff_ns,omitempty"`
	BackoffMax    time.Duration `json:"backoff_max_ns,omitempty"`
	Timeout       time.Duration `json:"timeout_ns,omitempty"`

	Options

	ConcurrencyKey   string `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty"` // 0: 1

	Labels   map[string]string `json:"labels,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}
