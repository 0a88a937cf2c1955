package schema

import (
	"encoding/json"
	"slices"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/store"
)

// DraftOf makes a draft of a task type that is only known by what was announced of it,
// with encoded input, which is not checked against its schema (Schema.Validate does
// that). It has the options that the type has by default; opts come after those.
func DraftOf(t store.AnnouncedType, input json.RawMessage, opts ...weaver.EnqueueOption) weaver.Draft {
	of := t.Defaults
	announced := option.Func(func(s *option.Settings) {
		n := &s.Task
		n.SchemaVersion = max(t.SchemaVersion, 1)
		n.Redact, n.Expire = slices.Clone(t.Redact), slices.Clone(t.Expire)
		n.MaxRepairs = max(of.MaxRepairs, 0) // 0 is said
	})
	of.MaxRepairs = 0
	// The defaults of another program are checked like the options of an enqueue.
	all := append([]weaver.EnqueueOption{announced}, option.Given[weaver.EnqueueOption](&of)...)
	return weaver.NewDraft(t.Name, input, append(all, opts...)...)
}
