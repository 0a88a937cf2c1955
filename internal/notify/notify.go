// Package notify holds the listeners of a store in this process and calls them with notices
// after commits ([store.Observe.Notify]). Each store learns of other processes' commits in its own
// way.
package notify

import (
	"sync"

	"github.com/goweaver/weaver/store"
)

// Listeners are functions that receive notices, by namespace. The zero value is empty and
// ready for concurrent use.
type Listeners struct {
	mu     sync.RWMutex // held for reading while listeners run, so that a stop waits for them
	next   int
	byID   map[int]listener
	closed bool
}

type listener struct {
	ns string
	fn func(store.Notice)
}

// Add calls fn with the notices of a namespace until stop returns. After [Listeners.Close] it
// does nothing.
func (l *Listeners) Add(ns string, fn func(store.Notice)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return func() {}
	}
	if l.byID == nil {
		l.byID = make(map[int]listener)
	}
	l.next++
	id := l.next
	l.byID[id] = listener{ns, fn}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.byID, id)
	}
}

// Notify calls the listeners of a namespace, one after the other. It ignores an empty notice.
// The caller holds no lock of the store.
func (l *Listeners) Notify(ns string, n store.Notice) {
	if !n.Due && !n.Chores && !n.Schedule && !n.Dead && !n.Changed && !n.External && n.Deadline == 0 && len(n.Tasks)+len(n.Jobs)+len(n.Cancels)+len(n.Events) == 0 {
		return
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, each := range l.byID {
		if each.ns == ns {
			each.fn(n)
		}
	}
}

// NotifyAll calls the listeners of all namespaces.
func (l *Listeners) NotifyAll(n store.Notice) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, each := range l.byID {
		each.fn(n)
	}
}

// Close removes all listeners and refuses new ones. When it returns, no listener is running.
func (l *Listeners) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID, l.closed = nil, true
}
