package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// leaseKey identifies a granted lease.
type leaseKey struct {
	task  task.ID
	epoch int64
}

// lease is the simulation's knowledge of a lease.
type lease struct {
	task.Lease
	proc       *process
	skew       time.Duration // of its process's clock, as long as it lasts
	claimed    time.Time
	answered   time.Time // when the claim was answered
	validUntil time.Time // the end of its local validity in the process
	beat       time.Time // send time of the last heartbeat that named it
	orphan     bool      // claimed after its process stopped asking
	knownLost  bool      // its process received the answer that it is lost
	revoked    bool      // taken by an operator or by a restore of the store
	hash       string    // of the accepted finish
	ended      task.State
}

// checker holds the state that every passage is checked against. simulation.mu guards its fields, because goroutines
// of dead processes read them too.
type checker struct {
	leases   map[leaseKey]*lease
	epochs   map[task.ID]int64
	values   map[string]string // the accepted value of each step
	acked    map[task.ID]bool  // acknowledged submits
	declared map[store.WorkerID]bool
	gen      string
	retried  bool // an operator reopened tasks since the last check
	before   map[task.ID]task.Task
	names    map[task.ID]string
	handlers map[leaseKey]context.Context // running handlers
	lookups  map[task.LeaseID]bool        // claims whose answers were looked up again
	never    map[task.ID]bool             // tasks of uncommitted transactions of the user
	leaves   map[task.ID]string           // tasks enqueued by steps' transactions, with the steps
}

func (sim *simulation) leaseOf(l task.Lease) *lease { return sim.leases[leaseKey{l.Task, l.Epoch}] }

func (sim *simulation) skewOf(l task.Lease) time.Duration {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if known := sim.leaseOf(l); known != nil {
		return known.skew
	}
	return 0
}

// claimed checks the store's answer to a claim: every epoch of a task is granted once, and epochs only grow.
func (sim *simulation) claimed(p *process, req store.ClaimRequest, res store.ClaimResult, skew time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, " next=%v", res.Next)
	if len(res.Tasks) > req.Limit {
		sim.failf("a claim of at most %d got %d", req.Limit, len(res.Tasks))
	}
	for i := range res.Tasks {
		c := &res.Tasks[i]
		name := sim.label(c.Task.ID)
		fmt.Fprintf(&b, " %s/%d", name, c.Lease.Epoch)
		if _, ok := req.Types[c.Task.Type]; !ok {
			sim.failf("%s is handed out, whose type %s was not asked for", name, c.Task.Type)
		}
		sim.mu.Lock()
		old, last := sim.leaseOf(c.Lease), sim.epochs[c.Task.ID]
		switch {
		case old != nil && old.ID == req.LeaseID && req.Again:
			sim.tally["claims found again"]++
		case old != nil || c.Lease.Epoch <= last:
			sim.mu.Unlock()
			sim.failf("I4: %s is handed out with epoch %d, after %d", name, c.Lease.Epoch, last)
			continue
		default:
			sim.leases[leaseKey{c.Task.ID, c.Lease.Epoch}] = &lease{Lease: c.Lease, proc: p, skew: skew, claimed: time.Now(), orphan: sim.tooLate}
			sim.epochs[c.Task.ID] = c.Lease.Epoch
		}
		sim.mu.Unlock()
		if c.Lease.ID != req.LeaseID || c.Task.State != task.Running {
			sim.failf("%s is handed out %s, with another lease than the one asked for", name, c.Task.State)
		}
	}
	return b.String()
}

// validFor returns the local validity of a lease: the TTL less a sixth.
func (sim *simulation) validFor() time.Duration { return sim.ttl - sim.ttl/6 }

// claimAnswered records the arrival of a claim's answer.
func (sim *simulation) claimAnswered(res store.ClaimResult, asked time.Time) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for i := range res.Tasks {
		known := sim.leaseOf(res.Tasks[i].Lease)
		known.answered, known.validUntil = time.Now(), asked.Add(sim.validFor())
	}
}

