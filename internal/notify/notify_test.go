package notify_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/goweaver/weaver/internal/notify"
	"github.com/goweaver/weaver/store"
)

// log collects the calls of listeners.
type log struct {
	mu  sync.Mutex
	got []string
}

func (l *log) as(name string) func(store.Notice) {
	return func(n store.Notice) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n.External {
			l.got = append(l.got, name+" external")
			return
		}
		l.got = append(l.got, name)
	}
}

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(l.got)
	if !slices.Equal(l.got, want) {
		t.Errorf("called %v, want %v", l.got, want)
	}
	l.got = nil
}

func TestListeners(t *testing.T) {
	t.Parallel()
	var ls notify.Listeners
	var l log
	stopA := ls.Add("ns", l.as("a"))
	ls.Add("ns", l.as("b"))
	ls.Add("other", l.as("c"))

	ls.Notify("ns", store.Notice{Due: true})
	l.want(t, "a", "b")
	ls.Notify("ns", store.Notice{Dead: true})
	l.want(t, "a", "b")
	ls.Notify("ns", store.Notice{})
	l.want(t)
	ls.NotifyAll(store.Notice{External: true})
	l.want(t, "a external", "b external", "c external")

	stopA()
	stopA()
	ls.Notify("ns", store.Notice{Due: true})
	l.want(t, "b")

	ls.Close()
	ls.Add("ns", l.as("late"))
	ls.Notify("ns", store.Notice{Due: true})
	ls.NotifyAll(store.Notice{Due: true})
	l.want(t)
}
