package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/goweaver/weaver/task/event"
)

// Listeners receive the events of an engine in the order in which they were added. They are called without a lock, so
// a listener may add and remove listeners. The zero value and nil are empty.
type Listeners struct {
	mu   sync.Mutex // held while the list is replaced
	list atomic.Pointer[[]*listener]
}

type listener struct {
	fn      func(event.Event)
	coarse  bool // only events that begin and end attempts
	stopped atomic.Bool
}

// Add adds a listener. After stop it gets no more events; a call in progress continues.
func (l *Listeners) Add(fn func(event.Event)) (stop func()) { return l.add(&listener{fn: fn}) }

// AddCoarse is Add for the events that begin and end attempts. Other events are not created for it.
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

// replace changes a copy of the list; emitters use the old one.
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

// listens reports whether there is a listener for events of attempts; without one no event is created.
func (e *env) listens() bool { return len(e.Listeners.all()) > 0 }

// listensToAll reports whether there is a listener for the events inside attempts and of jobs.
func (e *env) listensToAll() bool {
	return slices.ContainsFunc(e.Listeners.all(), func(l *listener) bool { return !l.coarse })
}

// isCoarse reports whether an event begins or ends an attempt.
func isCoarse(ev event.Event) bool {
	_, starts := ev.(event.TaskStarted)
	return starts || event.EndsAttempt(ev)
}

// emit passes an event to the listeners. A panic of a listener affects neither a task nor another listener.
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
