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

// Timing of the hub; topics have their own.
const (
	hubPause = 20 * time.Millisecond // between two rounds of reads
	hubReads = 4                     // concurrent reads
	hubShare = 40                    // a page rests this many times as long as its read took, but at most
	hubRest  = 10 * time.Second

	hubTimeout = 10 * time.Second // of a read

	// hubPoll is the interval at which a topic is read without a notice, because notices are
	// incomplete. In PostgreSQL some changes of other processes have no notice if no caller waits
	// for them (claims, steps), and in any store changes by time alone have none. A SQLite file
	// reports all changes of other processes; its claim to be incomplete costs a read each time.
	hubPoll = 5 * time.Second
	// hubPollBlind is hubPoll for a store without notices.
	hubPollBlind = time.Second
	// hubRetry is the delay after a failed read.
	hubRetry = time.Second
)

// hub computes the watched topics: each topic once for all watchers, after a notice of the store.
// It does not run while there are no watchers.
//
// Its main goroutine (look) wakes at a notice or when a topic is due without one, and starts
// readers. A reader stores a new state in its topic and wakes the watchers, which compare it with
// the state that they have sent: nothing is queued for them.
type hub struct {
	client  *weaver.Client
	log     *slog.Logger
	timeout time.Duration // of a read

	// life is held while the hub starts or ends.
	life     sync.Mutex
	watchers int
	group    *group.Group // nil while it does not run
	unlisten func()

	changes atomic.Uint64 // number of notices so far
	revs    atomic.Uint64 // number of row versions so far
	wake    chan struct{} // wakes the main goroutine

	mu      sync.Mutex
	topics  map[string]*topic
	order   uint64 // number of the last topic
	reading reading
	poll    time.Duration // interval for topics that change only by notices; 0: no polling
}

// topic is one watched topic.
type topic struct {
	topicName
	order uint64                // sequence number of the topic
	state atomic.Pointer[state] // nil until the first read

	// Guarded by hub.mu:
	watchers map[*watcher]bool
	full     int       // watchers that may see values
	busy     bool      // it is being read
	seen     uint64    // value of changes at the last read
	next     time.Time // earliest next read after a change
	poll     time.Time // next read without a change; zero: never
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

// close ends the watch.
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

// reform makes the topic be read again if its watchers may see values that it lacks, or if it has
// values that no watcher may see. hub.mu is held.
func (t *topic) reform() {
	if st := t.state.Load(); t.kind.full && st != nil && st.problem == nil && st.full != (t.full > 0) {
		t.poll = t.next
	}
}

// start begins to listen to the store, and starts the main goroutine.
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

// end ends the goroutines of start, and the reads.
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

// look starts reads of topics until the hub ends.
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

// begin starts reads of the due topics. It returns the time until the next one is due.
func (h *hub) begin() (wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, changes := time.Now(), h.changes.Load()
	wait = time.Hour
	var due []dueTopic
	for _, t := range h.topics {
		if t.busy || !h.reading.room(t.lane()) {
			continue // the end of a read wakes the main goroutine
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

// read starts a read of topics of one kind, unless too many reads run: then the end of one of them
// wakes the main goroutine. mu is held.
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

// publish stores the new states of topics that were read.
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

// compute reads topics. If a state has not changed it returns the previous one.
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

// views reads topics of a kind; a panic becomes their error.
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
