package memstore

import "github.com/goweaver/weaver/store"

// Notify implements store.Notifier. No change escapes the notices: every write
// goes through this process.
func (s *Store) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	return s.listeners.Add(ns, fn), true
}
