package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/goweaver/weaver/task"
)

// Inject completes a task that is about to be stored, with what ctx carries.
type Inject func(ctx context.Context, n *task.New)

// Stored is notified of tasks that were stored.
type Stored func(ctx context.Context, tasks []task.New)

// LogAttrs returns what the lines of a logger made with ctx have besides.
type LogAttrs func(ctx context.Context) []slog.Attr

// Enter notes the context that the innermost handler was given: for the children
// that its attempt stores when it has returned.
func Enter(ctx context.Context) {
	if a, err := From(ctx); err == nil {
		a.mu.Lock()
		a.inner = ctx
		a.mu.Unlock()
	}
}

// innermost returns the context that Enter noted, or that of the attempt.
func (a *Attempt) innermost() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inner != nil {
		return a.inner
	}
	return a.ctx
}

// Inject returns what completes the tasks that the attempt stores; nil: nothing does.
func (a *Attempt) Inject() Inject { return a.env.Inject }

// Stored returns what is notified of the tasks that the attempt stored; nil: nothing is.
func (a *Attempt) Stored() Stored { return a.env.Stored }

// stored says that tasks were stored.
func (a *Attempt) stored(ctx context.Context, tasks []task.New) {
	if a.env.Stored != nil && len(tasks) > 0 {
		a.env.Stored(ctx, tasks)
	}
}

// injectInto completes tasks that the attempt is about to store: with what the engine
// masks, and by plug-ins.
func (a *Attempt) injectInto(ctx context.Context, tasks []task.New) {
	for i := range tasks {
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

// Redact returns the engine's own patterns of what is masked.
func (a *Attempt) Redact() []string { return a.env.Redact }

// maxNotes is how many notes an attempt may have.
const maxNotes = 16

// Note keeps a text with the attempt. It is written with the end of the attempt.
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
