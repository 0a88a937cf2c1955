package memstore

import (
	"slices"
	"sync"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// listeners are those who asked for notices, by namespace.
type listeners struct {
	mu   sync.RWMutex // held for reading while listeners are called, so that stop waits for them
	next int
	fns  map[string]map[int]func(store.Notice)
}

// Notify implements store.Notifier. Nothing escapes the notices: every write
// goes through this process.
func (s *Store) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fns == nil {
		l.fns = map[string]map[int]func(store.Notice){}
	}
	if l.fns[ns] == nil {
		l.fns[ns] = map[int]func(store.Notice){}
	}
	id := l.next
	l.next++
	l.fns[ns][id] = fn
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.fns[ns], id)
	}, true
}

// tell calls the listeners of a namespace, after the commit and without the
// store's lock. Each gets lists of its own.
func (l *listeners) tell(ns string, n store.Notice) {
	if !n.Due && !n.External && len(n.Tasks)+len(n.Jobs)+len(n.Cancels) == 0 {
		return
	}
	n.Jobs = distinct(n.Jobs)
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, fn := range l.fns[ns] {
		own := n
		own.Tasks, own.Jobs, own.Cancels = copyList(n.Tasks), copyList(n.Jobs), copyList(n.Cancels)
		fn(own)
	}
}

func distinct(ids []task.ID) []task.ID {
	slices.SortFunc(ids, task.ID.Compare)
	return slices.Compact(ids)
}
