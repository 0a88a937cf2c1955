package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// process is one life of a process: an engine, what it sees of the store, and
// its troubles.
type process struct {
	w      *world
	name   string // "e2.1": the second life of the third process
	place  int
	slots  int
	lossy  bool // its notices may get lost
	eng    *engine.Engine
	stop   context.CancelFunc
	worker store.WorkerID
	skew   time.Duration // how far off the store's clock reads here

	dead     atomic.Bool
	over     atomic.Bool // Run has returned
	stopping bool
	frozen   time.Time // nothing passes before
	trouble  time.Time // it alone was cut off, in one way or another, until then
	seen     time.Time // the store heard of it last
	beat     time.Time // when the last heartbeat was sent that got there
	streams  map[string]*rand.Rand

	finishing atomic.Bool // a Finish is under way
	lastClaim time.Time   // when the last claim was answered
	more      bool        // and more was due
	next      time.Duration
	lastReap  time.Time
	firstAsk  map[task.LeaseID]time.Time // when a claim was asked for first
}

// start begins a life of the process at a place.
func (w *world) start(place int) {
	life := w.lives[place]
	w.lives[place]++
	p := &process{
		w: w, name: fmt.Sprintf("e%d.%d", place, life), place: place,
		slots: w.slots[place], lossy: w.lossy[place], skew: w.drawSkew(),
		streams: map[string]*rand.Rand{}, firstAsk: map[task.LeaseID]time.Time{},
	}
	cfg := engine.Config{
		Store:        &port{Store: w.mem, p: p},
		Namespace:    ns,
		Handlers:     []engine.Handler{{Type: taskType.Name(), CodeVersion: 1, Run: p.run}},
		Slots:        p.slots,
		TTL:          w.ttl,
		Poll:         time.Second,
		DrainTimeout: 3 * time.Second,
		Log:          slog.New(logGate{p}),
		Decider:      decide.Default{},
		Router:       decide.Direct{},
		Sink:         event.SinkFunc(p.emit),
		InlineLimit:  64 << 10,
		CrashBudget:  crashBudget,
		IDs:          task.NewIDs(w.entropy(p.name)),
	}
	if p.lossy {
		// The engine's jitter comes from a generator that nobody can seed. With
		// this poll there is none, and the port waits in the engine's place.
		cfg.Poll = 4 * time.Nanosecond
	}
	if place == 2 {
		cfg.Queues = map[string]int{"a": 3, "b": 3}
	}
	p.eng = engine.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	w.procs[place] = p
	w.logf("world start %s slots=%d lossy=%v skew=%v", p.name, p.slots, p.lossy, p.skew)
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		err := p.eng.Run(ctx)
		cancel()
		p.over.Store(true)
		if deaf, ok := errors.AsType[*task.RunningError](err); ok && (w.freezes > 0 || w.tardy > 0 || w.slow > 0) {
			w.count("handlers given up", len(deaf.Tasks)) // they were frozen, or their calls took long
			err = nil
		}
		if err != nil && !p.dead.Load() && !w.broken.Load() && !strings.Contains(err.Error(), errFault.Error()) {
			w.failf("%s: Run: %v", p.name, err)
		}
		w.signal()
	}()
}

// kill ends a process in the middle of whatever it does: nothing of it has an
// effect from now on.
func (w *world) kill(p *process, declare bool) {
	p.dead.Store(true)
	p.frozen = time.Time{}
	w.mu.Lock()
	for _, it := range w.waiting {
		if it.proc == p {
			it.left = true
			if it.open != nil {
				it.open <- gone
			}
		}
	}
	w.mu.Unlock()
	p.stop()
	if declare && p.worker != "" {
		w.mem.Kill(p.worker)
		w.declared[p.worker] = true
	}
}

func (p *process) stream(class string) *rand.Rand {
	if p.streams[class] == nil {
		p.streams[class] = p.w.stream(p.name + " " + class)
	}
	return p.streams[class]
}

// point is a place in the code of a process at which it waits at the gate,
// for at least d. It reports false when the process is dead.
func (p *process) point(ctx context.Context, d time.Duration, name string) bool {
	return p.w.park(&item{proc: p, name: name, ctx: ctx, after: d}) != gone
}

// emit keeps the ends of attempts apart: those of one batch come at once, and
// each frees a slot.
func (p *process) emit(ev event.Event) {
	if p.dead.Load() {
		return
	}
	h := ev.Head()
	switch ev.(type) {
	case event.TaskStarted, event.StepStarted, event.StepCompleted, event.StepFailed, event.Progress:
		return
	case event.TaskSucceeded:
		p.w.told(p, h)
	}
	p.point(context.Background(), 0, fmt.Sprintf("event %s %s/%d", ev.Type(), p.w.label(h.TaskID), h.AttemptNo))
}

// logGate keeps the logging goroutines apart: those of a failed batch go on at
// once, too.
type logGate struct{ p *process }

func (logGate) Enabled(context.Context, slog.Level) bool { return true }
func (g logGate) WithAttrs([]slog.Attr) slog.Handler     { return g }
func (g logGate) WithGroup(string) slog.Handler          { return g }

func (g logGate) Handle(_ context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case task.ID:
			name += " " + g.p.w.label(v)
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
