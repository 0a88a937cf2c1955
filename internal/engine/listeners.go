package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goweaver/weaver/task/event"
)

// Listeners receive the events of an engine, in the order in which they were
// added. They are called without a lock, so that one may add and remove others.
// The zero value has none, and neither has nil.
type Listeners struct {
	mu   sync.Mutex // held while the list is replaced
	list atomic.Pointer[[]*listener]
}

type listener struct {
	fn      func(event.Event)
	stopped atomic.Bool
}

// Add adds a listener. After stop no event is given to it any more; one that it
// has at that moment it keeps.
func (l *Listeners) Add(fn func(event.Event)) (stop func()) {
	added := &listener{fn: fn}
	l.replace(func(list []*listener) []*listener { return append(list, added) })
	return func() {
		if !added.stopped.Swap(true) {
			l.replace(func(list []*listener) []*listener {
				return slices.DeleteFunc(list, func(x *listener) bool { return x == added })
			})
		}
	}
}

// replace changes a copy of the list: those who emit read the old one.
func (l *Listeners) replace(change func([]*listener) []*listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := change(slices.Clone(l.all()))
	l.list.Store(&list)
}

func (l *Listeners) all() []*listener {
	if l == nil {
		return nil
	}
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// listens reports whether events are wanted: without a listener none is made.
func (e *env) listens() bool { return len(e.Listeners.all()) > 0 }

// emit gives an event to the listeners. Their panics never touch a task, nor
// another listener.
func (e *env) emit(ev event.Event) {
	for _, l := range e.Listeners.all() {
		if !l.stopped.Load() {
			e.call(l, ev)
		}
	}
}

func (e *env) call(l *listener, ev event.Event) {
	defer func() {
		if p := recover(); p != nil {
			e.Log.Error("an event listener panicked", "event", ev.Type(), "task_id", ev.Head().TaskID, "panic", p)
		}
	}()
	l.fn(ev)
}
