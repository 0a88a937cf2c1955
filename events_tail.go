package weaver

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
)

const (
	// tailPoll is the interval of reading the end of the feed while followers wait.
	tailPoll = 250 * time.Millisecond
	// tailRest is the minimum time between two reads, however often the store reports writes.
	tailRest = 50 * time.Millisecond
)

// tail is the end of the feed of events, shared by all followers of a client: one of them reads it for
// all. Without followers nothing is read.
type tail struct {
	store store.Store
	ns    string

	// listening guards the registration with the store. Notices never lock it.
	listening sync.Mutex
	followers int
	stop      func()

	looking chan struct{} // holds one token, taken by the follower that reads

	mu      sync.Mutex
	written chan struct{} // closed after a write
	writes  int           // number of writes
	state   store.FeedState
	lookAt  time.Time // time at which state was read
	looked  int       // writes before that read
}

func (t *tail) init(s store.Store, ns string) {
	t.store, t.ns = s, ns
	t.looking, t.written = make(chan struct{}, 1), make(chan struct{})
}

// join starts listening for a follower; leave ends it.
func (t *tail) join() (leave func()) {
	t.listening.Lock()
	defer t.listening.Unlock()
	if t.followers++; t.followers == 1 {
		t.stop, _ = t.store.Notify(t.ns, nil, t.notice)
	}
	return func() {
		t.listening.Lock()
		defer t.listening.Unlock()
		if t.followers--; t.followers == 0 && t.stop != nil {
			t.stop() // waits for running notices
			t.stop = nil
		}
	}
}

// notice wakes the waiting followers.
func (t *tail) notice(store.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.written)
	t.written = make(chan struct{})
	t.writes++
}

// await returns when the feed has rows after a cursor, or has ended.
func (t *tail) await(ctx context.Context, cursor string) error {
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return err
	}
	for {
		t.mu.Lock()
		written := t.written // before the read: a write during it is not missed
		t.mu.Unlock()
		state, at, err := t.look(ctx)
		if err != nil || state.Newest > after || !state.On {
			return err
		}
		timer := time.NewTimer(tailPoll - time.Since(at))
		select {
		case <-ctx.Done():
		case <-written:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// look returns the state of the feed and its read time. It reads if there were writes since another
// follower did, or that was too long ago.
func (t *tail) look(ctx context.Context) (store.FeedState, time.Time, error) {
	select {
	case t.looking <- struct{}{}:
		defer func() { <-t.looking }()
	case <-ctx.Done():
		return store.FeedState{}, time.Time{}, context.Cause(ctx)
	}
	t.mu.Lock()
	state, at, fresh := t.state, t.lookAt, t.looked == t.writes
	t.mu.Unlock()
	age := time.Since(at)
	if fresh && age < tailPoll {
		return state, at, nil
	}
	if age < tailRest {
		if pauseFor(ctx, tailRest-age); ctx.Err() != nil {
			return state, at, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	looked, at := t.writes, time.Now()
	t.mu.Unlock()
	page, err := t.store.Feed(ctx, t.ns, store.FeedRequest{StateOnly: true})
	if err != nil {
		return page.FeedState, at, err
	}
	t.mu.Lock()
	t.state, t.lookAt, t.looked = page.FeedState, at, looked
	t.mu.Unlock()
	return page.FeedState, at, nil
}

// pauseFor waits for d or until the context ends.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
