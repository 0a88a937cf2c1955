package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store/memstore"
)

// script is the input of a task: the actions of its handler, in order.
type script struct {
	Do       []action `json:"do"`
	Stubborn bool     `json:"stubborn,omitempty"` // continues after a failed step
}

type action struct {
	What string `json:"what"`
	For  int    `json:"for,omitempty"` // milliseconds
	N    int    `json:"n,omitempty"`

	Of []script `json:"of,omitempty"` // of its children
}

var taskType = weaver.Define[script, []string]("systemtest.simulation.run.v1")

var (
	errDead     = errors.New("the process is dead")
	errScripted = errors.New("as the script says")
)

// attempt is an attempt that runs a script.
type attempt struct {
	p   *process
	a   *engine.Attempt
	tag string // T3/2

	reported bool // progress
}

// quiet reports that the engine is not writing the attempt's progress. During the write it holds a mutex, and no
// virtual time passes while another goroutine waits for it.
func (y *attempt) quiet() bool { return !y.reported || !y.p.recording.Load() }

// run is the handler. It always ends at the gate, because the ends of attempts meet in the engine's batches.
func (p *process) run(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return nil, err
	}
	y := &attempt{p: p, a: a, tag: fmt.Sprintf("%s/%d", p.sim.label(a.Task().ID), a.Task().Epoch)}
	defer p.sim.watch(ctx, a.Task())()
	var s script
	if err := json.Unmarshal(input, &s); err != nil {
		return nil, err
	}
	var values []string
	alive := p.point(ctx, 0, "begin "+y.tag)
	for i, d := range s.Do {
		if err != nil || !alive {
			break
		}
		var v string
		if v, err = y.do(ctx, i, d); v != "" {
			values = append(values, v)
		}
		if err != nil && s.Stubborn && d.What == "step" {
			err = nil
		}
	}
	end := &item{proc: p, name: "end " + y.tag, ready: func() bool {
		// Released leases free their slots without an event: one at a time.
		cause := context.Cause(ctx)
		quiet := errors.Is(cause, engine.ErrDraining) || errors.Is(cause, engine.ErrLeaseUncertain)
		return y.quiet() && (!quiet || !p.finishing.Load())
	}}
	if !alive || p.sim.park(end) == gone {
		return nil, errDead
	}
	if errors.Is(err, errPanic) {
		panic("as the script says")
	}
	if err != nil {
		return outputBeside(err), err
	}
	return json.Marshal(values)
}

var errPanic = errors.New("panic")

// do runs one action. Only points and steps take time.
func (y *attempt) do(ctx context.Context, i int, d action) (string, error) {
	name, long := fmt.Sprintf("s%d", i), time.Duration(d.For)*time.Millisecond
	t := y.a.Task()
	if t.Undo != nil { // an unrecorded wait is unreachable now, and must not end the handler
		switch d.What {
		case "work", "progress", "needs":
			return "", nil
		case "panic":
			d.What = "fail"
		}
	}
	switch d.What {
	case "undoable":
		return weaver.Step(ctx, name, y.step(name, long, d.N), y.undo(name, long))
	case "point":
		return "", weaver.PointOfNoReturn(ctx, name)
	case "work":
		if !y.p.point(ctx, long, "work "+y.tag+" "+name) {
			return "", errDead
		}
		return "", context.Cause(ctx)
	case "step":
		return weaver.Step(ctx, name, y.step(name, long, d.N), weaver.StepRetry(3, 20*time.Millisecond))
	case "both":
		return y.parallel(ctx, name, long)
	case "tx":
		return weaver.StepTx(ctx, name, func(ctx context.Context, _ *memstore.Tx) (string, error) {
			v, err := y.step(name, long, 0)(ctx)
			if err != nil {
				return "", err
			}
			h, err := taskType.Enqueue(ctx, weaver.InStepTx(ctx), leaf, weaver.MaxAttempts(2))
			if err != nil {
				return "", err
			}
			y.p.sim.enqueuedInStep(h.ID(), t.ID, name)
			return v + leafMark + h.ID().String(), nil
		})
	case "sleep":
		if !y.p.point(ctx, 0, "before "+y.tag+" "+name) {
			return "", errDead
		}
		return "", weaver.Sleep(ctx, name, long)
	case "start":
		if !y.p.point(ctx, 0, "before "+y.tag+" "+name) {
			return "", errDead
		}
		var opts []weaver.EnqueueOption
		if d.N > 0 {
			opts = append(opts, weaver.IdempotencyKey(fmt.Sprintf("started %d", d.N)))
		}
		_, err := weaver.Start(ctx, name, taskType, leaf, opts...)
		return "", err
	case "progress":
		if y.p.sim.park(&item{proc: y.p, name: "before " + y.tag + " " + name, ctx: ctx, ready: y.quiet}) == gone {
			return "", errDead
		}
		y.reported = true
		return "", weaver.Progress(ctx, float64(i), float64(d.N))
	case "needs":
		if !y.p.point(ctx, 0, "before "+y.tag+" "+name) {
			return "", errDead
		}
		_, err := y.a.Needs(ctx)
		return "", err
	case "spend":
		step := y.step(name, long, 0)
		return weaver.Step(ctx, name, func(ctx context.Context) (string, error) {
			v, err := step(ctx)
			if err == nil {
				err = weaver.Spend(ctx, int64(d.N))
			}
			return v, err
		})
	case "signal", "call", "race", "parts", "whole":
		return y.wait(ctx, name, long, d)
	case "fail":
		if t.AttemptCount < d.N {
			return "", errScripted
		}
	case "panic":
		if t.AttemptCount < d.N {
			return "", errPanic
		}
	case "again":
		if t.AttemptCount < d.N {
			return "", weaver.RetryAfter(long, errScripted)
		}
	case "permanent":
		return "", weaver.Permanent(errScripted)
	case "blocked":
		if _, ok, _ := weaver.UnblockInput[string](ctx); !ok {
			return "", weaver.Blocked("as the script says")
		}
	case "die":
		if t.AttemptNo <= d.N {
			y.p.sim.put(&item{name: "death by " + y.tag, after: long, do: func() { y.p.sim.crash(y.p) }})
			y.p.point(context.Background(), time.Hour, "die "+y.tag)
			return "", errDead
		}
	}
	return "", nil
}