// beatAnswered records the arrival of a heartbeat's answer.
func (sim *simulation) beatAnswered(leases []task.Lease, beats []store.Beat, asked time.Time) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for i, b := range beats {
		switch known := sim.leaseOf(leases[i]); {
		case b.Lost:
			known.knownLost = true
		case !b.Retry && asked.Add(sim.validFor()).After(known.validUntil):
			known.validUntil = asked.Add(sim.validFor())
		}
	}
}

// claimRepeated records that a process looks up its claim again.
func (sim *simulation) claimRepeated(id task.LeaseID) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.lookups[id] = true
}

func (sim *simulation) wasRepeated(id task.LeaseID) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.lookups[id]
}

// writeAnswered records the arrival of the answer of a Finish or Record.
func (sim *simulation) writeAnswered(l task.Lease, err error) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if errors.Is(err, store.ErrLeaseLost) {
		sim.leaseOf(l).knownLost = true
	}
}

// stepBegins checks the start of a step's function. Its lease is current, unless an operator took it, and locally
// valid. The worker got no answer that the lease is lost, and no value of the step is recorded.
func (sim *simulation) stepBegins(p *process, t *task.Task, step string) {
	if p.dead.Load() {
		return
	}
	now := time.Now()
	got, err := sim.mem.History(context.Background(), ns, t.ID)
	sim.mu.Lock()
	known := *sim.leases[leaseKey{t.ID, t.Epoch}]
	gen := sim.gen
	sim.mu.Unlock()
	l := known.Lease
	name := fmt.Sprintf("%s/%d: step %q", sim.label(l.Task), l.Epoch, step)
	sim.count("steps begun", 1)
	stands := err == nil && got.Task.State == task.Running && got.Task.Epoch == l.Epoch && got.Task.LeaseID == l.ID && l.Generation == gen
	switch {
	case !now.Before(known.validUntil):
		sim.failf("lease validity: %s starts %v after the local validity of its lease", name, now.Sub(known.validUntil))
	case known.knownLost:
		sim.failf("lost lease: %s starts though its worker knows that the lease is lost", name)
	case !stands && known.revoked:
		sim.count("steps begun in good faith", 1)
	case !stands:
		sim.failf("lease validity: %s starts under a lease that is not the current one: the task is %s at epoch %d", name, got.Task.State, got.Task.Epoch)
	}
	for _, s := range got.Steps {
		if s.Name == step && s.State == task.StepCompleted && stands && !s.Past() && s.Kind != task.KindUndo {
			sim.failf("I6: %s starts though it is completed", name)
		}
	}
}

// announced checks that a success is announced only after it was accepted.
func (sim *simulation) announced(p *process, h event.Header) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for key, known := range sim.leases {
		if key.task == h.TaskID && known.ended == task.Succeeded {
			return
		}
	}
	sim.failLocked("lost lease: %s announces that %s succeeded, which the store never accepted", p.name, sim.names[h.TaskID])
}

// written checks the writes of a lease holder against the earlier rows.
type written struct {
	sim    *simulation
	leases []task.Lease
	before map[task.ID]task.Task
}

func (sim *simulation) beforeWrite(leases []task.Lease) *written {
	return &written{sim: sim, leases: leases, before: sim.rows(leases)}
}

func (sim *simulation) rows(leases []task.Lease) map[task.ID]task.Task {
	ids := make([]task.ID, len(leases))
	for i := range leases {
		ids[i] = leases[i].Task
	}
	got, err := sim.mem.Tasks(context.Background(), ns, ids...)
	if err != nil {
		sim.failf("read tasks: %v", err)
	}
	rows := make(map[task.ID]task.Task, len(got))
	for i := range got {
		rows[got[i].ID] = got[i]
	}
	return rows
}

