package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// manyVerb describes a bulk verb.
type manyVerb struct {
	name   string
	states []State // in which it can change a task
	force  bool    // it has the option Force
	undoes bool    // it undoes the effects of tasks before it ends them

	byDefault Filter // states and error kinds for a filter without states; empty: all states
	keep      bool   // it has the options KeepSteps and Cleanups
	command   func(*operateSettings, TaskID) store.Command
	done      func(*store.CommandResult) bool                                                // reports whether a refused task already has the verb's result
	refuse    func(*operateSettings, *TaskInfo) error                                        // returns a refusal known in advance; may be nil
	foresee   func(f *foresight, ctx context.Context, h *store.History) (refused, err error) // like refuse, for a dry run with the task's history
	twice     bool                                                                           // retry refused tasks once
}

// with adapts the verb to the options of a call: with Cleanups a retry applies to tasks whose undo was
// given up, is blocked or waits.
func (v *manyVerb) with(s *operateSettings) {
	if s.cleanups {
		v.states, v.byDefault = []State{StateFailed, StatePending, StateBlocked}, Filter{States: []State{StateFailed}, ErrorKinds: []task.ErrorKind{task.KindUndoFailed}}
	}
}

// narrow restricts a filter to tasks that the verb can change.
func (v *manyVerb) narrow(f *Filter) error {
	for _, state := range f.States {
		if !slices.Contains(v.states, state) {
			return fmt.Errorf("%w: a task that is %s cannot be changed so; the states are %v", ErrInvalidOption, state, v.states)
		}
	}
	if len(f.States) > 0 {
		return nil
	}
	if f.States = v.states; len(v.byDefault.States) > 0 {
		f.States = v.byDefault.States
		if len(f.ErrorKinds) == 0 {
			f.ErrorKinds = v.byDefault.ErrorKinds
		}
	}
	return nil
}

func retryVerb() *manyVerb {
	return &manyVerb{
		name: "retry", states: []State{StateFailed, StateCancelled}, keep: true,
		command: func(s *operateSettings, id TaskID) store.Command {
			return store.RetryTask{Audit: s.audit, Seen: s.seen, Task: id, KeepSteps: s.keepSteps, Cleanup: s.cleanups}
		},
		done:    func(r *store.CommandResult) bool { return r.State != StateFailed && r.State != StateCancelled },
		foresee: (*foresight).retry,
		twice:   true,
	}
}

func cancelVerb() *manyVerb {
	return &manyVerb{
		name: "cancel", states: []State{StatePending, StateReady, StateRunning, StateBlocked}, force: true, undoes: true,
		command: func(s *operateSettings, id TaskID) store.Command {
			return store.CancelTask{Audit: s.audit, Seen: s.seen, Task: id, Force: s.force, Spare: true}
		},
		done: func(r *store.CommandResult) bool { return r.State.Terminal() },
		refuse: func(s *operateSettings, t *TaskInfo) error {
			if !s.force || t.Undo == nil {
				return nil
			}
			return fmt.Errorf("task %s is %s, and is being undone: give that up with weaver task cancel %[1]s --abandon-undo (AbandonUndo): %[3]w", t.ID, t.State, ErrState)
		},
	}
}

func deleteVerb() *manyVerb {
	return &manyVerb{
		name: "delete", states: []State{StateSucceeded, StateFailed, StateCancelled},
		command: func(s *operateSettings, id TaskID) store.Command {
			return store.DeleteTask{Audit: s.audit, Seen: s.seen, Task: id}
		},
		done:    func(r *store.CommandResult) bool { return errors.Is(r.Err, ErrNotFound) },
		twice:   true, // children of a task that is also deleted
		foresee: (*foresight).delete,
		refuse: func(_ *operateSettings, t *TaskInfo) error {
			if t.Undo.Stands() {
				return fmt.Errorf("task %s is %s, but its undo was given up: accept that with weaver task cancel %[1]s --abandon-undo (AbandonUndo): %[3]w", t.ID, t.State, ErrState)
			}
			if t.JobID.IsZero() {
				return nil
			}
			return fmt.Errorf("task %s belongs to job %s, whose tasks stay with it: %w", t.ID, t.JobID, ErrState)
		},
	}
}

// unblockVerb resumes tasks that do not wait for an answer.
func unblockVerb() *manyVerb {
	return &manyVerb{
		name: "unblock", states: []State{StateBlocked},
		command: func(s *operateSettings, id TaskID) store.Command {
			return store.UnblockTask{Audit: s.audit, Seen: s.seen, Task: id}
		},
		done: func(r *store.CommandResult) bool { return r.Err != nil && r.State != "" && r.State != StateBlocked },
		refuse: func(_ *operateSettings, t *TaskInfo) error {
			if t.Error == nil || t.Error.Ask == "" {
				return nil
			}
			return fmt.Errorf("task %s waits for an answer to %q: it is unblocked by itself, with that: %w", t.ID, t.Error.Ask, ErrState)
		},
	}
}