var leaf = script{Do: []action{{What: "step", For: 50}}}

// step returns a step's function: it takes time and fails the first n times. Half of the functions ignore the end of
// their context.
func (y *attempt) step(name string, long time.Duration, n int) func(context.Context) (string, error) {
	try := 0
	return func(ctx context.Context) (string, error) {
		try++
		y.p.sim.stepBegins(y.p, y.a.Task(), name)
		if !y.p.point(ctx, long, fmt.Sprintf("step %s %s try %d", y.tag, name, try)) {
			return "", errDead
		}
		switch {
		case ctx.Err() != nil && y.a.Task().ID[15]%2 == 0:
			return "", context.Cause(ctx)
		case try <= n:
			return "", errScripted
		}
		return fmt.Sprintf("%s by %s try %d", name, y.tag, try), nil
	}
}

// parallel runs two steps concurrently.
func (y *attempt) parallel(ctx context.Context, name string, long time.Duration) (string, error) {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wg.Go(func() {
			each := fmt.Sprintf("%s.%d", name, i)
			// They register their names one after the other; otherwise the index of each would be random.
			if !y.p.point(ctx, 0, "beside "+y.tag+" "+each) {
				errs[i] = errDead
				return
			}
			_, errs[i] = weaver.Step(ctx, each, y.step(each, long/time.Duration(i+1), 0))
		})
	}
	wg.Wait()
	return "", errors.Join(errs...)
}

// drawScript draws a script.
func drawScript(rng *rand.Rand, long time.Duration) script {
	var s script
	ms := func(most time.Duration) int { return 1 + rng.IntN(int(most.Milliseconds())) }
	for range 1 + rng.IntN(4) {
		d := action{For: ms(long / 4)}
		switch rng.IntN(26) {
		case 0, 1, 2, 3:
			d.What, d.N = "step", max(0, rng.IntN(6)-3)
		case 4:
			d.What = "both"
		case 5:
			d.What = "tx"
		case 6, 7:
			d.What, d.For = "sleep", ms(long)
		case 8:
			d.What, d.N = "start", rng.IntN(3)
		case 9:
			d.What, d.N = "progress", 4
		case 10, 11:
			d.What, d.N = []string{"fail", "panic", "again"}[rng.IntN(3)], 1+rng.IntN(2)
		case 12:
			d.What = "blocked"
		case 13:
			d.What, d.For = "work", ms(2*long) // possibly longer than a lease
		case 14, 15, 16, 17:
			d = drawWait(rng, long)
		case 18:
			d.What, d.N = "spend", 1+rng.IntN(3)
		case 19, 20, 21:
			d.What, d.N = "undoable", rng.IntN(3)/2
		case 22:
			d.What = []string{"point", "undoable"}[rng.IntN(2)]
		default:
			d.What = "work"
		}
		s.Do = append(s.Do, d)
	}
	s.Stubborn = rng.IntN(2) == 0
	if rng.IntN(12) == 0 {
		s.Do = append(s.Do, action{What: "permanent"})
	}
	return s
}