// held reports whether the i-th lease was current before the write.
func (c *written) held(i int) bool {
	l := c.leases[i]
	t, ok := c.before[l.Task]
	return ok && t.State == task.Running && t.Epoch == l.Epoch && t.LeaseID == l.ID && l.Generation == c.sim.gen
}

func (c *written) name(i int) string {
	return fmt.Sprintf("%s/%d", c.sim.label(c.leases[i].Task), c.leases[i].Epoch)
}

// checkUntouched checks that a write without a valid lease left the task unchanged.
func (c *written) checkUntouched(i int, after map[task.ID]task.Task) {
	own := c.before[c.leases[i].Task]
	for j, l := range c.leases {
		if !c.held(j) {
			continue
		}
		switch other := c.before[l.Task]; {
		case l.Task == own.ID, // changed by the write of its holder, in the same batch,
			other.ID == own.ParentID, other.ParentID == own.ID, // or of its parent or child,
			!own.JobID.IsZero() && other.JobID == own.JobID: // or of another task of its job
			return
		}
	}
	b, a := c.before[c.leases[i].Task], after[c.leases[i].Task]
	if b.State != a.State && !(b.State == task.Pending && a.State == task.Ready) || b.Epoch != a.Epoch || b.LeaseID != a.LeaseID ||
		b.StepCount != a.StepCount || !b.LeaseExpiresAt.Equal(a.LeaseExpiresAt) || !bytes.Equal(b.Output, a.Output) {
		c.sim.failf("guard: a write of %s without a valid lease changed its task: %s at epoch %d became %s at %d", c.name(i), b.State, b.Epoch, a.State, a.Epoch)
	}
}

func (c *written) heartbeat(beats []store.Beat) string {
	var b strings.Builder
	after := c.sim.rows(c.leases)
	for i, beat := range beats {
		fmt.Fprintf(&b, " %s%s", c.name(i), mark(beat))
		l := c.leases[i]
		switch stood := c.held(i); {
		case stood == beat.Lost:
			c.sim.failf("heartbeat: the heartbeat of %s answers lost=%v, and the lease was current: %v", c.name(i), beat.Lost, stood)
		case !stood:
			c.sim.count("heartbeats refused", 1)
			c.checkUntouched(i, after)
		case after[l.Task].LeaseExpiresAt.Before(c.before[l.Task].LeaseExpiresAt):
			c.sim.failf("heartbeat: a heartbeat shortened the lease of %s", c.name(i))
		}
	}
	return b.String()
}

func mark(b store.Beat) string {
	switch {
	case b.Lost:
		return "!"
	case b.Cancel != "":
		return "?" + string(b.Cancel)
	}
	return ""
}

func (c *written) finish(fins []store.Finish, res []store.FinishResult) string {
	var b strings.Builder
	after := c.sim.rows(c.leases)
	for i := range res {
		f, hash := &fins[i], fins[i].Hash()
		fmt.Fprintf(&b, " %s %s→%s%s", c.name(i), f.Outcome, res[i].State, c.sim.scrub(res[i].Err))
		known := c.sim.known(c.leases[i])
		switch stood := c.held(i); {
		case stood && res[i].Err == nil:
			c.sim.count("tasks "+string(res[i].State), 1)
			c.checkFailure(i, f)
			c.checkDeadline(i, f, known)
			known.hash, known.ended = hash, res[i].State
		case stood:
			c.sim.failf("finish: the finish of %s is refused under a valid lease: %v", c.name(i), res[i].Err)
		case res[i].Err == nil && known.hash != hash:
			c.sim.failf("finish: the finish of %s is accepted without a valid lease", c.name(i))
		case res[i].Err != nil && known.hash == hash && known.Generation == c.sim.gen && c.before[f.Lease.Task].State != "":
			c.sim.failf("finish: the finish of %s was accepted once and is refused now: %v", c.name(i), res[i].Err)
		case res[i].Err == nil:
			c.sim.count("finishes again", 1)
			c.checkUntouched(i, after)
		default:
			c.sim.count("finishes refused", 1)
			c.checkUntouched(i, after)
		}
	}
	return b.String()
}

