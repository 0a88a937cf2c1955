package sqlite

import (
	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// effects is what follows from an operation once it is committed: what others
// are told, and what the memory of this process learns.
type effects struct {
	ns      string
	notice  store.Notice
	seen    []laneSeen
	claimed []claimMade
	ended   []leaseEnds // tasks that left running, by lease
	park    *parked     // the claim found nothing and is willing to wait
}

// publish makes the effects of committed operations known.
func (db *DB) publish(ops []*batch.Op[*op], riders []*parked) {
	external := db.w.external
	db.w.external = false
	for _, o := range ops {
		if o.Err == nil {
			db.apply(&o.Do.fx)
		}
	}
	for _, c := range riders {
		db.apply(&c.o.fx)
	}
	if external {
		db.listeners.tellAll(store.Notice{External: true})
	}
}

// apply makes one operation's effects known. It may run beside the writer.
func (db *DB) apply(fx *effects) {
	db.lanes.settle(fx.ns, fx.seen)
	db.claims.apply(fx)
	if fx.park != nil {
		db.parking.add(fx.park)
	}
	if n := &fx.notice; n.Due || len(n.Tasks) > 0 || len(n.Jobs) > 0 || len(n.Cancels) > 0 {
		db.listeners.tell(fx.ns, *n)
	}
}

// claims knows the claims of this process whose tasks still run: how many, so
// that the last finish can delete the claim's row, and what their attempts
// have in common. It only saves work: rows that it misses are deleted by the
// reaper. The writer's leader alone uses it.
type claims map[task.LeaseID]claimInfo

type claimInfo struct {
	tasks     int
	worker    string
	startedAt int64
}

type claimMade struct {
	lease task.LeaseID
	claimInfo
}

type leaseEnds struct {
	lease task.LeaseID
	tasks int
}

// maxClaims bounds what is remembered: claims that other processes reaped are
// never ended here.
const maxClaims = 1 << 16

func (c claims) apply(fx *effects) {
	if len(fx.claimed)+len(fx.ended) == 0 {
		return // perhaps of a caller's transaction, which is applied beside the leader
	}
	if len(c) >= maxClaims {
		clear(c)
	}
	for i := range fx.claimed {
		c[fx.claimed[i].lease] = fx.claimed[i].claimInfo
	}
	for _, e := range fx.ended {
		if info, ok := c[e.lease]; ok && info.tasks > e.tasks {
			info.tasks -= e.tasks
			c[e.lease] = info
		} else {
			delete(c, e.lease)
		}
	}
}

// end counts one task that left running and returns the lease's sum.
func (fx *effects) end(lease task.LeaseID) int {
	for i := len(fx.ended) - 1; i >= 0; i-- {
		if fx.ended[i].lease == lease {
			fx.ended[i].tasks++
			return fx.ended[i].tasks
		}
	}
	fx.ended = append(fx.ended, leaseEnds{lease, 1})
	return 1
}

// endLease notes that a task left running, and deletes its claim's row when it
// was the last one.
func (t *tx) endLease(lease task.LeaseID) error {
	ended := t.fx.end(lease)
	if info, ok := t.db.claims[lease]; !ok || ended < info.tasks {
		return nil // more of them run, or another process claimed it
	}
	return t.stmt(sqlDeleteClaim).Text(1, t.ns).Lease(2, &lease).Run()
}

const sqlDeleteClaim = `DELETE FROM weaver_claims WHERE namespace = ?1 AND lease_id = ?2`
