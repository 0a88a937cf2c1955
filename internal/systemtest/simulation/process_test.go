package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// process is one life of a process: an engine, its view of the store, and its faults.
type process struct {
	sim    *simulation
	name   string // "e2.1": the second life of the third process
	place  int
	slots  int
	lossy  bool // its notices may be lost
	eng    *engine.Engine
	stop   context.CancelFunc
	worker store.WorkerID
	skew   time.Duration // difference of its reading of the store's clock

	dead       atomic.Bool
	over       atomic.Bool // Run has returned
	stopping   bool
	frozen     time.Time // its items wait until then
	faultUntil time.Time // it alone was cut off, in some way, until then
	seen       time.Time // the last call that reached the store
	beat       time.Time // send time of the last heartbeat that arrived
	streams    map[string]*rand.Rand

	inTx      atomic.Bool // a transaction of the user or of a step holds the write turn
	finishing atomic.Bool // a Finish is in progress
	recording atomic.Bool // a Record is in progress
	lastClaim time.Time   // answer time of the last claim
	more      bool        // the last claim left due tasks
	next      time.Duration
	lastReap  time.Time
	firstAsk  map[task.LeaseID]time.Time // first request of each claim
}

// start begins a life of the process at a place.
func (sim *simulation) start(place int) {
	life := sim.lives[place]
	sim.lives[place]++
	p := &process{
		sim: sim, name: fmt.Sprintf("e%d.%d", place, life), place: place,
		slots: sim.slots[place], lossy: sim.lossy[place], skew: sim.drawSkew(),
		streams: map[string]*rand.Rand{}, firstAsk: map[task.LeaseID]time.Time{},
	}
	cfg := engine.Config{
		Store:        &port{Store: sim.mem, p: p},
		Namespace:    ns,
		Handlers:     []engine.Handler{{Type: taskType.Name(), CodeVersion: 1, Run: p.run}},
		Slots:        p.slots,
		TTL:          sim.ttl,
		Poll:         time.Second,
		DrainTimeout: 3 * time.Second,
		Log:          slog.New(logGate{p: p}),
		Decider:      decide.Default{},
		Router:       decide.Direct{},
		Listeners:    new(engine.Listeners),
		InlineLimit:  64 << 10,
		CrashBudget:  crashBudget,
		IDs:          task.NewIDs(sim.idSource(p.name)),
	}
	if p.lossy {
		// The engine's jitter uses an unseeded generator. With this poll there is no jitter, and the port waits in
		// place of the engine.
		cfg.Poll = 4 * time.Nanosecond
	}
	if place == 2 {
		cfg.Queues = map[string]int{"a": 3, "b": 3}
	}
	cfg.Listeners.Add(p.emit)
	p.eng = engine.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	sim.procs[place] = p
	sim.logf("world start %s slots=%d lossy=%v skew=%v", p.name, p.slots, p.lossy, p.skew)
	sim.running.Add(1)
	go func() {
		defer sim.running.Done()
		err := p.eng.Run(ctx)
		cancel()
		p.over.Store(true)
		if running, ok := errors.AsType[*task.RunningError](err); ok && (sim.freezes > 0 || sim.tardy > 0 || sim.slow > 0) {
			sim.count("handlers given up", len(running.Tasks)) // frozen, or with long calls
			err = nil
		}
		if err != nil && !p.dead.Load() && !sim.broken.Load() && !strings.Contains(err.Error(), errFault.Error()) {
			sim.failf("%s: Run: %v", p.name, err)
		}
		sim.signal()
	}()
}

// kill ends a process in the middle of its work: its later actions have no effect.
func (sim *simulation) kill(p *process, declare bool) {
	p.dead.Store(true)
	p.frozen = time.Time{}
	sim.mu.Lock()
	for _, it := range sim.waiting {
		if it.proc == p {
			it.gone = true
			if it.open != nil {
				it.open <- gone
			}
		}
	}
	sim.mu.Unlock()
	p.stop()
	if declare && p.worker != "" {
		sim.mem.Kill(p.worker)
		sim.declared[p.worker] = true
	}
}

func (p *process) stream(class string) *rand.Rand {
	if p.streams[class] == nil {
		p.streams[class] = p.sim.stream(p.name + " " + class)
	}
	return p.streams[class]
}

// point is a place in the code of a process that waits at the gate, for at least d. It returns false when the process
// is dead.
func (p *process) point(ctx context.Context, d time.Duration, name string) bool {
	return p.sim.park(&item{proc: p, name: name, ctx: ctx, after: d}) != gone
}

// emit separates the ends of attempts: those of one batch come at once, and each frees a slot.
func (p *process) emit(ev event.Event) {
	if p.dead.Load() {
		return
	}
	h := ev.Head()
	switch ev.(type) {
	case event.TaskStarted, event.StepStarted, event.StepCompleted, event.StepFailed, event.Progress:
		return
	case event.TaskSucceeded:
		p.sim.announced(p, h)
	}
	p.point(context.Background(), 0, fmt.Sprintf("event %s %s/%d", ev.Type(), p.sim.label(h.TaskID), h.AttemptNo))
}

// logGate separates the logging goroutines: those of a failed batch also continue at once.
type logGate struct {
	p     *process
	attrs []slog.Attr // of the logger
}

func (logGate) Enabled(context.Context, slog.Level) bool { return true }
func (g logGate) WithGroup(string) slog.Handler          { return g }

func (g logGate) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logGate{g.p, append(slices.Clone(g.attrs), attrs...)}
}

func (g logGate) Handle(_ context.Context, r slog.Record) error {
	name := ""
	r = r.Clone()
	r.AddAttrs(g.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case task.ID:
			name += " " + g.p.sim.label(v)
		case int64:
			if a.Key == "epoch" {
				name += fmt.Sprintf("/%d", v)
			}
		}
		return true
	})
	if name != "" && !g.p.dead.Load() {
		g.p.point(context.Background(), 0, "log "+r.Message+name)
	}
	return nil
}
