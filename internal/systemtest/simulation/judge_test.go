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

// leaseKey names a lease that the store handed out.
type leaseKey struct {
	task  task.ID
	epoch int64
}

// lease is what the world knows of one.
type lease struct {
	task.Lease
	proc    *process
	skew    time.Duration // of the clock of its process, as long as it lasts
	claimed time.Time
	heard   time.Time // when the claim was answered
	trusted time.Time // until when its process may believe in it (R5)
	beat    time.Time // when the last heartbeat was sent that named it
	orphan  bool      // it was claimed after its process gave up asking
	told    bool      // its process was told that it is lost
	revoked bool      // an operator took it, or restored the store
	hash    string    // of the finish that was accepted
	ended   task.State
}

// judge keeps what every passage is held against. Its fields are guarded by
// world.mu, as goroutines of dead processes look, too.
type judge struct {
	leases   map[leaseKey]*lease
	epochs   map[task.ID]int64
	values   map[string]string // the accepted value of each step
	acked    map[task.ID]bool  // submits that were acknowledged
	declared map[store.WorkerID]bool
	gen      string
	retried  bool // an operator revived tasks since the last look
	before   map[task.ID]task.Task
	names    map[task.ID]string
	handlers map[leaseKey]context.Context // those that run
	lookups  map[task.LeaseID]bool        // claims whose answers were asked for again
}

func (w *world) leaseOf(l task.Lease) *lease { return w.leases[leaseKey{l.Task, l.Epoch}] }

func (w *world) skewOf(l task.Lease) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.leaseOf(l); known != nil {
		return known.skew
	}
	return 0
}

// claimed judges the answer of a claim as the store gave it: every epoch of a
// task is handed out once, and they only grow.
func (w *world) claimed(p *process, req store.ClaimRequest, res store.ClaimResult, skew time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, " next=%v", res.Next)
	if len(res.Tasks) > req.Limit {
		w.failf("a claim of at most %d got %d", req.Limit, len(res.Tasks))
	}
	for i := range res.Tasks {
		c := &res.Tasks[i]
		name := w.label(c.Task.ID)
		fmt.Fprintf(&b, " %s/%d", name, c.Lease.Epoch)
		w.mu.Lock()
		old, last := w.leaseOf(c.Lease), w.epochs[c.Task.ID]
		switch {
		case old != nil && old.ID == req.LeaseID && req.Again:
			w.tally["claims found again"]++
		case old != nil || c.Lease.Epoch <= last:
			w.mu.Unlock()
			w.failf("I4: %s is handed out with epoch %d, after %d", name, c.Lease.Epoch, last)
			continue
		default:
			w.leases[leaseKey{c.Task.ID, c.Lease.Epoch}] = &lease{Lease: c.Lease, proc: p, skew: skew, claimed: time.Now(), orphan: w.tooLate}
			w.epochs[c.Task.ID] = c.Lease.Epoch
		}
		w.mu.Unlock()
		if c.Lease.ID != req.LeaseID || c.Task.State != task.Running {
			w.failf("%s is handed out %s, with a lease that nobody asked for", name, c.Task.State)
		}
	}
	return b.String()
}

// trustFor is how long a worker may believe in a lease (R5).
func (w *world) trustFor() time.Duration { return w.ttl - w.ttl/6 }

// trust notes that a claim's answer arrived.
func (w *world) trust(res store.ClaimResult, asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range res.Tasks {
		known := w.leaseOf(res.Tasks[i].Lease)
		known.heard, known.trusted = time.Now(), asked.Add(w.trustFor())
	}
}

// confirm notes that a heartbeat's answer arrived.
func (w *world) confirm(leases []task.Lease, beats []store.Beat, asked time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range beats {
		switch known := w.leaseOf(leases[i]); {
		case b.Lost:
			known.told = true
		case !b.Retry && asked.Add(w.trustFor()).After(known.trusted):
			known.trusted = asked.Add(w.trustFor())
		}
	}
}

// lookUp notes that a process asks again what it claimed.
func (w *world) lookUp(id task.LeaseID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups[id] = true
}

func (w *world) lookedUp(id task.LeaseID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookups[id]
}

// hear notes that an answer of the store arrived.
func (w *world) hear(l task.Lease, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, store.ErrLeaseLost) {
		w.leaseOf(l).told = true
	}
}

