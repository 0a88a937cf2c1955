package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
)

// Seen is the result of a look at a worker with claims.
type Seen struct {
	NS       string
	ID       store.WorkerID
	LastSeen int64         // of its row; it changes with each sign of life
	Grace    time.Duration // of its row; 0: it keeps no session
	Held     bool          // its advisory lock is held; the row is read before
	Place    workerlock.Place
}

// Looker looks at workers, in one session of the server.
type Looker interface {
	// Look returns the workers of the namespaces that have claims.
	Look(ctx context.Context, namespaces []string) ([]Seen, error)
	Close()
}

// ObserverConfig configures an Observer.
type ObserverConfig struct {
	// Dial opens the session of a Looker. Looks that do not share one session must return
	// workers without a Grace.
	Dial func(ctx context.Context) (Looker, error)
	// Own reports whether a worker belongs to this process.
	Own func(ns string, id store.WorkerID) bool
	// Found is called, at each look, with each namespace that has dead workers. It must not
	// block.
	Found  func(ns string)
	Folder *workerlock.Folder // for locks on this machine; may be nil
	Asked  bool               // it looks only when Dead is called
	Log    *slog.Logger
}

const (
	lookEvery  = 800 * time.Millisecond // while others have claims
	lookIdle   = 2 * time.Second        // while no others have claims
	locksEvery = 200 * time.Millisecond // at locks on this machine
	lookLimit  = 5 * time.Second
	freshLook  = 100 * time.Millisecond // Dead looks again if the last look is older
)

// Observer finds dead workers. It is safe for concurrent use.
type Observer struct {
	cfg     ObserverConfig
	turn    chan struct{} // has a value while the session is in use
	wake    chan struct{}
	roles   *group.Group
	closing func() error    // close, once
	done    <-chan struct{} // of roles

	looker Looker // protected by turn

	mu      sync.Mutex
	watched map[string]bool
	workers map[key]*observed // in this session
	looked  time.Time         // begin of the last look
	warned  bool              // of failing looks
}

// observed is this session's observation of a worker.
type observed struct {
	Seen
	held bool      // its lock was seen held
	free time.Time // begin of the looks that found it free; zero: it was not free
	base int64     // LastSeen at the first of these looks
	dead bool
}

// Observe returns an Observer, which must be closed. It looks once it watches a namespace.
func Observe(cfg ObserverConfig) *Observer {
	o := &Observer{
		cfg: cfg, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		watched: make(map[string]bool), workers: make(map[key]*observed), roles: group.New(context.Background()),
	}
	o.done, o.closing = o.roles.Context().Done(), sync.OnceValue(o.close)
	if !cfg.Asked {
		o.roles.Go("observer", o.run)
	}
	return o
}

// Watch makes the Observer look at the workers of a namespace from now on.
func (o *Observer) Watch(ns string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watched[ns] {
		return
	}
	o.watched[ns] = true
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Close ends the session. It may be called again.
func (o *Observer) Close() error { return o.closing() }

func (o *Observer) close() error {
	o.roles.Cancel(errClosed)
	err := o.roles.Wait()
	o.turn <- struct{}{} // never released
	if o.looker != nil {
		o.looker.Close()
	}
	return err
}

func (o *Observer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if len(o.namespaces()) == 0 {
			wait(o.done, -1, o.wake)
			continue
		}
		o.look(ctx, 0)
		o.tell(nil)
		o.watchLocks(ctx, o.next())
	}
	return nil
}

// watchLocks looks at the locks on this machine until the next look at the database.
func (o *Observer) watchLocks(ctx context.Context, until time.Time) {
	places := o.places()
	for ctx.Err() == nil {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		if len(places) == 0 {
			wait(o.done, left, o.wake)
			return
		}
		wait(o.done, min(left, locksEvery), nil)
		o.tell(o.freeLocks(places))
	}
}

