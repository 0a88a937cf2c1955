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

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// probe is the store with two additions: it notes which calls are under way,
// and it is where a process dies whose plan names a call.
type probe struct {
	*sqlite.DB
	plan  plan
	gauge *gauge
	log   *witness

	mu   sync.Mutex
	seen int // calls of the plan's method
}

var (
	_ store.Store          = (*probe)(nil)
	_ store.Notifier       = (*probe)(nil)
	_ store.StepTxer       = (*probe)(nil)
	_ store.WaitingClaimer = (*probe)(nil)
)

// begin notes that a call begins; the returned function, that it ended.
// useful says whether the call had anything to do: only those are counted.
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

// soon kills the process in a moment if the plan is to do so in this call.
func (p *probe) soon(call string) {
	if p.plan.Call == call && !p.plan.After && p.counted() {
		time.AfterFunc(p.plan.Delay, p.die)
	}
}

// counted counts a call and reports whether it is the one.
func (p *probe) counted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	return p.seen == p.plan.Nth
}

func (p *probe) die() { dieNow(p.log, "in-"+p.plan.Call) }

func (p *probe) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	defer p.begin("Join")(true)
	return p.DB.Join(ctx, ns, w)
}

func (p *probe) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	defer p.begin("Leave")(true)
	return p.DB.Leave(ctx, ns, id)
}

func (p *probe) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	end := p.begin("Claim")
	res, err := p.DB.Claim(ctx, ns, req)
	end(len(res.Tasks) > 0)
	return res, err
}

func (p *probe) ClaimOrWait(ctx context.Context, ns string, req store.ClaimRequest, wait time.Duration, wake <-chan struct{}) (store.ClaimResult, error) {
	end := p.begin("Claim")
	res, err := p.DB.ClaimOrWait(ctx, ns, req, wait, wake)
	end(len(res.Tasks) > 0)
	return res, err
}

func (p *probe) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	defer p.begin("Heartbeat")(true)
	return p.DB.Heartbeat(ctx, ns, req)
}

func (p *probe) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	defer p.begin("Finish")(true)
	return p.DB.Finish(ctx, ns, fins...)
}

func (p *probe) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	defer p.begin("Record")(true)
	return p.DB.Record(ctx, ns, recs...)
}

func (p *probe) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	defer p.begin("StepTx")(true)
	return p.DB.StepTx(ctx, ns, rec, limit, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		defer p.soon("StepTx") // to be hit between its end and that of the commit
		return fn(ctx, tx)
	})
}

func (p *probe) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	end := p.begin("Reap")
	res, err := p.DB.Reap(ctx, ns, req)
	end(len(res.Reaped) > 0)
	return res, err
}

// gauge is a file of a byte for each method of the store: how many calls of it
// are under way. It outlives a kill.
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
	_, _ = g.file.WriteAt(g.count[i:i+1], int64(i)) // only figures rest on it
}

// readGauge returns the calls that were under way when a life ended.
func readGauge(dir string, life int) (calls []string, err error) {
	raw, err := os.ReadFile(gaugePath(dir, life))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // it did not come so far
	}
	for i, n := range raw {
		if n > 0 {
			calls = append(calls, gaugeCalls[i])
		}
	}
	return calls, err
}
