package wire

import (
	"encoding/json"
	"time"
)

// VerbRequest is what all verbs take.
type VerbRequest struct {
	Reason string `json:"reason,omitempty"` // for the audit
}

// CancelRequest is the cancel of a task.
type CancelRequest struct {
	VerbRequest
	Force       bool `json:"force,omitempty"`
	AbandonUndo bool `json:"abandon_undo,omitempty"` // gives up what is being undone, or accepts that it was given up
}

// RetryRequest is the retry of a task or job.
type RetryRequest struct {
	VerbRequest
	AddAttempts int   `json:"add_attempts,omitempty"`
	AddCost     int64 `json:"add_cost,omitempty"`   // micro-units
	KeepSteps   bool  `json:"keep_steps,omitempty"` // although a cleanup ran: the completed steps still stand
}

// TaskRetryRequest is the retry of one task.
type TaskRetryRequest struct {
	RetryRequest
	Cleanup  bool     `json:"cleanup,omitempty"` // try its undo again, alone
	SkipUndo []string `json:"skip,omitempty"`    // with cleanup and a reason: steps that are not undone
}

// RerunRequest is the rerun of a task.
type RerunRequest struct {
	VerbRequest
	From           string          `json:"from,omitempty"`       // a step: those before it keep their values
	KeepSteps      bool            `json:"keep_steps,omitempty"` // with from: although a cleanup ran
	Input          json.RawMessage `json:"input,omitempty"`      // instead of the task's own
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	With           *DraftOptions   `json:"with,omitempty"` // options instead of the task's own
}

// UnblockRequest is the unblock of a task.
type UnblockRequest struct {
	VerbRequest
	Input json.RawMessage `json:"input,omitempty"`
	Ask   string          `json:"ask,omitempty"` // only if it waits with this question
}

// SignalRequest is a signal to a task.
type SignalRequest struct {
	VerbRequest
	Name    string          `json:"name"`          // what the task waits for
	Key     string          `json:"key,omitempty"` // sent again under its key it has no other effect; left out: a new one
	Payload json.RawMessage `json:"payload"`       // what the wait returns
}

// RepairRequest replaces the input of a blocked task.
type RepairRequest struct {
	VerbRequest
	Input json.RawMessage `json:"input"`
}

// RescheduleRequest sets the time at which a task starts.
type RescheduleRequest struct {
	VerbRequest
	At time.Time `json:"at,omitzero"` // left out: now
}
