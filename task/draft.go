package task

import (
	"encoding/json"
	"time"
)

// Draft is a task that is not stored yet, as a plain value. A Decider describes the children of a task with drafts.
// Zero fields take the defaults of the task type, as registered in the deciding worker.
type Draft struct {
	Type  string          `json:"task_type"`
	Node  string          `json:"node,omitempty"`  // node name; default "decompose[0]", "decompose[1]", …
	Input json.RawMessage `json:"input,omitempty"` // encoded for the task type; empty: null

	Queue       string        `json:"queue,omitempty"`
	Priority    int           `json:"priority,omitempty"`
	Delay       time.Duration `json:"delay_ns,omitempty"`
	At          time.Time     `json:"at,omitzero"` // excludes Delay
	ExpireAfter time.Duration `json:"expire_after_ns,omitempty"`

	MaxAttempts   int           `json:"max_attempts,omitempty"`
	MaxCost       int64         `json:"max_cost,omitempty"`
	MaxNoProgress int           `json:"max_no_progress,omitempty"`
	Backoff       time.Duration `json:"backoff_ns,omitempty"`
	BackoffMax    time.Duration `json:"backoff_max_ns,omitempty"`
	Timeout       time.Duration `json:"timeout_ns,omitempty"`

	Options

	ConcurrencyKey   string `json:"concurrency_key,omitempty"`
	ConcurrencyLimit int    `json:"concurrency_limit,omitempty"` // default 1

	Labels   map[string]string `json:"labels,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}