// tell reports namespaces with dead workers.
func (o *Observer) tell(free map[string]bool) {
	o.mu.Lock()
	for w, s := range o.workers {
		if s.dead && free == nil {
			free = map[string]bool{w.ns: true}
		} else if s.dead {
			free[w.ns] = true
		}
	}
	o.mu.Unlock()
	for ns := range free {
		o.cfg.Found(ns)
	}
}

// freeLocks returns the namespaces with workers whose locks on this machine look free.
func (o *Observer) freeLocks(places map[key]workerlock.Place) map[string]bool {
	free := make(map[string]bool)
	for w, p := range places {
		if o.cfg.Folder.LooksDeadAt(w.ns, w.id, p) {
			free[w.ns] = true
		}
	}
	return free
}

// places returns the places of the locks on this machine.
func (o *Observer) places() map[key]workerlock.Place {
	o.mu.Lock()
	defer o.mu.Unlock()
	places := make(map[key]workerlock.Place)
	for w, s := range o.workers {
		if o.cfg.Folder.Here(s.Place) {
			places[w] = s.Place
		}
	}
	return places
}

func (o *Observer) namespaces() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]string, 0, len(o.watched))
	for ns := range o.watched {
		all = append(all, ns)
	}
	return all
}

// next returns the time of the next look at the database, soon enough to find the end of a
// worker's grace.
func (o *Observer) next() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	every := lookIdle
	if len(o.workers) > 0 {
		every = lookEvery
	}
	at := o.looked.Add(every)
	for _, s := range o.workers {
		if s.dead || s.free.IsZero() {
			continue
		}
		if end := s.free.Add(s.Grace + Margin); end.Before(at) {
			at = end
		}
	}
	return at
}

// look looks once, if the last look is older than fresh. It reports whether the observations
// are of this session.
func (o *Observer) look(ctx context.Context, fresh time.Duration) bool {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return false
	case <-o.done:
		return false
	}
	began := time.Now()
	o.mu.Lock()
	recent := o.looker != nil && began.Sub(o.looked) < fresh
	o.looked = began
	o.mu.Unlock()
	if recent {
		return true
	}
	limit, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if o.looker == nil {
		o.forget() // observations of another session
		looker, err := o.cfg.Dial(limit)
		if err != nil {
			o.failed(ctx, err)
			return false
		}
		o.looker = looker
		began = time.Now()
	}
	seen, err := o.looker.Look(limit, o.namespaces())
	if err != nil {
		o.looker.Close()
		o.looker = nil
		o.forget()
		o.failed(ctx, err)
		return false
	}
	o.compare(seen, began, time.Now())
	return true
}

func (o *Observer) failed(ctx context.Context, err error) {
	o.mu.Lock()
	again := o.warned
	o.warned = true
	o.mu.Unlock()
	if !again && ctx.Err() == nil {
		o.cfg.Log.Warn("cannot check whether other workers live: leases of dead workers must expire meanwhile", "error", err)
	}
}

// forget discards all observations.
func (o *Observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.workers)
}

// compare records the result of a look that was requested and answered at these times.
func (o *Observer) compare(seen []Seen, asked, answered time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.warned = false
	known := o.workers
	o.workers = make(map[key]*observed, len(seen))
	for _, s := range seen {
		if o.cfg.Own(s.NS, s.ID) {
			continue
		}
		w := known[key{s.NS, s.ID}]
		if w == nil {
			w = new(observed)
		}
		w.Seen, w.dead = s, false
		o.workers[key{s.NS, s.ID}] = w
		switch {
		case s.Grace <= 0: // it keeps no session
			w.held, w.free = false, time.Time{}
		case s.Held:
			w.held, w.free = true, time.Time{}
		case !w.held: // a lock that was never seen held proves nothing
		case w.free.IsZero() || w.base != s.LastSeen: // another session may have had it between two looks
			w.free, w.base = answered, s.LastSeen
		default:
			w.dead = asked.Sub(w.free) >= s.Grace+Margin
		}
	}
}
