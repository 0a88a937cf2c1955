package explain

import (
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// approveType is the task type that asks a person: builtin.Approve.
const approveType = "weaver.person.approve.v1"

// Question is what a blocked task of builtin.Approve asks a person; "" for a
// task of another type, and for one that waits for something else. e is its
// error.
func Question(typeName string, e *task.Error) string {
	if typeName != approveType || e == nil || e.Ask == "" {
		return ""
	}
	return text.OneLine(strings.TrimPrefix(e.Message, e.Ask+": "), MaxMessage)
}

// WaitsForPerson is a task with a question as the end of a line that begins with
// its name.
func WaitsForPerson(question string) string { return "waits for a person: " + question }

// refusal is an answer that refuses, as a command line has it.
const refusal = `'{"approved": false, "reason": "…"}'`
