package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faultstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task/event"
)

// sweepKind is a kind of store.
type sweepKind struct {
	name  string
	sql   bool
	file  bool
	limit time.Duration // of virtual time for one play; what takes longer hangs
	build func(w *sweepWorld) sweepGround
}

// sweepGround is a store that outlives processes.
type sweepGround struct {
	eyes store.Store                                   // the test's own view
	open func() store.Store                            // for a new process
	bury func(s store.Store, workers []store.WorkerID) // after a process died
	tidy func()                                        // when all is over
}

var sweepKinds = []sweepKind{
	{name: "memstore", limit: 3 * time.Minute, build: func(*sweepWorld) sweepGround {
		s := memstore.New()
		return sweepGround{
			eyes: s,
			open: func() store.Store { return s },
			bury: func(_ store.Store, workers []store.WorkerID) {
				for _, id := range workers {
					s.Kill(id)
				}
			},
			tidy: func() {},
		}
	}},
	{name: "sqlite memory", sql: true, limit: 3 * time.Minute, build: func(w *sweepWorld) sweepGround {
		db, err := sqlite.OpenMemory(w.ctx)
		w.migrate(db, err)
		return sweepGround{
			eyes: db,
			open: func() store.Store { return db },
			bury: func(store.Store, []store.WorkerID) {}, // nothing tells: its leases expire
			tidy: func() { w.must(db.Close()) },
		}
	}},
	{name: "sqlite file", sql: true, file: true, limit: 3 * time.Minute, build: func(w *sweepWorld) sweepGround {
		path := filepath.Join(w.TempDir(), "weaver.db")
		var all []*sqlite.DB
		open := func() store.Store {
			db, err := sqlite.Open(w.ctx, path, sqlite.Synchronous(sqlite.Normal)) // no power fails here
			w.migrate(db, err)
			w.mu.Lock()
			defer w.mu.Unlock()
			all = append(all, db)
			return db
		}
		return sweepGround{
			eyes: open(),
			open: open,
			bury: func(s store.Store, _ []store.WorkerID) { w.must(s.(*sqlite.DB).Close()) }, // its locks are free
			tidy: func() {
				for _, db := range all {
					w.must(db.Close())
				}
			},
		}
	}},
}

// sweepWorld is the stage of one play of a scene: a store, processes that come
// and go, and a caller who stands outside and asks until he is answered.
type sweepWorld struct {
	*testing.T
	ctx    context.Context // ends at the limit of virtual time; a scope
	kind   sweepKind
	scene  *sweepScene
	point  string        // which fault at which call
	known  *knownTrouble // what is known to be wrong there; usually nil
	ground sweepGround
	client *weaver.Client // the caller's
	watch  sweepWatch

	mu      sync.Mutex
	over    bool // the play has ended: who dies now is not replaced
	process *sweepProcess
	changed chan struct{} // closed when process or over changes
	all     []*sweepProcess
	marks   map[string]chan struct{}
	told    map[string]int // step functions that started, and events, by task type
	order   []string       // what note was told
	holders []*sweepHolder // of concurrency keys
}

// sweepProcess is one process: an engine on the store as that process sees it.
type sweepProcess struct {
	w      *sweepWorld
	base   store.Store
	fault  *faultstore.Process
	engine *weaver.Engine
	cancel context.CancelFunc
	ended  chan struct{} // closed when the engine runs no more
	buried chan struct{} // closed when, beside that, a dead process is replaced
	deaf   atomic.Bool   // it may end with a handler that does not return
}

// sweepStop ends a play early, and says why.
type sweepStop string

// wrong reports a violation, with the point at which it showed.
func (w *sweepWorld) wrong(format string, args ...any) {
	w.Helper()
	w.Errorf("%s\n\tscene %q on %s, %s", fmt.Sprintf(format, args...), w.scene.name, w.kind.name, w.point)
}

// giveUp is wrong, and the end of the play. Only the play itself may call it.
func (w *sweepWorld) giveUp(format string, args ...any) {
	w.Helper()
	w.wrong(format, args...)
	panic(sweepStop(fmt.Sprintf(format, args...)))
}

func (w *sweepWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.giveUp("%v", err)
	}
}

func (w *sweepWorld) migrate(db *sqlite.DB, err error) {
	if err == nil {
		err = db.Migrate(w.ctx)
	}
	w.must(err)
}

var sweepLog = slog.New(slog.DiscardHandler)

// begin starts a process, which is the one that callers talk to from now on.
func (w *sweepWorld) begin(plan faultstore.Plan) *sweepProcess {
	return w.start(plan, func(p *sweepProcess) {
		w.process = p
		close(w.changed)
		w.changed = make(chan struct{})
	})
}

