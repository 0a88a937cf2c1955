package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkpoints holds the task's checkpoints as far as this attempt knows them: the ones it saved and, from the first
// read on, those of earlier attempts.
type checkpoints struct {
	saving sync.Mutex // held while one is written or all are read
	read   bool
	values map[string]json.RawMessage
}

// Checkpoint replaces the value that the task keeps under a name. When it returns nil the value is durable. It needs
// a valid lease, as a step does, and may be called inside a step.
func (a *Attempt) Checkpoint(ctx context.Context, name string, value json.RawMessage) error {
	if a.leadsToUndos(ctx) {
		return nil
	}
	if err := a.checkCheckpoint(ctx, name); err != nil {
		return err
	}
	if err := a.env.checkInline("checkpoint "+fmt.Sprintf("%q", name), len(value)); err != nil {
		return a.failFatally(err)
	}
	a.checkpoints.saving.Lock()
	defer a.checkpoints.saving.Unlock()
	res, err := a.record(ctx, store.Record{Checkpoint: &task.Checkpoint{Name: name, Value: value}})
	if err != nil {
		return err
	}
	if !res.Same {
		a.recordedNew()
	}
	a.keep(name, value)
	return nil
}

// LoadCheckpoint returns the value that the task keeps under a name, or nil.
func (a *Attempt) LoadCheckpoint(ctx context.Context, name string) (json.RawMessage, error) {
	ctx = a.readContext(ctx)
	if err := a.checkCheckpoint(ctx, name); err != nil {
		return nil, err
	}
	c := &a.checkpoints
	c.saving.Lock()
	defer c.saving.Unlock()
	if _, known := c.values[name]; !known && !c.read && (a.task.AttemptNo > 1 || a.of != nil) {
		if err := a.readCheckpoints(ctx); err != nil {
			return nil, err
		}
	}
	value := c.values[name]
	if err := seal.Failure(value); err != nil {
		return nil, a.failFatally(Unreadable(fmt.Sprintf("checkpoint %q", name), InStep(ctx), err))
	}
	return value, nil
}

// readCheckpoints reads the checkpoints of earlier attempts. It retries after store errors for as long as the lease
// is valid.
func (a *Attempt) readCheckpoints(ctx context.Context) error {
	pause := 50 * time.Millisecond
	for {
		h, err := a.env.Store.History(ctx, a.env.Namespace, a.subject())
		if err == nil {
			for _, c := range h.Checkpoints {
				if _, newer := a.checkpoints.values[c.Name]; !newer {
					a.keep(c.Name, c.Value)
				}
			}
			a.checkpoints.read = true
			return nil
		}
		a.env.repeats.warn(a.logger(), "read the checkpoints", err, "retry_in", pause)
		wait(a.scope(ctx), pause, nil)
		if ended := a.checkValidity(ctx); ended != nil {
			return ended
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (a *Attempt) keep(name string, value json.RawMessage) {
	if a.checkpoints.values == nil {
		a.checkpoints.values = make(map[string]json.RawMessage)
	}
	a.checkpoints.values[name] = value
}

// checkCheckpoint returns an error if no checkpoint may be saved or loaded now.
func (a *Attempt) checkCheckpoint(ctx context.Context, name string) error {
	if name == "" {
		return a.failFatally(errors.New("a checkpoint needs a name: its value is kept under it"))
	}
	if err := checkStepName(name); err != nil {
		return a.failFatally(fmt.Errorf("checkpoint: %w", err))
	}
	a.mu.Lock()
	over, fatal, suspended := a.over, a.fatal, a.suspended
	a.mu.Unlock()
	switch {
	case over:
		return fmt.Errorf("checkpoint %q: %w", name, ErrAttemptOver)
	case fatal != nil:
		return fatal
	case suspended && InStep(ctx) == "":
		return ErrSuspended
	}
	return a.checkValidity(ctx)
}
