package decide

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/task"
)

// RepairInput is what is known of an input that is to be repaired.
type RepairInput struct {
	Task   task.Task       // whose input it is, as it was claimed
	Error  task.Error      // why the input cannot be used
	Path   string          // of the field that does not fit; "": it is not known
	Schema json.RawMessage // JSON Schema of the input that the handler reads; nil: it is not known
	Before *task.Error     // why the repair before this one did not succeed; nil: it did, or there was none
}

// RepairHinter writes the hint that a Repair function is given, say for a language
// model that makes the input anew. Implementations must be pure and safe for
// concurrent use. The hint is kept with the repair; of a long one the first 16 KiB.
type RepairHinter interface {
	Hint(in RepairInput) string
}

// HintFunc lets a function be a RepairHinter.
type HintFunc func(RepairInput) string

// Hint implements RepairHinter.
func (f HintFunc) Hint(in RepairInput) string { return f(in) }

// DefaultHint says what is wrong, where, and what is expected.
type DefaultHint struct{}

// Hint implements RepairHinter.
func (DefaultHint) Hint(in RepairInput) string {
	lines := []string{"error: " + in.Error.Message}
	if in.Path != "" {
		lines = append(lines, "path: "+in.Path)
	}
	if in.Before != nil {
		lines = append(lines, fmt.Sprintf("the repair before this one failed: %s", in.Before.Message))
	}
	if len(in.Schema) > 0 {
		lines = append(lines, "expected: "+string(in.Schema))
	}
	return strings.Join(lines, "\n")
}