// beside starts a process that no caller knows.
func (w *sweepWorld) beside() { w.start(nil, func(*sweepProcess) {}) }

// start starts a process that is made known before it lives: it may be dead,
// and replaced, a moment later.
func (w *sweepWorld) start(plan faultstore.Plan, known func(*sweepProcess)) *sweepProcess {
	p := &sweepProcess{w: w, base: w.ground.open(), ended: make(chan struct{}), buried: make(chan struct{})}
	p.fault = faultstore.New(w.watched(p.base), plan)
	cfg := w.scene.cfg
	cfg.Logger = sweepLog
	cfg.Handlers = w.scene.handlers(w)
	if cfg.Lease == 0 {
		cfg.Lease = 6 * time.Second
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 4
	}
	cfg.Sink = p
	cfg.Middleware = append(cfg.Middleware, p.mark)
	eng, err := weaver.New(p.fault.Store(), cfg)
	if err != nil {
		panic(err) // a mistake of the scene
	}
	p.engine = eng
	ctx, cancel := context.WithCancel(w.ctx)
	p.cancel = cancel
	w.mu.Lock()
	w.all = append(w.all, p)
	known(p)
	w.mu.Unlock()
	go p.run(ctx)
	go p.follow()
	return p
}

// run runs the engine until it is stopped. One that could not start is
// started again, as service managers do.
func (p *sweepProcess) run(ctx context.Context) {
	defer close(p.ended)
	for ctx.Err() == nil && !p.fault.Died() {
		run := p.engine.Run
		if p.w.scene.untilIdle {
			run = p.engine.RunUntilIdle
		}
		err := run(ctx)
		if errors.Is(err, context.Canceled) {
			return // stopped before it began
		}
		_, deaf := errors.AsType[*weaver.RunningError](err)
		if err != nil && !ours(err) && !(deaf && p.deaf.Load()) && p.w.ctx.Err() == nil {
			p.w.wrong("the engine returned %v", err)
		}
		sleep(ctx, time.Second)
	}
}

// ours reports whether the fault explains an error.
func ours(err error) bool {
	return errors.Is(err, faultstore.ErrInjected) || errors.Is(err, faultstore.ErrDead)
}

// follow waits for the death of the process, and lets another one take over.
func (p *sweepProcess) follow() {
	defer close(p.buried)
	select {
	case <-p.fault.Dead():
	case <-p.ended:
		if !p.fault.Died() {
			return
		}
		<-p.fault.Dead()
	}
	w := p.w
	w.look("just after a process died")
	p.engine.StopNow() // a dead engine runs on in this bubble: end it
	p.cancel()
	w.ground.bury(p.base, p.fault.Workers())
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if !over {
		w.begin(nil)
	}
}

// stop ends the process in good order.
func (p *sweepProcess) stop() {
	p.cancel()
	<-p.ended
	<-p.buried
}

// restart stops the process that callers talk to and starts another one.
func (w *sweepWorld) restart() {
	p, err := w.living(w.ctx)
	w.must(err)
	if p.stop(); !p.fault.Died() {
		w.begin(nil)
	}
}

// living returns the process that callers talk to, when there is one.
func (w *sweepWorld) living(ctx context.Context) (*sweepProcess, error) {
	for {
		w.mu.Lock()
		p, changed := w.process, w.changed
		w.mu.Unlock()
		if p != nil && !p.fault.Died() {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// end closes the stage: every process is stopped or dead, and has ended.
func (w *sweepWorld) end() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	for i := 0; ; i++ { // while they stop they may still be replaced
		w.mu.Lock()
		if i == len(w.all) {
			w.mu.Unlock()
			break
		}
		p := w.all[i]
		w.mu.Unlock()
		p.stop()
	}
}

type sweepProcessKey struct{}

// mark lets a handler's context name its process. In a dead process no
// handler starts.
func (p *sweepProcess) mark(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		if p.fault.Died() {
			return nil, faultstore.ErrDead
		}
		return next(context.WithValue(ctx, sweepProcessKey{}, p), input)
	}
}

// Emit implements weaver.Sink: it counts what listeners are told.
func (p *sweepProcess) Emit(ev event.Event) {
	switch ev.(type) {
	case event.LogWritten, event.Progress, event.StreamChunk, event.TaskStarted, event.StepStarted:
		return // may be told any number of times
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if !p.fault.Died() {
		p.w.told[ev.Type()+" "+ev.Head().TaskType]++
	}
}

func processOf(ctx context.Context) *sweepProcess {
	return ctx.Value(sweepProcessKey{}).(*sweepProcess)
}

// sleep waits for a while, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
