package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
)

// probe observes the store calls of one worker process. It records the calls in flight and kills the process in the
// call of the plan.
type probe struct {
	plan  plan
	gauge *gauge
	log   *stepLog

	mu   sync.Mutex
	seen int // calls of the plan's method
}

// store returns the store as the worker uses it.
func (p *probe) store(below store.Store) store.Store {
	return storehook.New(below, &storehook.Hooks{
		Join:      observed[store.WorkerInfo, storehook.None](p, "Join", nil),
		Leave:     observed[store.WorkerID, storehook.None](p, "Leave", nil),
		Claim:     observed[store.ClaimRequest](p, "Claim", func(res store.ClaimResult) bool { return len(res.Tasks) > 0 }),
		Heartbeat: observed[store.HeartbeatRequest, []store.Beat](p, "Heartbeat", nil),
		Finish:    observed[[]store.Finish, []store.FinishResult](p, "Finish", nil),
		Record:    observed[[]store.Record, []store.RecordResult](p, "Record", nil),
		Reap:      observed[store.ReapRequest](p, "Reap", func(res store.ReapResult) bool { return len(res.Reaped) > 0 }),
		StepTx: func(_ context.Context, c *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
			defer p.begin("StepTx")(true)
			run := c.Func
			c.Func = func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
				defer p.soon("StepTx") // to be hit between the function's end and the commit
				return run(ctx, tx)
			}
			return next()
		},
	})
}

// observed returns the hook of a method. A call without useful work does not count for a kill after it.
func observed[A, R any](p *probe, method string, useful func(R) bool) storehook.Hook[A, R] {
	return func(_ context.Context, _ A, next func() (R, error)) (R, error) {
		end := p.begin(method)
		res, err := next()
		end(useful == nil || useful(res))
		return res, err
	}
}

// begin records the begin of a call; the returned function records its end. useful reports whether the call had work
// to do: only such calls count.
func (p *probe) begin(call string) (end func(useful bool)) {
	p.gauge.add(call, 1)
	if call != "StepTx" {
		p.soon(call)
	}
	return func(useful bool) {
		if p.plan.Call == call && p.plan.After && useful && p.counted() {
			p.die()
		}
		p.gauge.add(call, -1)
	}
}

// soon kills the process shortly if the plan names this call.
func (p *probe) soon(call string) {
	if p.plan.Call == call && !p.plan.After && p.counted() {
		time.AfterFunc(p.plan.Delay, p.die)
	}
}

// counted counts a call and reports whether it is the call of the plan.
func (p *probe) counted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	return p.seen == p.plan.Nth
}

func (p *probe) die() { dieNow(p.log, "in-"+p.plan.Call) }

// gauge is a file with one byte per store method: the number of its calls in flight. The file survives a kill.
type gauge struct {
	mu    sync.Mutex
	file  *os.File
	count [256]byte
}

// gaugeCalls are the methods, in the order of their bytes.
var gaugeCalls = []string{"Join", "Leave", "Claim", "Heartbeat", "Finish", "Record", "StepTx", "Reap"}

func gaugePath(dir string, life int) string { return filepath.Join(dir, fmt.Sprintf("gauge-%d", life)) }

func newGauge(dir string, life int) (*gauge, error) {
	f, err := os.Create(gaugePath(dir, life))
	if err != nil {
		return nil, err
	}
	return &gauge{file: f}, nil
}

func (g *gauge) close() error { return g.file.Close() }

func (g *gauge) add(call string, n int) {
	i := slices.Index(gaugeCalls, call)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count[i] += byte(n)
	_, _ = g.file.WriteAt(g.count[i:i+1], int64(i)) // only figures depend on it
}

// readGauge returns the calls in flight at the end of a life.
func readGauge(dir string, life int) (calls []string, err error) {
	raw, err := os.ReadFile(gaugePath(dir, life))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // the process did not get so far
	}
	for i, n := range raw {
		if n > 0 {
			calls = append(calls, gaugeCalls[i])
		}
	}
	return calls, err
}
