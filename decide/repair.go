package decide

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/task"
)

// RepairInput describes an input to repair.
type RepairInput struct {
	Task   task.Task       // the task of the input, as claimed
	Error  task.Error      // the error of decoding the input
	Path   string          // of the field that does not fit; "": unknown
	Schema json.RawMessage // JSON Schema of the input that the handler reads; nil: unknown
	Before *task.Error     // error of the previous repair; nil: it succeeded, or there was no previous repair
}

// RepairHinter writes the hint for a Repair function, for example for a language model that rewrites the input.
// Implementations must be pure and safe for concurrent use. The first 16 KiB of the hint are stored with the repair.
type RepairHinter interface {
	Hint(in RepairInput) string
}

// HintFunc adapts a function to a RepairHinter.
type HintFunc func(RepairInput) string

// Hint implements RepairHinter.
func (f HintFunc) Hint(in RepairInput) string { return f(in) }

// DefaultHint states the error, its path and the expected schema.
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
