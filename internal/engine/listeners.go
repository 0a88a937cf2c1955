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
	coarse  bool // only what begins and ends attempts
	stopped atomic.Bool
}

// Add adds a listener. After stop no event is given to it any more; one that it
// has at that moment it keeps.
func (l *Listeners) Add(fn func(event.Event)) (stop func()) { return l.add(&listener{fn: fn}) }

// AddCoarse is Add for the events with which attempts begin and end. The others are
// not made for it.
func (l *Listeners) AddCoarse(fn func(event.Event)) (stop func()) {
	return l.add(&listener{fn: fn, coarse: true})
}

func (l *Listeners) add(added *listener) (stop func()) {
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

// listens reports whether events of attempts are wanted: without a listener none is made.
func (e *env) listens() bool { return len(e.Listeners.all()) > 0 }

// listensToAll reports whether the events inside attempts, and those of jobs, are wanted.
func (e *env) listensToAll() bool {
	return slices.ContainsFunc(e.Listeners.all(), func(l *listener) bool { return !l.coarse })
}

// isCoarse reports whether an event is one with which attempts begin and end.
func isCoarse(ev event.Event) bool {
	_, starts := ev.(event.TaskStarted)
	return starts || event.EndsAttempt(ev)
}

// emit gives an event to the listeners. Their panics never touch a task, nor
// another listener.
func (e *env) emit(ev event.Event) {
	for _, l := range e.Listeners.all() {
		if !l.stopped.Load() && (!l.coarse || isCoarse(ev)) {
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
