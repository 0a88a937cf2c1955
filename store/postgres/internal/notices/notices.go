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

// ErrNotDirect means that the connection does not end at the server, so that no session can be
// kept.
var ErrNotDirect = errors.New("the connection to the server is not direct")

// Config configures Notices.
type Config struct {
	// Schema is the schema of the tables.
	Schema string
	// Dial opens a session. ErrNotDirect means that a session is impossible at the moment. If
	// Dial is nil, no notification is sent or received.
	Dial func(ctx context.Context) (*pgx.Conn, error)
	// Look returns the changes that a process waits for.
	Look func(ctx context.Context, ns string, w Wanted) (Found, error)
	// Listeners are the listeners of this process.
	Listeners *notify.Listeners
}

// Wanted lists the tasks and jobs that a process waits for.
type Wanted struct {
	Running []task.ID // tasks that it runs, to its knowledge
	Awaited []task.ID // tasks and jobs that its callers wait for
}

// Found is the result of a poll.
type Found struct {
	Cancels []task.ID     // running tasks that were asked to cancel
	Stopped []task.ID     // tasks that do not run any more
	Over    []task.ID     // awaited tasks and jobs that ended, are blocked or do not exist
	Due     time.Time     // the earliest deadline; zero: no deadline is set
	In      time.Duration // the time until then
	Chores  bool          // chores are left
}

const (
	// tellEvery is the minimum interval between two notifications of a process.
	tellEvery = 50 * time.Millisecond
	// sayEvery is the minimum interval between two writes of a worker's row.
	sayEvery = time.Second
	// sayAgain is the interval at which an idle worker writes its row in any case, because the
	// row may have been recreated.
	sayAgain = 30 * time.Second
	// lookEvery is the poll interval.
	lookEvery = time.Second
	// keepFor is the time for which the session keeps listening without a listener, because a
	// listener may soon return.
	keepFor = 10 * time.Second
	// lastWord is the maximum time for which Close waits for the last notification.
	lastWord = 500 * time.Millisecond
	// maxIDs is the maximum number of IDs in one notice.
	maxIDs = 100
	// maxRunning is the maximum number of cached running tasks.
	maxRunning = 1 << 16
)

// Notices are the notifications of a process. It is safe for concurrent use.
type Notices struct {
	cfg   Config
	roles *group.Group
	wake  chan struct{} // for look: there is a listener
	ended chan struct{} // closed after the last notification; nil: there is no session

	mu        sync.Mutex
	spaces    map[string]*space
	interrupt context.CancelFunc // ends the session's wait; nil: it does not wait
	poked     bool               // set since the session last checked for work
	looking   bool
	closing   bool
	told      time.Time // time of the last notification
}

// space is the state of a namespace.
type space struct {
	listeners int
	awaiting  map[int]func() []task.ID // the tasks and jobs that callers wait for
	next      int
	left      time.Time // when the last listener or caller left
	heard     bool      // the session listens for it
	locked    bool      // the session holds the lock of waiting callers
	news      news      // not sent yet
	workers   map[store.WorkerID]*worker
	running   map[task.ID]bool
	deadline  time.Time // the last announced deadline
	inTx      time.Time // when a caller's transaction last contained a notice
}

// worker is a worker of this process.
type worker struct {
	idle  bool      // its last claim found nothing
	since time.Time // when it first claimed tasks after that
	says  bool      // idle according to its row
	wrote time.Time // when the row was written
}

// New returns Notices. The caller must close them.
func New(cfg Config) *Notices {
	return &Notices{cfg: cfg, roles: group.New(context.Background()), wake: make(chan struct{}, 1), spaces: make(map[string]*space)}
}

// Close sends the last notification, within a short time, and ends the session. It may be
// called again.
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

// of returns the state of a namespace. The caller holds the lock.
func (n *Notices) of(ns string) *space {
	s := n.spaces[ns]
	if s == nil {
		s = &space{awaiting: make(map[int]func() []task.ID), workers: make(map[store.WorkerID]*worker), running: make(map[task.ID]bool)}
		n.spaces[ns] = s
	}
	return s
}

// connect starts the session. The caller holds the lock.
func (n *Notices) connect() {
	if n.cfg.Dial != nil && n.ended == nil && !n.closing {
		n.ended = make(chan struct{})
		n.roles.Go("notices", n.keep)
	}
}

// poke makes the session check for work. The caller holds the lock.
func (n *Notices) poke() {
	n.poked = true
	if n.interrupt != nil {
		n.interrupt()
	}
}

// Listen calls fn with the notices of a namespace until stop returns, including notices of
// other processes.
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

// Await is Listen for callers that wait for the tasks and jobs that ids returns. Polls look
// for their ends too.
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

// begin adds a listener or a waiting caller. add reports whether the session is ready for it.
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

// Committed notifies the other processes of a commit of this process.
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

// InTx reports whether a caller's transaction should contain a notice: one in each 50 ms
// should.
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

// Claimed records the result of a claim.
func (n *Notices) Claimed(ns string, req *store.ClaimRequest, res *store.ClaimResult) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	if len(s.running)+len(res.Tasks) > maxRunning {
		clear(s.running) // they are hints only
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
		return // a task is due, now or soon
	}
	w.idle, w.since = true, time.Time{}
	if !w.says {
		n.connect()
		n.poke()
	}
}

// Finished records ended attempts.
func (n *Notices) Finished(ns string, fins []store.Finish) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of(ns)
	for i := range fins {
		delete(s.running, fins[i].Lease.Task)
	}
}

// Left removes a worker.
func (n *Notices) Left(ns string, id store.WorkerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of(ns).workers, id)
}

// change returns the idle state that a worker's row should have, and the time to write it;
// zero: the row has it. A worker is busy after a while without a claim that found nothing.
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