// checkFailure checks that a lost lease, or the end of the engine, is not recorded as a failure of the handler.
func (c *written) checkFailure(i int, f *store.Finish) {
	if f.Outcome != task.OutcomeFailure || f.Error == nil || f.Error.Kind == task.KindInternal {
		return
	}
	for _, cause := range []error{engine.ErrLeaseUncertain, engine.ErrDraining, store.ErrLeaseLost} {
		if strings.Contains(f.Error.Message, cause.Error()) {
			c.sim.failf("lost lease: %s is recorded as failed: %s", c.name(i), f.Error.Message)
		}
	}
}

// checkDeadline checks the time left to the deadline in the decider's input, by the store's clock.
func (c *written) checkDeadline(i int, f *store.Finish, known *lease) {
	deadline := c.before[f.Lease.Task].DeadlineAt
	if f.Decision == nil || deadline.IsZero() {
		return
	}
	text, ok := f.Decision.Reason.Evidence["left"].(string)
	if !ok {
		return
	}
	left, err := time.ParseDuration(text)
	least, most := max(0, time.Until(deadline)), deadline.Sub(known.claimed)
	if err != nil || left < least-time.Millisecond || left > most+time.Millisecond {
		c.sim.failf("clock: %s was decided with %s left; it was between %v and %v", c.name(i), text, least, most)
	}
}

func (c *written) record(recs []store.Record, res []store.RecordResult) string {
	var b strings.Builder
	after := c.sim.rows(c.leases)
	for i := range res {
		rec, r := &recs[i], &res[i]
		step := "progress"
		if rec.Step != nil {
			step = rec.Step.Name + " " + string(rec.Step.State)
		}
		fmt.Fprintf(&b, " %s %s%s", c.name(i), step, c.sim.scrub(r.Err))
		switch stood := c.held(i); {
		case !stood && !errors.Is(r.Err, store.ErrLeaseLost):
			c.sim.failf("record: a record of %s without a valid lease is answered %v", c.name(i), r.Err)
		case !stood:
			c.sim.count("records refused", 1)
			c.checkUntouched(i, after)
		case errors.Is(r.Err, store.ErrStepConflict) && rec.Step != nil && rec.Step.State == task.StepBegun:
			c.sim.count("beginnings behind their value", 1) // a late call: its caller asked again
		case r.Err != nil && !errors.Is(r.Err, store.ErrCancelRequested):
			c.sim.failf("record: a record of %s is refused under a valid lease: %v", c.name(i), r.Err)
		case r.Err == nil && rec.Step != nil && rec.Step.State == task.StepCompleted:
			c.sim.value(c.leases[i].Task, r.Step)
		}
	}
	return b.String()
}

// value checks that a step has one value, which never changes (I6).
func (sim *simulation) value(id task.ID, s task.Step) {
	key := sim.label(id) + " " + s.Name
	if s.Round > 0 || s.Kind == task.KindUndo {
		key += fmt.Sprintf(" %s of round %d", s.Kind, s.Round)
	}
	text := string(s.Value) + s.WakeAt.String()
	sim.mu.Lock()
	defer sim.mu.Unlock()
	if old, ok := sim.values[key]; ok && old != text {
		sim.failLocked("I6: step %s changed its value from %s to %s", key, old, text)
	}
	sim.values[key] = text
}

func (sim *simulation) known(l task.Lease) *lease {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.leaseOf(l)
}

// scrub shortens known errors to a word.
func (sim *simulation) scrub(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, store.ErrLeaseLost):
		return " lost"
	case errors.Is(err, store.ErrCancelRequested):
		return " cancel"
	}
	return " " + err.Error()
}
