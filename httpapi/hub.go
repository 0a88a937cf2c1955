package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
)

// Pace of the hub, beside that of each topic.
const (
	hubPause = 20 * time.Millisecond // between two looks for what is to be read
	hubReads = 4                     // at a time
	hubShare = 40                    // a page rests for so many times as long as its read took, but no longer than
	hubRest  = 10 * time.Second

	hubTimeout = 10 * time.Second // of a read

	// hubPoll is how often a topic is read without a notice, where changes escape the
	// notices: in PostgreSQL those of other processes that nothing waits for (claims,
	// steps), and in any store what only time changes. A SQLite file notices
	// all of other processes; that it says not to be complete costs a read each time.
	hubPoll = 5 * time.Second
	// hubPollBlind is hubPoll for a store without notices.
	hubPollBlind = time.Second
	// hubRetry is how long after a failed read the next one comes.
	hubRetry = time.Second
)

// hub computes what is watched: each topic once, whoever watches it, when the store said
// that something changed. While nothing is watched it does not run.
//
// The one who looks (look) wakes at a notice or when a topic is to be read without one,
// and has the topics read by others. Each leaves a new state in its topic and wakes the
// watchers, which compare it with what they have sent: nothing is queued for them.
type hub struct {
	client  *weaver.Client
	log     *slog.Logger
	timeout time.Duration // of a read

	// life is held while the hub begins to run or ends.
	life     sync.Mutex
	watchers int
	group    *group.Group // nil: it does not run
	unlisten func()

	changes atomic.Uint64 // notices so far
	revs    atomic.Uint64 // versions of rows so far
	wake    chan struct{} // for the one who looks

	mu      sync.Mutex
	topics  map[string]*topic
	order   uint64 // of the topic that came last
	reading reading
	poll    time.Duration // of topics that only notices change; 0: not at all
}

// topic is one topic that is watched.
type topic struct {
	topicName
	order uint64                // in which the topics came
	state atomic.Pointer[state] // nil: not read yet

	// Guarded by hub.mu:
	watchers map[*watcher]bool
	full     int       // watchers that may see values
	busy     bool      // it is being read
	seen     uint64    // changes when it was read last
	next     time.Time // when it may be read, if something changed
	poll     time.Time // when it is read anyway; zero: never
}

func newHub(cfg *Config) *hub {
	return &hub{client: cfg.Client, log: cfg.Logger, timeout: min(cfg.Timeout, hubTimeout), topics: make(map[string]*topic), wake: make(chan struct{}, 1)}
}

// watch begins to watch topics, in one of the forms of rows, until the watcher is closed.
func (h *hub) watch(names []topicName, class int) *watcher {
	h.life.Lock()
	defer h.life.Unlock()
	if h.watchers++; h.watchers == 1 {
		h.start()
	}
	w := &watcher{hub: h, class: class, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		t := h.topics[name.text]
		if t == nil {
			h.order++
			t = &topic{topicName: name, order: h.order, watchers: make(map[*watcher]bool)}
			t.next = time.Now()
			t.poll = t.next
			h.topics[name.text] = t
		}
		t.watchers[w] = true
		if class == shownFull {
			t.full++
			t.reform()
		}
		w.cursors = append(w.cursors, &cursor{topic: t})
	}
	h.nudge()
	return w
}

// close ends the watching.
func (w *watcher) close() {
	h := w.hub
	h.mu.Lock()
	for _, c := range w.cursors {
		t := c.topic
		if delete(t.watchers, w); len(t.watchers) == 0 {
			delete(h.topics, t.text)
		}
		if w.class == shownFull {
			t.full--
			t.reform()
		}
	}
	h.nudge()
	h.mu.Unlock()
	h.life.Lock()
	defer h.life.Unlock()
	if h.watchers--; h.watchers == 0 {
		h.end()
	}
}

// reform has the topic read again if those who watch may see values that it lacks, or it
// has some that none of them may see. It is called with hub.mu held.
func (t *topic) reform() {
	if st := t.state.Load(); t.kind.full && st != nil && st.problem == nil && st.full != (t.full > 0) {
		t.poll = t.next
	}
}

