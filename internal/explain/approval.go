package explain

import (
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// approveType is the task type that asks a person: builtin.Approve.
const approveType = "weaver.person.approve.v1"

// Question returns the question of a blocked builtin.Approve task. It returns "" for a task of another type and for
// one that waits for something else. e is the error of the task.
func Question(typeName string, e *task.Error) string {
	if typeName != approveType || e == nil || e.Ask == "" {
		return ""
	}
	return text.OneLine(strings.TrimPrefix(e.Message, e.Ask+": "), MaxMessage)
}

// WaitsForPerson returns the end of a line that begins with the name of a task that asks a question.
func WaitsForPerson(question string) string { return "waits for a person: " + question }

// refusal is the command-line form of a negative answer.
const refusal = `'{"approved": false, "reason": "…"}'`
