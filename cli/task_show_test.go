package cli

import (
	"testing"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/task"
)

func TestOptionValue(t *testing.T) {
	t.Parallel()
	for _, o := range option.All() {
		if o.Label == "" {
			continue
		}
		var with, without task.Task
		o.Set(&with, o.Example)
		if got := optionValue(o, &with); got == "" {
			t.Errorf("a task with %s is shown without it", o.Name)
		}
		if got := optionValue(o, &without); got != "" {
			t.Errorf("a task without %s is shown with %q", o.Name, got)
		}
	}
}
