package notices

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/notify"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ErrNotDirect: the connection does not end at the server, where no session can be kept.
var ErrNotDirect = errors.New("the connection to the server is not direct")

// Config is what Notices need.
type Config struct {
	// Schema of the tables.
	Schema string
	// Dial makes a session; ErrNotDirect: not at the moment. Nil: nothing is told to
	// other processes, nor heard from them.
	Dial func(ctx context.Context) (*pgx.Conn, error)
	// Look finds what changed, of what a process waits for.
	Look func(ctx context.Context, ns string, w Wanted) (Found, error)
	// Listeners of this process.
	Listeners *notify.Listeners
}

// Wanted is what a process waits for.
type Wanted struct {
	Running []task.ID // tasks that it runs, as far as it knows
	Awaited []task.ID // tasks and jobs that its callers wait for
}

// Found is what became of it.
type Found struct {
	Cancels []task.ID     // running tasks that were asked to cancel
	Stopped []task.ID     // tasks that do not run any more
	Over    []task.ID     // awaited tasks and jobs that ended, are blocked or do not exist
	Due     time.Time     // the soonest deadline; zero: none is set
	In      time.Duration // so long until then
	Chores  bool          // work is left to reapers
}

const (
	// tellEvery is how long after it told something a process tells again.
	tellEvery = 50 * time.Millisecond
	// sayEvery is how long after its row was written a worker writes it again.
	sayEvery = time.Second
	// sayAgain is how often an idle worker writes it all the same: its row may have been
	// made anew.
	sayAgain = 30 * time.Second
	// lookEvery is how often a process looks by itself.
	lookEvery = time.Second
	// keepFor is how long the session listens when nobody wants it any more: somebody
	// may soon.
	keepFor = 10 * time.Second
	// lastWord is how long Close waits for what is still to be told.
	lastWord = 500 * time.Millisecond
	// maxIDs bounds what one notice names.
	maxIDs = 100
	// maxRunning bounds what is remembered of tasks that run here.
	maxRunning = 1 << 16
)

// Notices are those of a process. It is safe for concurrent use.
type Notices struct {
	cfg   Config
	roles *group.Group
	wake  chan struct{} // for look: there is a listener
	ended chan struct{} // closed when nothing is told any more; nil: nothing is

	mu        sync.Mutex
	spaces    map[string]*space
	interrupt context.CancelFunc // ends the session's wait; nil: it does not wait
	poked     bool               // since the session last looked for something to do
	looking   bool
	closing   bool
	told      time.Time // when something was last told
}

// space is what concerns a namespace.
type space struct {
	listeners int
	awaiting  map[int]func() []task.ID // what callers wait for
	next      int
	left      time.Time // when the last listener or caller went
	heard     bool      // the session listens for it
	locked    bool      // the session holds the lock of those who wait
	news      news      // that is not told yet
	workers   map[store.WorkerID]*worker
	running   map[task.ID]bool
	deadline  time.Time // that was last announced
	inTx      time.Time // when a caller's transaction last carried a notice
}

// worker is one of this process.
type worker struct {
	idle  bool      // its last claim found nothing
	since time.Time // when it first claimed tasks after that
	says  bool      // what its row says
	wrote time.Time // when that was written
}

// New returns Notices. They must be closed.
func New(cfg Config) *Notices {
	return &Notices{cfg: cfg, roles: group.New(context.Background()), wake: make(chan struct{}, 1), spaces: make(map[string]*space)}
}

