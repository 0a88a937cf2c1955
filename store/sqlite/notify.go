package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Notify implements store.Observe. Notices of this process's own commits come at once,
// including callers' transactions on DB. Notices of other processes, and of other DBs on the
// same file, come within about 20 ms. In memory there are no others, and complete is true. A
// closed DB sends no notices.
func (db *DB) Notify(ns string, _ func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	remove := db.listeners.Add(ns, fn)
	if db.memory {
		return remove, true
	}
	db.poller.start(db.writer.Peek)
	var once sync.Once
	return func() {
		once.Do(func() {
			remove()
			db.poller.stop()
		})
	}, false
}

// pollEvery is the interval at which the file is checked for external commits.
const pollEvery = 20 * time.Millisecond

// poller checks for external commits while there are listeners.
type poller struct {
	mu     sync.Mutex
	group  *group.Group // nil: it does not run
	users  int
	closed bool // the store was closed; the poller does not start again
}

// start adds a user. With the first user the poller runs.
func (p *poller) start(look func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users++; p.users > 1 || p.group != nil || p.closed {
		return
	}
	p.group = group.New(context.Background())
	p.group.Go("data_version", func(ctx context.Context) error {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				look()
			}
		}
	})
}

// stop removes a user. With the last user the poller ends, and stop waits for it.
func (p *poller) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 {
		p.end()
	}
}

// close ends the poller permanently.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.end()
}

func (p *poller) end() {
	if p.group == nil {
		return
	}
	p.group.Cancel(nil)
	_ = p.group.Wait() // its function returns nil
	p.group = nil
}
