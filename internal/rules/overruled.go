package rules

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Overruled returns the recorded outcome if it differs from the reported one, or nil.
func Overruled(f *store.Finish, t *Transition) *store.Overruled {
	o := store.Overruled{Outcome: t.Outcome, Error: t.Failure}
	if t.Decision != nil {
		o.Decision = t.Decision.Kind
	}
	switch {
	case t.Begins:
		o.EndsAs = t.Undo.EndsAs
	case t.Verdict != nil:
		o.Error = t.Verdict
	}
	return overruled(f, &o)
}

func overruled(f *store.Finish, as *store.Overruled) *store.Overruled {
	if as.EndsAs == "" && as.Outcome == f.Outcome && as.Decision == decidedKind(f) && sameError(as.Error, f.Error) {
		return nil
	}
	o := *as
	if o.Error != nil {
		e := *o.Error
		o.Error = &e
	}
	return &o
}

// sameError reports whether two errors have equal fields.
func sameError(a, b *task.Error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.Kind == b.Kind && a.Message == b.Message && a.Code == b.Code && a.Step == b.Step && a.Ask == b.Ask
}
