package sweep_test

import (
	"context"
	"database/sql"
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
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// storeKind is a kind of store.
type storeKind struct {
	name   string
	sql    bool
	file   bool // a sample of the cases is enough
	server bool
	limit  time.Duration // of virtual time for one run; a longer run hangs
	insert string        // inserts a row into the user's table
	tx     func(tx *sql.Tx) store.Tx
	build  func(fx *fixture) backend
}

// backend is a store that survives its processes.
type backend struct {
	observer   store.Store                                   // the test's own handle
	open       func() store.Store                            // for a new process
	afterDeath func(s store.Store, workers []store.WorkerID) // called after a process died
	close      func()                                        // called at the end
}

var storeKinds = []storeKind{
	{name: "memstore", limit: 3 * time.Minute, build: func(*fixture) backend {
		s := memstore.New()
		return backend{
			observer: s,
			open:     func() store.Store { return s },
			afterDeath: func(_ store.Store, workers []store.WorkerID) {
				for _, id := range workers {
					s.Kill(id)
				}
			},
			close: func() {},
		}
	}},
	{name: "sqlite memory", sql: true, limit: 3 * time.Minute, insert: sqliteInsert, tx: sqlite.Tx, build: func(fx *fixture) backend {
		db, err := sqlite.OpenMemory(fx.ctx)
		fx.migrate(db, err)
		return backend{
			observer:   db,
			open:       func() store.Store { return db },
			afterDeath: func(store.Store, []store.WorkerID) {}, // no proof of death: its leases expire
			close:      func() { fx.must(db.Close()) },
		}
	}},
	{name: "sqlite file", sql: true, file: true, limit: 3 * time.Minute, insert: sqliteInsert, tx: sqlite.Tx, build: func(fx *fixture) backend {
		path := filepath.Join(fx.TempDir(), "weaver.db")
		var all []*sqlite.DB
		open := func() store.Store {
			db, err := sqlite.Open(fx.ctx, path, sqlite.Synchronous(sqlite.Normal)) // power does not fail here
			fx.migrate(db, err)
			fx.mu.Lock()
			defer fx.mu.Unlock()
			all = append(all, db)
			return db
		}
		return backend{
			observer:   open(),
			open:       open,
			afterDeath: func(s store.Store, _ []store.WorkerID) { fx.must(s.(*sqlite.DB).Close()) }, // releases its locks
			close: func() {
				for _, db := range all {
					fx.must(db.Close())
				}
			},
		}
	}},
	onPostgres,
}

const sqliteInsert = "INSERT INTO sweep (name) VALUES (?)"

// fixture is the environment of one run of a case: a store, processes that start, stop and die, and a caller that
// repeats its requests until it gets an answer.
type fixture struct {
	*testing.T
	ctx     context.Context // ends at the limit of virtual time; a scope
	kind    storeKind
	tc      *testCase
	point   string          // the fault and its call
	next    faultstore.Plan // of every process that replaces another one
	known   *knownFailure   // known failure at this point; usually nil
	backend backend
	client  *weaver.Client     // the caller's
	bucket  blob.Bucket        // nil: no bucket
	hints   delivery.Transport // nil: no transport
	checker checker

	mu      sync.Mutex
	over    bool // the run has ended: dead processes are no longer replaced
	process *process
	changed chan struct{} // closed when process or over changes
	all     []*process
	marks   map[string]chan struct{}
	counts  map[string]int    // started step functions and events, by task type
	order   []string          // recorded by note
	holders []*holder         // of concurrency keys
	effects map[string]string // effects at a partner, by the key of the step: "done" or "undone"
}

// process is an engine with a store as the process sees it.
type process struct {
	fx       *fixture
	base     store.Store
	fault    *faultstore.Process
	engine   *weaver.Engine
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the engine has stopped
	replaced chan struct{} // closed when the engine has stopped and a dead process has been replaced
	abandons atomic.Bool   // it may end with a handler that does not return
}

// abort is the reason for an early end of a run.
type abort string

// errorf reports a violation with its point.
func (fx *fixture) errorf(format string, args ...any) {
	fx.Helper()
	fx.Errorf("%s\n\tcase %q on %s, %s", fmt.Sprintf(format, args...), fx.tc.name, fx.kind.name, fx.point)
}

// fatal is errorf and ends the run. Only the goroutine of the case may call it.
func (fx *fixture) fatal(format string, args ...any) {
	fx.Helper()
	fx.errorf(format, args...)
	panic(abort(fmt.Sprintf(format, args...)))
}

func (fx *fixture) must(err error) {
	fx.Helper()
	if err != nil {
		fx.fatal("%v", err)
	}
}

func (fx *fixture) migrate(db *sqlite.DB, err error) {
	if err == nil {
		err = db.Migrate(fx.ctx)
	}
	fx.must(err)
}

var discardLog = slog.New(slog.DiscardHandler)

// begin starts a process and directs callers to it.
func (fx *fixture) begin(plan faultstore.Plan) *process {
	return fx.start(plan, func(p *process) {
		fx.process = p
		close(fx.changed)
		fx.changed = make(chan struct{})
	})
}

// beside starts a process that callers do not use.
func (fx *fixture) beside() { fx.start(nil, func(*process) {}) }

// start starts a process and publishes it first: it may be dead and replaced a moment later.
func (fx *fixture) start(plan faultstore.Plan, known func(*process)) *process {
	p := &process{fx: fx, base: fx.backend.open(), ended: make(chan struct{}), replaced: make(chan struct{})}
	p.fault = faultstore.New(fx.checked(p.base), plan)
	cfg := fx.tc.cfg
	cfg.Logger = discardLog
	cfg.Handlers = fx.tc.handlers(fx)
	if cfg.Lease == 0 {
		cfg.Lease = 6 * time.Second
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 4
	}
	cfg.Sink, cfg.Bucket, cfg.Delivery = p, fx.bucket, fx.hints
	cfg.Middleware = append(cfg.Middleware, p.withProcess)
	eng, err := weaver.New(p.fault.Store(), cfg)
	if err != nil {
		panic(err) // an error in the case
	}
	p.engine = eng
	ctx, cancel := context.WithCancel(fx.ctx)
	p.cancel = cancel
	fx.mu.Lock()
	fx.all = append(fx.all, p)
	known(p)
	fx.mu.Unlock()
	go p.run(ctx)
	go p.awaitDeath()
	return p
}

// run runs the engine until it is stopped. An engine that fails to start is started again, as by a service manager.
func (p *process) run(ctx context.Context) {
	defer close(p.ended)
	for ctx.Err() == nil && !p.fault.Died() {
		run := p.engine.Run
		if p.fx.tc.untilIdle {
			run = p.engine.RunUntilIdle
		}
		err := run(ctx)
		if errors.Is(err, context.Canceled) {
			return // stopped before it began
		}
		_, ignoring := errors.AsType[*task.RunningError](err)
		if err != nil && !injected(err) && !(ignoring && p.abandons.Load()) && p.fx.ctx.Err() == nil {
			p.fx.errorf("the engine returned %v", err)
		}
		sleep(ctx, time.Second)
	}
}

// injected reports whether the fault explains an error.
func injected(err error) bool {
	return errors.Is(err, faultstore.ErrInjected) || errors.Is(err, faultstore.ErrDead)
}

// awaitDeath waits for the death of the process and starts its replacement.
func (p *process) awaitDeath() {
	defer close(p.replaced)
	select {
	case <-p.fault.Dead():
	case <-p.ended:
		if !p.fault.Died() {
			return
		}
		<-p.fault.Dead()
	}
	fx := p.fx
	fx.check("just after a process died")
	p.engine.StopNow() // a dead engine still runs in this bubble: end it
	p.cancel()
	fx.backend.afterDeath(p.base, p.fault.Workers())
	fx.mu.Lock()
	over := fx.over
	fx.mu.Unlock()
	if !over {
		fx.begin(fx.next)
	}
}

// stop shuts the process down gracefully.
func (p *process) stop() {
	p.cancel()
	<-p.ended
	<-p.replaced
}

// restart stops the process used by callers and starts another one.
func (fx *fixture) restart() {
	p, err := fx.living(fx.ctx)
	fx.must(err)
	if p.stop(); !p.fault.Died() {
		fx.begin(fx.next)
	}
}

// living returns the process used by callers, once there is one.
func (fx *fixture) living(ctx context.Context) (*process, error) {
	for {
		fx.mu.Lock()
		p, changed := fx.process, fx.changed
		fx.mu.Unlock()
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

// end stops every process and waits for the end of each.
func (fx *fixture) end() {
	fx.mu.Lock()
	fx.over = true
	fx.mu.Unlock()
	for i := 0; ; i++ { // processes may still be replaced while they stop
		fx.mu.Lock()
		if i == len(fx.all) {
			fx.mu.Unlock()
			break
		}
		p := fx.all[i]
		fx.mu.Unlock()
		p.stop()
	}
}

type processKey struct{}

// withProcess puts the process into a handler's context. In a dead process no handler starts.
func (p *process) withProcess(next weaver.HandlerFunc) weaver.HandlerFunc {
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		if p.fault.Died() {
			return nil, faultstore.ErrDead
		}
		return next(context.WithValue(ctx, processKey{}, p), input)
	}
}

// Emit implements event.Sink: it counts the events.
func (p *process) Emit(ev event.Event) {
	switch ev.(type) {
	case event.LogWritten, event.Progress, event.StreamChunk, event.TaskStarted, event.StepStarted:
		return // its number of occurrences varies
	}
	p.fx.mu.Lock()
	defer p.fx.mu.Unlock()
	if !p.fault.Died() {
		if !ev.Head().TaskID.IsZero() { // job results are read only for listeners, and not again after a fault
			p.fx.counts[ev.Type()+" "+ev.Head().TaskType]++
		}
	}
}

func processOf(ctx context.Context) *process {
	return ctx.Value(processKey{}).(*process)
}

// sleep waits for a while, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
