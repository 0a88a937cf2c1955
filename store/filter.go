package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/task"
)

// Check returns an error for a filter that no task can match: an unknown state, wait or
// kind of error, or a text that cannot be stored.
func (f *Filter) Check() error {
	texts := func(what string, list ...string) error {
		for _, text := range list {
			if err := task.CheckText(what, text); err != nil {
				return err
			}
		}
		return nil
	}
	err := cmp.Or(texts("Types", f.Types...), texts("Queue", f.Queue), texts("After", f.After))
	for k, v := range f.Labels {
		err = cmp.Or(err, texts("Labels", k, v))
	}
	if err != nil {
		return err
	}
	for _, s := range f.States {
		if !s.Valid() {
			return fmt.Errorf("%q: unknown state; the states are %v", s, task.States())
		}
	}
	for _, w := range f.Waiting {
		if w != task.WaitNone && !slices.Contains(task.Waitings(), w) {
			return fmt.Errorf("no task waits for %q; what there is: %v", w, task.Waitings())
		}
	}
	for _, k := range f.ErrorKinds {
		if k != task.KindNone && !slices.Contains(task.ErrorKinds(), k) {
			return fmt.Errorf("%q: unknown kind of error; the kinds are %v", k, task.ErrorKinds())
		}
	}
	return nil
}
