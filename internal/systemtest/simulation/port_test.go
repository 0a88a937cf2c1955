package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// errFault is the error of a refused call or a lost reply.
var errFault = fmt.Errorf("injected: %w", store.ErrUnavailable)

// port is a process's view of the store. Each call passes the gate on its way there, and often on its way back.
type port struct {
	store.Store // methods that no process calls here
	p           *process
}

// Capabilities implements store.Core.
func (*port) Capabilities() store.Capabilities {
	return store.CanWait | store.CanNotify | store.CanStepTx
}

func (s *port) mem() *memstore.Store { return s.p.sim.mem }

// call lets a call happen, or not. do makes the call and returns its result for the log.
func (s *port) call(ctx context.Context, it item, do func() string) error {
	p := s.p
	it.proc, it.ctx, it.call = p, ctx, true
	it.ready = func() bool { return ctx.Err() != nil || !p.inTx.Load() }
	it.do = func() { p.sim.result(do()) }
	f := p.sim.park(&it)
	if f != proceeds {
		if f == gone {
			return store.ErrClosed
		}
		if f == replyLost {
			p.sim.result(do())
		}
		return fmt.Errorf("%s: %w", it.name, errFault)
	}
	p.sim.result(do())
	if p.stream("reply").IntN(4) > 0 {
		return nil
	}
	if p.sim.park(&item{proc: p, name: "reply " + it.name, ctx: ctx}) == gone {
		return store.ErrClosed
	}
	return nil
}

// Ready implements store.Core.
func (s *port) Ready(context.Context) error { return nil }

// Join implements store.Core. The first call is spared, because a failure would end Run.
func (s *port) Join(ctx context.Context, _ string, info store.WorkerInfo) error {
	first := s.p.worker == ""
	s.p.worker = info.ID
	join := func() string {
		s.p.seen = store.Now()
		return answer(s.mem().Join(context.Background(), ns, info))
	}
	if first {
		if !s.p.point(context.Background(), 0, "join first") {
			return store.ErrClosed
		}
		s.p.sim.result(join())
		return nil
	}
	return s.call(ctx, item{name: "join of " + role()}, join)
}

// role distinguishes the two loops of an engine that may join at once.
func role() string {
	pcs := make([]uintptr, 8)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "(*heartbeater)") {
			return "heartbeat"
		}
		if !more {
			return "reaper"
		}
	}
}

// Leave implements store.Core.
func (s *port) Leave(ctx context.Context, _ string, id store.WorkerID) error {
	return s.call(ctx, item{name: "leave"}, func() string { return answer(s.mem().Leave(context.Background(), ns, id)) })
}

