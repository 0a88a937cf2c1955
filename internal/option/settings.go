package option

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/task"
)

// Settings are the options of a task, after applying the options of its type and of its
// enqueue.
type Settings struct {
	Task task.New // without ID, type, input and needs, which the enqueue sets
	Errs []error

	Description string // of the type
}

// Defaults returns the settings of a task without options.
func Defaults() Settings {
	return Settings{Task: task.New{
		Queue:         task.DefaultQueue,
		SchemaVersion: 1,
		Priority:      task.DefaultPriority,
		MaxAttempts:   task.DefaultMaxAttempts,
		MaxRepairs:    task.DefaultMaxRepairs,
		Backoff:       task.DefaultBackoff,
		BackoffMax:    task.DefaultBackoffMax,
	}}
}

// Clone returns settings whose maps may be changed.
func (s Settings) Clone() Settings {
	s.Task.Labels = maps.Clone(s.Task.Labels)
	s.Task.Metadata = maps.Clone(s.Task.Metadata)
	s.Errs = slices.Clone(s.Errs)
	return s
}

// Problem records a mistake in an option.
func (s *Settings) Problem(format string, args ...any) {
	s.Errs = append(s.Errs, fmt.Errorf(format, args...))
}

// Func is an option. It implements weaver.Option.
type Func func(*Settings)

// ApplyType implements weaver.TypeOption.
func (f Func) ApplyType(s *Settings) { f(s) }

// ApplyEnqueue implements weaver.EnqueueOption.
func (f Func) ApplyEnqueue(s *Settings) { f(s) }