// begins judges the very start of a step's function. Its lease is the one
// that stands, unless an operator took it; it is trusted; nobody told the
// worker otherwise; and no value of the step is recorded.
func (w *world) begins(p *process, t *task.Task, step string) {
	if p.dead.Load() {
		return
	}
	now := time.Now()
	got, err := w.mem.History(context.Background(), ns, t.ID)
	w.mu.Lock()
	known := *w.leases[leaseKey{t.ID, t.Epoch}]
	gen := w.gen
	w.mu.Unlock()
	l := known.Lease
	name := fmt.Sprintf("%s/%d: step %q", w.label(l.Task), l.Epoch, step)
	w.count("steps begun", 1)
	stands := err == nil && got.Task.State == task.Running && got.Task.Epoch == l.Epoch && got.Task.LeaseID == l.ID && l.Generation == gen
	switch {
	case !now.Before(known.trusted):
		w.failf("R5: %s starts %v after its lease could be trusted", name, now.Sub(known.trusted))
	case known.told:
		w.failf("R9: %s starts though its worker knows that the lease is lost", name)
	case !stands && known.revoked:
		w.count("steps begun in good faith", 1)
	case !stands:
		w.failf("R5: %s starts under a lease that does not stand: the task is %s at epoch %d", name, got.Task.State, got.Task.Epoch)
	}
	for _, s := range got.Steps {
		if s.Name == step && s.State == task.StepCompleted && stands {
			w.failf("I6: %s starts though it is completed", name)
		}
	}
}

// told judges that a success is announced only after one was accepted.
func (w *world) told(p *process, h event.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, known := range w.leases {
		if key.task == h.TaskID && known.ended == task.Succeeded {
			return
		}
	}
	w.failLocked("R9: %s announces that %s succeeded, which the store never accepted", p.name, w.names[h.TaskID])
}

// written judges what a lease holder wrote, against how things stood before.
type written struct {
	w      *world
	leases []task.Lease
	before map[task.ID]task.Task
}

func (w *world) beforeWrite(leases []task.Lease) *written {
	return &written{w: w, leases: leases, before: w.rows(leases)}
}

func (w *world) rows(leases []task.Lease) map[task.ID]task.Task {
	ids := make([]task.ID, len(leases))
	for i := range leases {
		ids[i] = leases[i].Task
	}
	got, err := w.mem.Tasks(context.Background(), ns, ids...)
	if err != nil {
		w.failf("read tasks: %v", err)
	}
	rows := make(map[task.ID]task.Task, len(got))
	for i := range got {
		rows[got[i].ID] = got[i]
	}
	return rows
}

// stood reports whether the i-th lease was the one that stands.
func (c *written) stood(i int) bool {
	l := c.leases[i]
	t, ok := c.before[l.Task]
	return ok && t.State == task.Running && t.Epoch == l.Epoch && t.LeaseID == l.ID && l.Generation == c.w.gen
}

func (c *written) name(i int) string {
	return fmt.Sprintf("%s/%d", c.w.label(c.leases[i].Task), c.leases[i].Epoch)
}

// untouched judges that a write without a right left the task alone.
func (c *written) untouched(i int, after map[task.ID]task.Task) {
	for j, l := range c.leases {
		if l.Task == c.leases[i].Task && c.stood(j) {
			return // it changed by the write of its holder, in the same batch
		}
	}
	b, a := c.before[c.leases[i].Task], after[c.leases[i].Task]
	if b.State != a.State && !(b.State == task.Pending && a.State == task.Ready) || b.Epoch != a.Epoch || b.LeaseID != a.LeaseID ||
		b.StepCount != a.StepCount || !b.LeaseExpiresAt.Equal(a.LeaseExpiresAt) || !bytes.Equal(b.Output, a.Output) {
		c.w.failf("R2: a write of %s without a valid lease changed its task: %s at epoch %d became %s at %d", c.name(i), b.State, b.Epoch, a.State, a.Epoch)
	}
}