// Claim implements store.Core. For an engine that loses notices, it waits in place of the engine's poll.
func (s *port) Claim(ctx context.Context, _ string, req store.ClaimRequest) (store.ClaimResult, error) {
	p := s.p
	asked := time.Now()
	if first, ok := p.firstAsk[req.LeaseID]; ok {
		asked = first
	}
	p.firstAsk[req.LeaseID] = asked
	var held time.Duration
	if p.lossy && !req.Again && !p.more && time.Since(p.lastClaim) <= time.Microsecond {
		if !p.hold(req.Wake, p.poll(), "hold") {
			if held = time.Since(asked); held > 0 {
				p.more = true
				return store.ClaimResult{Now: store.Now().Add(p.skew), Next: -1, Waited: held}, nil
			}
		}
		if p.dead.Load() {
			return store.ClaimResult{}, store.ErrClosed
		}
		held = time.Since(asked)
	}
	p.more = false
	var res store.ClaimResult
	name := "claim"
	if req.Again {
		name = "claim again"
		p.sim.claimRepeated(req.LeaseID)
	}
	var skew time.Duration
	err := s.call(ctx, item{name: name}, func() string {
		skew = p.skew
		var err error
		res, err = s.mem().Claim(context.Background(), ns, req)
		res.Waited = held
		return p.sim.claimed(p, req, res, skew) + answer(err)
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	p.sim.claimAnswered(res, asked.Add(held))
	p.lastClaim, p.more, p.next = time.Now(), len(res.Tasks) > 0 && res.Next == 0, res.Next
	return shiftClaim(res, skew), nil
}

// poll returns the engine's delay before the next claim.
func (p *process) poll() time.Duration {
	d := 900*time.Millisecond + time.Duration(p.stream("poll").IntN(200_000))*time.Microsecond
	if p.next > 0 && p.next < d {
		return p.next
	}
	return d
}

// hold waits at the gate for d; it returns false when wake ends the wait.
func (p *process) hold(wake <-chan struct{}, d time.Duration, name string) bool {
	if p.dead.Load() {
		return true
	}
	it := &item{proc: p, name: name, after: d, open: make(chan outcome, 1)}
	p.sim.put(it)
	select {
	case <-it.open:
		return true
	case <-wake:
		p.sim.leave(it)
		return false
	}
}

// Heartbeat implements store.Core. The engine lists leases in any order.
func (s *port) Heartbeat(ctx context.Context, _ string, req store.HeartbeatRequest) ([]store.Beat, error) {
	asked := time.Now()
	order := orderOf(req.Leases, func(l task.Lease) task.Lease { return l })
	sorted := req
	sorted.Leases = make([]task.Lease, len(order))
	for to, from := range order {
		sorted.Leases[to] = req.Leases[from]
	}
	var beats []store.Beat
	err := s.call(ctx, item{name: "heartbeat"}, func() string {
		s.p.beats(sorted.Leases, asked)
		check := s.p.sim.beforeWrite(sorted.Leases)
		var err error
		beats, err = s.mem().Heartbeat(context.Background(), ns, sorted)
		return check.heartbeat(beats) + answer(err)
	})
	if err != nil {
		return nil, err
	}
	s.p.sim.beatAnswered(sorted.Leases, beats, asked)
	out := make([]store.Beat, len(order))
	for to, from := range order {
		out[from] = beats[to]
	}
	return out, nil
}

// Finish implements store.Core.
func (s *port) Finish(ctx context.Context, _ string, fins ...store.Finish) ([]store.FinishResult, error) {
	s.p.finishing.Store(true)
	defer s.p.finishing.Store(false)
	leases := make([]task.Lease, len(fins))
	shifted := make([]store.Finish, len(fins))
	order := orderOf(fins, func(f store.Finish) task.Lease { return f.Lease })
	for to, from := range order {
		leases[to], shifted[to] = fins[from].Lease, fins[from]
		if !fins[from].WakeAt.IsZero() {
			shifted[to].WakeAt = fins[from].WakeAt.Add(-s.p.sim.skewOf(fins[from].Lease))
		}
	}
	var res []store.FinishResult
	err := s.call(ctx, item{name: "finish", spared: len(fins) > 1}, func() string {
		check := s.p.sim.beforeWrite(leases)
		var err error
		res, err = s.mem().Finish(context.Background(), ns, shifted...)
		return check.finish(shifted, res) + answer(err)
	})
	if err != nil {
		return nil, err
	}
	out := make([]store.FinishResult, len(res))
	for to, from := range order {
		s.p.sim.writeAnswered(leases[to], res[to].Err)
		out[from] = res[to]
	}
	return out, nil
}

// Record implements store.Core.
func (s *port) Record(ctx context.Context, _ string, recs ...store.Record) ([]store.RecordResult, error) {
	s.p.recording.Store(true) // one at a time
	defer s.p.recording.Store(false)
	leases := make([]task.Lease, len(recs))
	sorted := make([]store.Record, len(recs))
	order := orderOf(recs, func(r store.Record) task.Lease { return r.Lease })
	for to, from := range order {
		leases[to], sorted[to] = recs[from].Lease, recs[from]
	}
	var res []store.RecordResult
	err := s.call(ctx, item{name: "record", spared: len(recs) > 1}, func() string {
		check := s.p.sim.beforeWrite(leases)
		var err error
		res, err = s.mem().Record(context.Background(), ns, sorted...)
		return check.record(sorted, res) + answer(err)
	})
	if err != nil {
		return nil, err
	}
	out := make([]store.RecordResult, len(res))
	for to, from := range order {
		s.p.sim.writeAnswered(leases[to], res[to].Err)
		res[to].Step = shiftStep(res[to].Step, s.p.sim.skewOf(leases[to]))
		out[from] = res[to]
	}
	return out, nil
}

// Reap implements store.Core. A slightly longer call hides the jitter of the engine's loop.
func (s *port) Reap(ctx context.Context, _ string, req store.ReapRequest) (store.ReapResult, error) {
	p := s.p
	if p.lossy {
		ctx = withoutDeadline(ctx)
		usual := p.lastReap.Add(req.TTL/3 + req.TTL/30 + time.Millisecond)
		if !p.hold(ctx.Done(), max(0, time.Until(usual)), "reaper") || p.dead.Load() {
			return store.ReapResult{}, store.ErrClosed
		}
	}
	var res store.ReapResult
	err := s.call(ctx, item{name: "reap"}, func() string {
		check := p.sim.beforeReap()
		var err error
		res, err = s.mem().Reap(context.Background(), ns, req)
		return check.reap(res) + answer(err)
	})
	p.lastReap = time.Now()
	return res, err
}

// StepTx implements store.Flow.
func (s *port) StepTx(ctx context.Context, _ string, rec store.Record, limit time.Duration, fn func(context.Context, store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	sim := s.p.sim
	if !s.p.takeTurn(ctx, fmt.Sprintf("%s/%d %s", sim.label(rec.Lease.Task), rec.Lease.Epoch, rec.Step.Name)) {
		if s.p.dead.Load() {
			return store.RecordResult{}, store.ErrClosed
		}
		return store.RecordResult{}, context.Cause(ctx)
	}
	defer s.p.inTx.Store(false)
	var check *written
	f := proceeds
	res, err := s.mem().StepTx(ctx, ns, rec, limit, func(ctx context.Context, tx store.Tx) (json.RawMessage, error) {
		value, err := fn(ctx, tx)
		if err != nil {
			return nil, err
		}
		f = sim.park(&item{proc: s.p, name: fmt.Sprintf("commit %s/%d %s", sim.label(rec.Lease.Task), rec.Lease.Epoch, rec.Step.Name), ctx: ctx, call: true, do: func() {}})
		switch f {
		case gone:
			return nil, store.ErrClosed
		case refused, late:
			return nil, errFault
		}
		check = sim.beforeWrite([]task.Lease{rec.Lease})
		step := *rec.Step
		step.Value = value
		rec.Step = &step
		return value, nil
	})
	switch {
	case check == nil:
		return res, err
	case err == nil, errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrStepConflict), errors.Is(err, store.ErrCancelRequested):
		res.Err = err
		sim.result(check.record([]store.Record{rec}, []store.RecordResult{res}))
	}
	if f == replyLost {
		return store.RecordResult{}, errFault
	}
	sim.writeAnswered(rec.Lease, err)
	return res, err
}

// Enqueue implements store.Core, for handlers inside StepTx.
func (s *port) Enqueue(ctx context.Context, _ string, tx store.Tx, sub store.Submission) ([]store.Enqueued, error) {
	if s.p.dead.Load() {
		return nil, store.ErrClosed
	}
	return s.mem().Enqueue(ctx, ns, tx, sub)
}

// Tasks implements store.Observe.
func (s *port) Tasks(ctx context.Context, _ string, ids ...task.ID) ([]task.Task, error) {
	var got []task.Task
	err := s.call(ctx, item{name: fmt.Sprintf("tasks %s", s.p.sim.label(ids[0]))}, func() string {
		var err error
		got, err = s.mem().Tasks(context.Background(), ns, ids...)
		return answer(err)
	})
	return got, err
}

// History implements store.Observe.
func (s *port) History(ctx context.Context, _ string, id task.ID) (store.History, error) {
	var h store.History
	err := s.call(ctx, item{name: "history " + s.p.sim.label(id)}, func() string {
		var err error
		h, err = s.mem().History(context.Background(), ns, id)
		return answer(err)
	})
	return h, err
}

// withoutDeadline returns a context that ends when ctx is cancelled, but not at its deadline.
func withoutDeadline(ctx context.Context) context.Context {
	inner, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return inner
}

func answer(err error) string {
	if err != nil {
		return " error: " + err.Error()
	}
	return ""
}

// orderOf returns the indexes of list in the order of the leases. The elements of a batch arrive in any order.
func orderOf[T any](list []T, lease func(T) task.Lease) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return byLease(lease(list[a]), lease(list[b])) })
	return order
}

func byLease(a, b task.Lease) int {
	if c := a.Task.Compare(b.Task); c != 0 {
		return c
	}
	return int(a.Epoch - b.Epoch)
}
