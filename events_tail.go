package weaver

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/goweaver/weaver/store"
)

const (
	// tailPoll is how often the end of the feed is looked at while followers wait.
	tailPoll = 250 * time.Millisecond
	// tailRest is between two looks, however often the store says that something was
	// written.
	tailRest = 50 * time.Millisecond
)

// tail is the end of the feed of events, for all followers of a client: one of them
// looks, and the others share what it saw. Nothing happens while there are none.
type tail struct {
	store store.Store
	ns    string

	// listening guards the registration with the store. Notices never take it.
	listening sync.Mutex
	followers int
	stop      func()

	looking chan struct{} // holds one token, of the follower that looks

	mu      sync.Mutex
	written chan struct{} // is closed when something was written
	writes  int           // how often that was so
	state   store.FeedState
	lookAt  time.Time // of the state
	looked  int       // writes before that
}

func (t *tail) init(s store.Store, ns string) {
	t.store, t.ns = s, ns
	t.looking, t.written = make(chan struct{}, 1), make(chan struct{})
}

// join begins to listen for a follower, and returns what ends it.
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
			t.stop() // waits for notices under way
			t.stop = nil
		}
	}
}

// notice wakes the followers that wait.
func (t *tail) notice(store.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.written)
	t.written = make(chan struct{})
	t.writes++
}

// await returns when there is something behind a cursor, or the feed has ended.
func (t *tail) await(ctx context.Context, cursor string) error {
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil {
		return err
	}
	for {
		t.mu.Lock()
		written := t.written // before the look: a write in between is not missed
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

// look returns how far the feed is, and when that was looked at: it looks itself if
// something was written since another follower did, or that is long ago.
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

// pauseFor waits, or until the context ends.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