// start begins to listen to the store, and to look.
func (h *hub) start() {
	h.poll, h.unlisten = hubPollBlind, func() {}
	if n := h.client.Store(); n.Capabilities().Has(store.CanNotify) {
		stop, complete := n.Notify(h.client.Namespace(), nil, h.notice)
		h.unlisten, h.poll = stop, hubPoll
		if complete {
			h.poll = 0
		}
	}
	h.group = group.New(context.Background())
	h.group.Go("hub", h.look)
}

// end ends what start began, and the reads.
func (h *hub) end() {
	h.unlisten()
	h.group.Cancel(nil)
	if err := h.group.Wait(); err != nil {
		h.log.Error("the hub of live views failed", "error", err)
	}
	h.group = nil
}

// notice is called after commits.
func (h *hub) notice(store.Notice) {
	h.changes.Add(1)
	h.nudge()
}

func (h *hub) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// look has topics read until the hub ends.
func (h *hub) look(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := h.begin()
		timer.Reset(hubPause)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		timer.Reset(max(0, wait-hubPause))
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		case <-timer.C:
		}
	}
}

// begin has what is due read. It returns how long nothing else is due.
func (h *hub) begin() (wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, changes := time.Now(), h.changes.Load()
	wait = time.Hour
	var due []dueTopic
	for _, t := range h.topics {
		if t.busy || !h.reading.room(t.lane()) {
			continue // the end of a read wakes the one who looks
		}
		at := t.next
		if t.seen == changes {
			if t.poll.IsZero() {
				continue
			}
			at = t.poll
		}
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		due = append(due, dueTopic{t, at})
	}
	for _, list := range batches(due) {
		h.read(list, now, changes)
	}
	return wait
}

// read begins to read topics of one kind, unless too much is being read: then the end
// of that wakes the one who looks. It is called with mu held.
func (h *hub) read(list []*topic, now time.Time, changes uint64) {
	if !h.reading.room(list[0].lane()) {
		return
	}
	h.reading[list[0].lane()]++
	for _, t := range list {
		t.busy, t.seen = true, changes
	}
	h.group.Go("read "+list[0].text, func(ctx context.Context) error {
		states := h.compute(ctx, list)
		h.publish(list, states, now)
		return nil
	})
}

// publish leaves new states in topics that were read.
func (h *hub) publish(list []*topic, states []*state, began time.Time) {
	ended := time.Now()
	rest := ended.Add(min(hubShare*ended.Sub(began), hubRest))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading[list[0].lane()]--
	for i, t := range list {
		st, was := states[i], t.state.Load()
		t.busy = false
		if t.next = began.Add(t.kind.every); t.kind.every == pageEvery {
			t.next = later(t.next, rest)
		}
		t.poll = time.Time{}
		switch {
		case st.away():
			t.next = later(t.next, ended.Add(hubRetry))
			t.poll = t.next
		case h.poll > 0:
			t.poll = later(t.next, ended.Add(h.poll))
		case t.timed:
			t.poll = later(t.next, ended.Add(hubPoll))
		}
		t.state.Store(st)
		t.reform()
		if st == was {
			continue
		}
		for w := range t.watchers {
			select {
			case w.wake <- struct{}{}:
			default:
			}
		}
	}
	h.nudge()
}

// compute reads topics. A state that is as the one before is the same one.
func (h *hub) compute(ctx context.Context, list []*topic) []*state {
	args := make([]string, len(list))
	for i, t := range list {
		args[i] = t.arg
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	views := h.views(ctx, list[0].kind, args)
	full := make([]bool, len(list))
	h.mu.Lock()
	for i, t := range list {
		full[i] = t.kind.full && t.full > 0
	}
	h.mu.Unlock()
	states := make([]*state, len(list))
	for i, t := range list {
		was := t.state.Load()
		st := h.shown(&views[i], was, full[i])
		if st.problem != nil && st.unknown && (was == nil || !was.unknown) && ctx.Err() == nil {
			h.log.Error("a live view cannot be read", "topic", t.text, "error", views[i].err)
		}
		states[i] = st
	}
	return states
}

// views reads topics of a kind; a panic is their error.
func (h *hub) views(ctx context.Context, k *topicKind, args []string) (views []view) {
	defer func() {
		if p := recover(); p != nil {
			views = make([]view, len(args))
			for i := range views {
				views[i].err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}
	}()
	return k.read(ctx, h.client, args)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