// Close tells what is still to be told, for a short while at most, and ends the
// session. It may be called again.
func (n *Notices) Close() {
	n.mu.Lock()
	first := !n.closing
	n.closing = true
	ended := n.ended
	n.poke()
	n.mu.Unlock()
	if ended != nil && first {
		timer := time.NewTimer(lastWord)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	n.roles.Cancel(nil)
	_ = n.roles.Wait() // its functions return nil
}

// of returns what concerns a namespace. The caller holds the lock.
func (n *Notices) of(ns string) *space {
	s := n.spaces[ns]
	if s == nil {
		s = &space{awaiting: make(map[int]func() []task.ID), workers: make(map[store.WorkerID]*worker), running: make(map[task.ID]bool)}
		n.spaces[ns] = s
	}
	return s
}

// connect has the session begin. The caller holds the lock.
func (n *Notices) connect() {
	if n.cfg.Dial != nil && n.ended == nil && !n.closing {
		n.ended = make(chan struct{})
		n.roles.Go("notices", n.keep)
	}
}

// poke has the session look for something to do. The caller holds the lock.
func (n *Notices) poke() {
	n.poked = true
	if n.interrupt != nil {
		n.interrupt()
	}
}

// Listen calls fn with the notices of a namespace until stop returns, with those of
// other processes too.
func (n *Notices) Listen(ns string, fn func(store.Notice)) (stop func()) {
	remove := n.cfg.Listeners.Add(ns, fn)
	n.begin(ns, func(s *space) bool {
		s.listeners++
		return s.heard
	})
	return sync.OnceFunc(func() {
		remove()
		n.mu.Lock()
		defer n.mu.Unlock()
		s := n.of(ns)
		s.listeners--
		s.left = time.Now()
	})
}

// Await is Listen for callers that wait for the tasks and jobs that ids returns: what
// becomes of them is looked up too.
func (n *Notices) Await(ns string, ids func() []task.ID, fn func(store.Notice)) (stop func()) {
	remove := n.Listen(ns, fn)
	var key int
	n.begin(ns, func(s *space) bool {
		s.next++
		key = s.next
		s.awaiting[key] = ids
		return s.locked
	})
	return func() {
		remove()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.of(ns).awaiting, key)
	}
}

// begin adds a listener or a caller that waits; add reports whether the session is
// ready for it.
func (n *Notices) begin(ns string, add func(*space) (ready bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !add(n.of(ns)) {
		n.connect()
		n.poke()
	}
	if !n.looking && !n.closing {
		n.looking = true
		n.roles.Go("looks", n.look)
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Committed tells the other processes what was committed here.
func (n *Notices) Committed(ns string, got *store.Notice) {
	if n.cfg.Dial == nil || !got.Due && len(got.Tasks)+len(got.Jobs)+len(got.Cancels)+len(got.Events) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return
	}
	s := n.of(ns)
	known := !s.news.empty()
	if s.news.add(got); !known {
		n.connect()
		n.poke()
	}
}

// InTx reports whether a caller's transaction is to carry a notice: one of 50 ms does.
func (n *Notices) InTx(ns string) bool {
	if n.cfg.Dial == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s, now := n.of(ns), time.Now()
	if now.Sub(s.inTx) < tellEvery {
		return false
	}
	s.inTx = now
	return true
}

// Claimed notes what a claim got.
func (n *Notices) Claimed(ns string, req *store.ClaimRequest, res *store.ClaimResult) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	if len(s.running)+len(res.Tasks) > maxRunning {
		clear(s.running) // hints only
	}
	for i := range res.Tasks {
		s.running[res.Tasks[i].Task.ID] = true
	}
	if n.cfg.Dial == nil || req.Again || req.Limit <= 0 || res.Stopped {
		return
	}
	w := s.workers[req.Worker]
	if w == nil {
		w = new(worker)
		s.workers[req.Worker] = w
	}
	switch {
	case len(res.Tasks) > 0:
		if w.since.IsZero() {
			w.since = time.Now()
			if w.says {
				n.poke()
			}
		}
		return
	case res.Next >= 0 && res.Next < tellEvery:
		return // something is due, or soon
	}
	w.idle, w.since = true, time.Time{}
	if !w.says {
		n.connect()
		n.poke()
	}
}

// Finished notes attempts that ended.
func (n *Notices) Finished(ns string, fins []store.Finish) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	for i := range fins {
		delete(s.running, fins[i].Lease.Task)
	}
}

// Left forgets a worker.
func (n *Notices) Left(ns string, id store.WorkerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of(ns).workers, id)
}

// change reports what a worker's row should say, and when it is to be written; zero:
// it says so. A worker is busy when for a while no claim of it found nothing.
func (w *worker) change() (idle bool, at time.Time) {
	busyAt := w.since.Add(sayEvery)
	switch {
	case w.says && !w.since.IsZero():
		return false, later(busyAt, w.wrote.Add(sayEvery))
	case !w.says && w.idle && w.since.IsZero():
		return true, w.wrote.Add(sayEvery)
	case w.says:
		return true, w.wrote.Add(sayAgain)
	}
	return w.says, time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
