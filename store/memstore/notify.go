package memstore

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Notify implements store.Observe. The notices are complete: every write goes through
// this process.
func (s *Store) Notify(ns string, _ func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	return s.listeners.Add(ns, fn), true
}
