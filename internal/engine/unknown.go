package engine

import (
	"sync"

	"github.com/goweaver/weaver/task"
)

// NoteUnknown is the name of the note with the first unknown field.
const NoteUnknown = "weaver.unknown_field"

// UnknownFields returns the engine's setting.
func (a *Attempt) UnknownFields() task.UnknownFields { return a.env.UnknownFields }

// WarnUnknown notes and logs a field of the task's input that its Go type lacks; mistake names both.
func (a *Attempt) WarnUnknown(mistake error) {
	_ = a.Note(NoteUnknown, mistake.Error()) // the attempt has no notes yet
	if _, warned := a.env.unknown.LoadOrStore(a.task.Type, true); !warned {
		a.env.Log.Warn("the input of a task has a field that its type lacks, and is decoded without it: add the field, give the type an Upcast, or set Config.UnknownFields",
			"task_id", a.task.ID, "task_type", a.task.Type, "error", mistake)
	}
}

// unknownTypes holds the types with a logged warning.
type unknownTypes = sync.Map
