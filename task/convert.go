package task

import (
	"bytes"
	"maps"
	"slices"
)

// Task returns the task as first stored: the fields of the draft, without state, times and counters. It shares no
// memory with the draft.
func (n *New) Task() Task {
	return Task{
		ID: n.ID, Node: n.Node, Type: n.Type, Queue: n.Queue, Priority: n.Priority,
		Input: bytes.Clone(n.Input), SchemaVersion: n.SchemaVersion,
		MaxAttempts: n.MaxAttempts, MaxRepairs: n.MaxRepairs, MaxCost: n.MaxCost, MaxNoProgress: n.MaxNoProgress,
		Backoff: n.Backoff, BackoffMax: n.BackoffMax, Timeout: n.Timeout,
		Options: n.Options, AllowFailure: n.AllowFailure,
		IdempotencyKey: n.IdempotencyKey, ConcurrencyKey: n.ConcurrencyKey, ConcurrencyLimit: n.ConcurrencyLimit,
		Labels: maps.Clone(n.Labels), Metadata: maps.Clone(n.Metadata), Redact: slices.Clone(n.Redact), Expire: slices.Clone(n.Expire),
		UndoOf: n.UndoOf,
	}
}

// Again returns a draft without an ID that enqueues the task again. It omits the fields of one enqueue: due time,
// deadline, idempotency key, place in a job, and the undone task. It shares no memory with the task.
func (t *Task) Again() New {
	return New{
		Type: t.Type, Queue: t.Queue, Priority: t.Priority,
		Input: bytes.Clone(t.Input), SchemaVersion: t.SchemaVersion,
		MaxAttempts: t.MaxAttempts, MaxRepairs: t.MaxRepairs, MaxCost: t.MaxCost, MaxNoProgress: t.MaxNoProgress,
		Backoff: t.Backoff, BackoffMax: t.BackoffMax, Timeout: t.Timeout,
		Options:        t.Options,
		ConcurrencyKey: t.ConcurrencyKey, ConcurrencyLimit: t.ConcurrencyLimit,
		Labels: maps.Clone(t.Labels), Metadata: maps.Clone(t.Metadata), Redact: slices.Clone(t.Redact), Expire: slices.Clone(t.Expire),
	}
}
