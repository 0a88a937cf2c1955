package rules

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ExpiryVerb is the audit verb of ExpireInput.
const ExpiryVerb = "expire"

// CheckExpire refuses to erase input fields of a task that may still run, or whose input was
// replaced since.
func CheckExpire(cmd *store.ExpireInput, s task.State, hash string) error {
	switch {
	case !s.Terminal():
		return refuse(cmd.Task, s, "fields of its input expire once it has ended")
	case len(cmd.Input) > 0 && hash != cmd.OldHash:
		return fmt.Errorf("task %v: %w: its input is not the one that was seen", cmd.Task, store.ErrChanged)
	}
	return nil
}
