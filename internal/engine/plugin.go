package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/goweaver/weaver/task"
)

// Inject completes a task that is about to be stored with data from ctx.
type Inject func(ctx context.Context, n *task.New)

// Stored is notified of tasks that were stored.
type Stored func(ctx context.Context, tasks []task.New)

// LogAttrs returns additional attributes for log lines with ctx.
type LogAttrs func(ctx context.Context) []slog.Attr

// Enter records the context of the innermost handler, for the children that its attempt stores after it returned.
func Enter(ctx context.Context) {
	if a, err := From(ctx); err == nil {
		a.mu.Lock()
		a.inner = ctx
		a.mu.Unlock()
	}
}

// innermost returns the context recorded by Enter, or that of the attempt.
func (a *Attempt) innermost() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inner != nil {
		return a.inner
	}
	return a.ctx
}

// Inject returns the function that completes the tasks stored by the attempt; may be nil.
func (a *Attempt) Inject() Inject { return a.env.Inject }

// Stored returns the function notified of the tasks stored by the attempt; may be nil.
func (a *Attempt) Stored() Stored { return a.env.Stored }

// stored reports that tasks were stored.
func (a *Attempt) stored(ctx context.Context, tasks []task.New) {
	if a.env.Stored != nil && len(tasks) > 0 {
		a.env.Stored(ctx, tasks)
	}
}

// injectInto completes tasks that the attempt is about to store: with the engine's mask patterns, and by plug-ins.
func (a *Attempt) injectInto(ctx context.Context, tasks []task.New) {
	key := a.task.ConcurrencyKey
	for i := range tasks {
		if key != "" && key == task.ParallelKey(a.task.JobID) && tasks[i].ConcurrencyKey == "" {
			tasks[i].ConcurrencyKey, tasks[i].ConcurrencyLimit = key, a.task.ConcurrencyLimit
		}
		for _, p := range a.env.Redact {
			if !slices.Contains(tasks[i].Redact, p) {
				tasks[i].Redact = append(slices.Clip(tasks[i].Redact), p)
			}
		}
		if a.env.Inject != nil {
			a.env.Inject(ctx, &tasks[i])
		}
	}
}

// Redact returns the engine's own mask patterns.
func (a *Attempt) Redact() []string { return a.env.Redact }

// maxNotes is the maximum number of notes of an attempt.
const maxNotes = 16

// Note stores a text with the attempt. It is written with the end of the attempt.
func (a *Attempt) Note(key, value string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return ErrAttemptOver
	}
	if _, known := a.notes[key]; !known && len(a.notes) >= maxNotes {
		return fmt.Errorf("note %.40q: an attempt has at most %d notes", key, maxNotes)
	}
	if a.notes == nil {
		a.notes = make(map[string]string)
	}
	a.notes[key] = value
	return nil
}

// notesNow returns a copy of the notes. The caller holds a.mu.
func (a *Attempt) notesNow() map[string]string { return maps.Clone(a.notes) }

// Earlier reads the attempts before this one, as they ended.
func (a *Attempt) Earlier(ctx context.Context) ([]task.Attempt, error) {
	if a.task.AttemptNo <= 1 {
		return nil, nil
	}
	h, err := a.env.Store.History(a.readContext(ctx), a.env.Namespace, a.task.ID)
	if err != nil {
		return nil, fmt.Errorf("read the earlier attempts of task %s: %w", a.task.ID, err)
	}
	return slices.DeleteFunc(h.Attempts, func(e task.Attempt) bool { return e.No >= a.task.AttemptNo }), nil
}
