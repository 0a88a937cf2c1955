package commit

import (
	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Effects is what follows from an operation once it is committed: what
// listeners are notified of, and what the caches of this process learn.
type Effects struct {
	NS     string
	Notice store.Notice
	Lanes  []lane.Seen

	writer  *Writer // nil in a transaction of a caller
	claimed []claimMade
	ended   []leaseEnds   // tasks that left running, by lease
	waiting *WaitingClaim // the claim found nothing and waits
	answer  bool          // the waiting claim that this is of need not get tasks to be answered
}

// Answer has a waiting claim answered by the commit whether or not it got tasks.
func (fx *Effects) Answer() { fx.answer = true }

// publish makes the effects of committed operations known.
func (w *Writer) publish(ops []*batch.Op[*Op], claims []*WaitingClaim) {
	external := w.external
	w.external = false
	for _, o := range ops {
		if o.Err == nil {
			w.Apply(&o.Do.fx)
		}
	}
	for _, c := range claims {
		w.Apply(&c.op.fx)
	}
	if external {
		w.cfg.NotifyAll(store.Notice{External: true})
	}
}

// Apply makes the effects of one committed operation known. It may run beside
// the leader for those of a caller's transaction, which claims and ends
// nothing.
func (w *Writer) Apply(fx *Effects) {
	w.cfg.Lanes.Observe(fx.NS, fx.Lanes)
	w.claims.apply(fx)
	if fx.waiting != nil {
		w.waiting.add(fx.waiting)
	}
	if n := &fx.Notice; n.Due || n.Chores || n.Deadline > 0 || len(n.Tasks) > 0 || len(n.Jobs) > 0 || len(n.Cancels) > 0 || len(n.Events) > 0 {
		w.cfg.Notify(fx.NS, *n)
	}
}

// claims knows the claims of this process whose tasks still run: how many, so
// that the last finish can delete the claim's row, and what their attempts
// have in common. It only saves work: rows that it misses are deleted by the
// reaper. Only the leader uses it.
type claims map[claimKey]Claim

// claimKey names a claim: ids are unique in a namespace.
type claimKey struct {
	ns    string
	lease task.LeaseID
}

// Claim is what the tasks of one claim call have in common.
type Claim struct {
	Tasks     int
	Worker    string
	StartedAt int64 // in microseconds
}

type claimMade struct {
	lease task.LeaseID
	claim Claim
}

type leaseEnds struct {
	lease task.LeaseID
	tasks int
}

// maxClaims bounds what is remembered: claims that other processes reaped
// never end here.
const maxClaims = 1 << 16

func (c claims) apply(fx *Effects) {
	if len(fx.claimed)+len(fx.ended) == 0 {
		return // perhaps of a caller's transaction, which is applied beside the leader
	}
	if len(c) >= maxClaims {
		clear(c)
	}
	for i := range fx.claimed {
		c[claimKey{fx.NS, fx.claimed[i].lease}] = fx.claimed[i].claim
	}
	for _, e := range fx.ended {
		key := claimKey{fx.NS, e.lease}
		if claim, ok := c[key]; ok && claim.Tasks > e.tasks {
			claim.Tasks -= e.tasks
			c[key] = claim
		} else {
			delete(c, key)
		}
	}
}

// Claimed notes a claim that got tasks.
func (fx *Effects) Claimed(lease task.LeaseID, c Claim) {
	fx.claimed = append(fx.claimed, claimMade{lease, c})
}

// Claim returns what is known of a claim whose tasks run.
func (fx *Effects) Claim(lease task.LeaseID) (Claim, bool) {
	c, ok := fx.writer.claims[claimKey{fx.NS, lease}]
	return c, ok
}

// Ended notes that a task of a claim left running. It reports whether it was
// the last one: not, when more of them run or another process claimed it.
func (fx *Effects) Ended(lease task.LeaseID) (last bool) {
	claim, ok := fx.writer.claims[claimKey{fx.NS, lease}]
	for i := len(fx.ended) - 1; i >= 0; i-- {
		if e := &fx.ended[i]; e.lease == lease {
			e.tasks++
			return ok && e.tasks >= claim.Tasks
		}
	}
	fx.ended = append(fx.ended, leaseEnds{lease, 1})
	return ok && claim.Tasks <= 1
}

// Generation returns the remembered generation of a namespace, or "". It is
// remembered as long as no other connection commits and no operation changes
// it.
func (fx *Effects) Generation() string {
	if fx.writer == nil {
		return ""
	}
	return fx.writer.generations[fx.NS]
}

// RememberGeneration remembers what was read.
func (fx *Effects) RememberGeneration(gen string) {
	w := fx.writer
	if w == nil || w.restoring {
		return
	}
	if w.generations == nil {
		w.generations = make(map[string]string)
	}
	w.generations[fx.NS] = gen
}

// ChangeGeneration forgets the remembered generations. Until the next
// transaction none is remembered: this one may yet be rolled back.
func (fx *Effects) ChangeGeneration() {
	clear(fx.writer.generations)
	fx.writer.restoring = true
}
