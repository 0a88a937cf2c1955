package weaver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// manyVerb is a verb of many tasks.
type manyVerb struct {
	name   string
	states []State // in which a task can be changed
	force  bool    // it has the option
	undoes bool    // what tasks left to undo is undone before it ends them

	byDefault Filter // states and kinds of errors of a filter without states; none: all states
	keep      bool   // it has the options KeepSteps and Cleanups
	command   func(*operateSettings, TaskID) store.Command
	done      func(*store.CommandResult) bool                                                // whether a task that was refused is as the verb would have it
	refuse    func(*operateSettings, *TaskInfo) error                                        // what is known to be refused; nil: nothing
	foresee   func(f *foresight, ctx context.Context, h *store.History) (refused, err error) // the same, in a dry run and from more of the task
	twice     bool                                                                           // what is refused is tried once more
}

// with has the options of a call change what the verb is for: with Cleanups a retry is for
// tasks whose undo was given up, is blocked or waits.
func (v *manyVerb) with(s *operateSettings) {
	if s.cleanups {
		v.states, v.byDefault = []State{StateFailed, StatePending, StateBlocked}, Filter{States: []State{StateFailed}, ErrorKinds: []task.ErrorKind{task.KindUndoFailed}}
	}
}

// narrow makes a filter select only tasks that the verb can change.
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
		twice:   true, // the children of a task that is deleted too
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

// unblockVerb lets tasks go on that wait for no answer.
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