func (c *written) heartbeat(beats []store.Beat) string {
	var b strings.Builder
	after := c.w.rows(c.leases)
	for i, beat := range beats {
		fmt.Fprintf(&b, " %s%s", c.name(i), mark(beat))
		l := c.leases[i]
		switch stood := c.stood(i); {
		case stood == beat.Lost:
			c.w.failf("R6: the heartbeat of %s answers lost=%v, and the lease stood: %v", c.name(i), beat.Lost, stood)
		case !stood:
			c.w.count("heartbeats refused", 1)
			c.untouched(i, after)
		case after[l.Task].LeaseExpiresAt.Before(c.before[l.Task].LeaseExpiresAt):
			c.w.failf("R6: a heartbeat shortened the lease of %s", c.name(i))
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
	after := c.w.rows(c.leases)
	for i := range res {
		f, hash := &fins[i], fins[i].Hash()
		fmt.Fprintf(&b, " %s %s→%s%s", c.name(i), f.Outcome, res[i].State, c.w.scrub(res[i].Err))
		known := c.w.known(c.leases[i])
		switch stood := c.stood(i); {
		case stood && res[i].Err == nil:
			c.w.count("tasks "+string(res[i].State), 1)
			c.honest(i, f)
			c.punctual(i, f, known)
			known.hash, known.ended = hash, res[i].State
		case stood:
			c.w.failf("R8: the finish of %s is refused under a valid lease: %v", c.name(i), res[i].Err)
		case res[i].Err == nil && known.hash != hash:
			c.w.failf("R8: the finish of %s is accepted without a valid lease", c.name(i))
		case res[i].Err != nil && known.hash == hash && known.Generation == c.w.gen && c.before[f.Lease.Task].State != "":
			c.w.failf("R8a: the finish of %s was accepted once and is refused now: %v", c.name(i), res[i].Err)
		case res[i].Err == nil:
			c.w.count("finishes again", 1)
			c.untouched(i, after)
		default:
			c.w.count("finishes refused", 1)
			c.untouched(i, after)
		}
	}
	return b.String()
}

// honest judges that trouble with the lease, or the end of the engine, is not
// recorded as a failure of the handler.
func (c *written) honest(i int, f *store.Finish) {
	if f.Outcome != task.OutcomeFailure || f.Error == nil || f.Error.Kind == task.KindInternal {
		return
	}
	for _, trouble := range []error{engine.ErrLeaseUncertain, engine.ErrDraining, store.ErrLeaseLost} {
		if strings.Contains(f.Error.Message, trouble.Error()) {
			c.w.failf("R9: %s is recorded as failed: %s", c.name(i), f.Error.Message)
		}
	}
}

// punctual judges that the time left to the deadline, from which was decided,
// was told by the store's clock (R4).
func (c *written) punctual(i int, f *store.Finish, known *lease) {
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
		c.w.failf("R4: %s was decided with %s left; it was between %v and %v", c.name(i), text, least, most)
	}
}

func (c *written) record(recs []store.Record, res []store.RecordResult) string {
	var b strings.Builder
	after := c.w.rows(c.leases)
	for i := range res {
		rec, r := &recs[i], &res[i]
		step := "progress"
		if rec.Step != nil {
			step = rec.Step.Name + " " + string(rec.Step.State)
		}
		fmt.Fprintf(&b, " %s %s%s", c.name(i), step, c.w.scrub(r.Err))
		switch stood := c.stood(i); {
		case !stood && !errors.Is(r.Err, store.ErrLeaseLost):
			c.w.failf("R10: a record of %s without a valid lease is answered %v", c.name(i), r.Err)
		case !stood:
			c.w.count("records refused", 1)
			c.untouched(i, after)
		case r.Err != nil && !errors.Is(r.Err, store.ErrCancelRequested):
			c.w.failf("R10: a record of %s is refused under a valid lease: %v", c.name(i), r.Err)
		case r.Err == nil && rec.Step != nil && rec.Step.State == task.StepCompleted:
			c.w.value(c.leases[i].Task, r.Step)
		}
	}
	return b.String()
}

// value judges that a step has one value, for ever (I6).
func (w *world) value(id task.ID, s task.Step) {
	key := w.label(id) + " " + s.Name
	text := string(s.Value) + s.WakeAt.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, ok := w.values[key]; ok && old != text {
		w.failLocked("I6: step %s changed its value from %s to %s", key, old, text)
	}
	w.values[key] = text
}

func (w *world) known(l task.Lease) *lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leaseOf(l)
}

// scrub shows an error in a word, where there is one for it.
func (w *world) scrub(err error) string {
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
