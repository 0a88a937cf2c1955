package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
)

// pollEvery is how often the file is looked at for commits of others.
const pollEvery = 20 * time.Millisecond

// listeners are the functions to be notified.
type listeners struct {
	mu   sync.RWMutex // held for reading during notifications, so that stop waits for them
	next int
	byID map[int]listener
	// poller looks for other processes' commits while there are listeners.
	pollMu sync.Mutex
	poller *group.Group
	users  int
	closed bool // the store was closed: nothing is looked for any more
}

type listener struct {
	ns string
	fn func(store.Notice)
}

// Notify implements store.Notifier. Notices of this process's own commits come
// at once, also of callers' transactions on DB; those of other processes, and
// of other DBs on the same file, within some 20 ms. In memory there are no
// others, and complete is true. A DB that was closed notifies no more.
func (db *DB) Notify(ns string, fn func(store.Notice)) (stop func(), complete bool) {
	l := &db.listeners
	l.mu.Lock()
	l.next++
	id := l.next
	if l.byID == nil {
		l.byID = make(map[int]listener)
	}
	l.byID[id] = listener{ns, fn}
	l.mu.Unlock()
	if !db.memory {
		db.startPolling()
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			l.mu.Lock()
			delete(l.byID, id)
			l.mu.Unlock()
			if !db.memory {
				db.stopPolling()
			}
		})
	}, db.memory
}

func (db *DB) startPolling() {
	l := &db.listeners
	l.pollMu.Lock()
	defer l.pollMu.Unlock()
	if l.users++; l.users > 1 || l.poller != nil || l.closed {
		return
	}
	l.poller = group.New(context.Background())
	l.poller.Go("data_version", func(ctx context.Context) error {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				db.writer.Peek()
			}
		}
	})
}

// stopPolling ends the poller with its last user and waits for it.
func (db *DB) stopPolling() {
	l := &db.listeners
	l.pollMu.Lock()
	defer l.pollMu.Unlock()
	if l.users--; l.users == 0 {
		l.endPoller()
	}
}

func (l *listeners) endPoller() {
	if l.poller == nil {
		return
	}
	l.poller.Cancel(nil)
	_ = l.poller.Wait() // its function returns nil
	l.poller = nil
}

// closeAll ends all notifications.
func (l *listeners) closeAll() {
	l.mu.Lock()
	l.byID = nil
	l.mu.Unlock()
	l.pollMu.Lock()
	defer l.pollMu.Unlock()
	l.closed = true
	l.endPoller()
}

func (l *listeners) notify(ns string, n store.Notice) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, each := range l.byID {
		if each.ns == ns {
			each.fn(n)
		}
	}
}

func (l *listeners) notifyAll(n store.Notice) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, each := range l.byID {
		each.fn(n)
	}
}
